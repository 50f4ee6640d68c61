"""Parking on people, children and time; asking and handing off."""

from __future__ import annotations

import pytest

from agents.assignment import Answer
from agents.outcome import ChildRequest, InputRequest, WaitMode
from orchestrator.facts import Answered
from tests.unit.rules.ledger import BROKEN, FLAKY, Ledger, done, planned, shape


@pytest.fixture
def run() -> Ledger:
    return Ledger(shape(planned("x"), planner=True))


def question(name: str) -> InputRequest:
    return InputRequest(name, "question", "What now?", expires_s=30.0)


def child(agent: str = "b", mode: WaitMode = "ask", k: int = 0) -> ChildRequest:
    return ChildRequest(agent, "help", mode, k)


def test_a_parked_attempt_resumes_when_all_it_waits_for_is_met(run: Ledger) -> None:
    run.park("x", inputs=(question("q"),), children=(child(),), until=5.0)
    assert run.answer(Answered(0.0, "q", Answer(value="yes"))) == ["input.provided"]
    assert run.fire("until", "x", 1) == ["subtask.pause_ended"]
    assert run.end("x/b-0")[-2:] == ["subtask.child_ended", "subtask.ready"]
    assert run.state.subtasks["x"].attempt == 1


def test_a_second_answer_changes_nothing(run: Ledger) -> None:
    run.park("x", inputs=(question("q"),), until=5.0)
    run.answer(Answered(0.0, "q", Answer(approved=True)))
    assert run.answer(Answered(0.0, "q", Answer(approved=False))) == []


def test_an_answer_to_nothing_changes_nothing(run: Ledger) -> None:
    assert run.answer(Answered(0.0, "q", Answer(approved=True))) == []


def test_nobodys_answer_denies(run: Ledger) -> None:
    run.park("x", inputs=(question("q"),))
    assert run.fire("input", "q", 1) == ["input.provided", "subtask.ready"]
    assert run.events[-2].data["approved"] is False
    assert run.events[-2].data["expired"] is True


def test_an_answer_to_a_cancelled_subtask_changes_nothing(run: Ledger) -> None:
    run.begin("x")
    run.park("x", inputs=(question("q"),))
    run.cancel()
    assert run.answer(Answered(0.0, "q", Answer(approved=True))) == []


def test_a_child_met_before_the_parent_parks_again_is_met_at_once(run: Ledger) -> None:
    run.park("x", children=(child(),))
    run.end("x/b-0")
    assert run.park("x", children=(child(),))[-2:] == ["subtask.child_ended", "subtask.ready"]


@pytest.mark.parametrize("agent", ["nobody", "b"])
def test_a_child_that_cannot_be_served_is_met_as_a_failure(agent: str) -> None:
    run = Ledger(shape(planned("x"), hops=0, planner=True))
    run.park("x", children=(child(agent),))
    assert run.status(f"x/{agent}-0") == "failed"
    assert run.status("x") == "ready"
    assert run.state.ending is None


def test_a_failed_child_is_met_and_neither_replans_nor_ends_the_run(run: Ledger) -> None:
    run.park("x", children=(child(),))
    happened = run.end("x/b-0", BROKEN)
    assert happened == ["subtask.failed", "subtask.child_ended", "subtask.ready"]


def test_after_an_ask_the_parent_goes_on(run: Ledger) -> None:
    run.park("x", children=(child(),))
    run.end("x/b-0")
    assert run.status("x") == "ready"


def test_after_a_hand_off_the_parent_adopts_the_childs_output_without_another_attempt(
    run: Ledger,
) -> None:
    run.park("x", children=(child(mode="hand_off"),))
    run.end("x/b-0")
    assert run.status("x") == "completed"
    assert run.state.subtasks["x"].output_hash == "output of x/b-0"
    assert run.state.subtasks["x"].attempt == 1
    assert run.data("run.completed")[0]["answer"] == "x"


def test_after_a_hand_off_the_parent_adopts_the_childs_failure_and_then_replans(
    run: Ledger,
) -> None:
    run.park("x", children=(child(mode="hand_off"),))
    run.end("x/b-0", BROKEN)
    assert run.state.subtasks["x"].error_class == "broken"
    assert run.status("x/replan") == "ready"
    assert "x/b-0/replan" not in run.state.subtasks


def test_a_chain_of_hand_offs_is_adopted_to_its_beginning(run: Ledger) -> None:
    run.park("x", children=(child("b", "hand_off"),))
    run.park("x/b-0", children=(child("c", "hand_off"),))
    run.end("x/b-0/c-0")
    assert run.state.subtasks["x"].output_hash == "output of x/b-0/c-0"


def test_a_hand_off_beside_other_children_cancels_them_when_it_is_adopted(run: Ledger) -> None:
    run.park("x", children=(child("b", "hand_off", 0), child("c", "ask", 1)))
    run.end("x/b-0")
    assert run.status("x/c-1") == "cancelled"


@pytest.mark.parametrize("kind", ["synthesis", "plan"])
def test_neither_the_synthesizer_nor_a_planner_hands_off(kind: str) -> None:
    planner = kind == "plan"
    run = Ledger(shape(*([] if planner else [planned("x")]), planner=planner, synthesizer=True))
    if not planner:
        run.end("x")
    run.park(kind, children=(child(mode="hand_off"),))
    assert run.state.subtasks[f"{kind}/b-0"].error_class == "may_not_hand_off"
    assert run.status(kind) == "ready"


def test_a_childs_retry_does_not_wake_its_parent(run: Ledger) -> None:
    run.park("x", children=(child(),))
    assert run.end("x/b-0", FLAKY) == ["subtask.retry_scheduled"]
    assert run.status("x") == "parked"


def test_children_are_numbered_by_spawn_of_their_parent(run: Ledger) -> None:
    run.park("x", children=(child("b", k=0), child("b", k=1)))
    run.end("x/b-0")
    run.end("x/b-1")
    run.park("x", children=(child("b", k=2),))
    assert run.state.subtasks["x"].spawned == ("x/b-0", "x/b-1", "x/b-2")


def test_a_parked_attempt_that_waits_for_nothing_resumes_at_once(run: Ledger) -> None:
    assert run.park("x") == ["subtask.parked", "subtask.ready"]


def test_a_pause_of_an_earlier_attempt_changes_nothing(run: Ledger) -> None:
    run.park("x", until=5.0)
    assert run.fire("until", "x", 2) == []


def test_an_adopted_output_counts_as_one_answer(run: Ledger) -> None:
    run.park("x", children=(child(mode="hand_off"),))
    run.end("x/b-0", done("k"))
    assert run.data("run.completed") == [{"answer": "x", "answers": []}]
