"""Stop conditions on their own."""

from __future__ import annotations

from agents.messages import ToolCall
from agents.stops import (
    BudgetSpent,
    LoopState,
    NoProgress,
    RepeatedCall,
    Step,
    StopCondition,
    WallTime,
    similar,
)
from agents.usage import Budget, Usage


def state(*steps: tuple[str, str], pollable: bool = False) -> LoopState:
    made = [Step.of([(ToolCall("x", "t", {"q": q}), seen, pollable)]) for q, seen in steps]
    return LoopState(steps=made)


def test_arguments_that_differ_in_form_are_similar() -> None:
    assert similar({"q": " Paris  Rain", "n": 1, "x": None}) == similar(
        {"n": 1.0, "q": "paris rain"}
    )
    assert similar({"q": [1, "1.0"]}) == similar({"q": ["1", 1]})
    assert similar({"q": "Paris"}) != similar({"q": "Oslo"})
    assert similar({"q": True}) != similar({"q": 1})


def test_a_repeated_call_is_warned_at_three_and_stopped_at_five() -> None:
    stop = RepeatedCall()
    same = ("a", "1")
    assert [stop.hint(state(*[same] * n)) is not None for n in range(7)] == [
        False, False, False, True, False, False, False,
    ]  # fmt: skip
    assert [stop.check(state(*[same] * n)) for n in (4, 5)] == [None, "repeated_call"]
    assert stop.check(state(*[same] * 9, ("b", "2"))) is None


def test_changing_results_and_pollable_tools_are_no_loop() -> None:
    stop = RepeatedCall()
    assert stop.check(state(*[("a", str(n)) for n in range(20)])) is None
    polling = state(*[("a", "1")] * 20, pollable=True)
    assert (stop.check(polling), stop.hint(polling), NoProgress().check(polling)) == (None,) * 3


def test_cycles_of_two_and_three_are_seen() -> None:
    stop = RepeatedCall()
    two, three = [("a", "1"), ("b", "2")], [("a", "1"), ("b", "2"), ("c", "3")]
    assert stop.hint(state(*two * 3)) is not None
    assert stop.check(state(*two * 3)) is None
    assert stop.check(state(*two * 4)) == "cycle"
    assert stop.check(state(*three * 4)) == "cycle"
    assert stop.check(state(*three * 3, ("d", "4"))) is None


def test_no_progress_means_nothing_new_was_observed() -> None:
    stop = NoProgress(3)
    fresh = [("a", "1"), ("b", "2")]
    assert stop.check(state(*fresh, ("c", "1"), ("d", "2"), ("e", "1"))) == "no_progress"
    assert stop.check(state(*fresh, ("c", "1"), ("d", "2"), ("e", "3"))) is None
    assert state(*fresh, ("c", "1")).stale() == 1


def test_each_bound_of_a_budget_stops() -> None:
    usage = Usage(3, 2, 50, 50, 0, 0.5)
    spent = LoopState(usage=usage)
    for budget in (
        Budget(llm_calls=3),
        Budget(tool_calls=2),
        Budget(tokens=100),
        Budget(usd=0.5),
    ):
        assert BudgetSpent(budget).check(spent) == "budget"
    assert BudgetSpent(Budget(4, 3, 101, 0.6)).check(spent) is None
    assert BudgetSpent(Budget()).check(spent) is None


def test_wall_time_is_the_nearer_of_the_runs_and_the_agents_own() -> None:
    now = LoopState(now=10.0, started=5.0, deadline=12.0)
    assert WallTime(None).check(now) is None
    assert WallTime(5.0).check(now) == "wall_time"
    assert WallTime(100.0).ends(now) == 12.0
    assert isinstance(WallTime(), StopCondition)
