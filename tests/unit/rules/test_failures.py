"""Plans, replans, and what a failure means for the rest of the run."""

from __future__ import annotations

import pytest

from agents.outcome import ChildRequest, Failed, PlannedSubtask
from tests.unit.rules.ledger import BROKEN, Ledger, done, planned, shape


def planning(*plan: PlannedSubtask, replans: int = 2) -> Ledger:
    """Return a run whose planner has given this plan."""
    run = Ledger(shape(planner=True, replans=replans))
    run.end("plan", done(spawns=plan))
    return run


def test_planned_subtasks_keep_their_ids_under_their_parent() -> None:
    run = planning(planned("x"), planned("y", "x"))
    assert list(run.state.subtasks) == ["plan", "plan/x", "plan/y"]
    assert run.state.subtasks["plan/y"].after == ("plan/x",)


@pytest.mark.parametrize(
    "plan",
    [
        (),
        (planned("x", agent="nobody"),),
        (planned("x", "y"), planned("y", "x")),
        (planned("x", "elsewhere"),),
        (planned("x"), planned("x")),
    ],
)
def test_a_plan_that_cannot_be_spawned_fails_its_attempt(plan: tuple[PlannedSubtask, ...]) -> None:
    run = Ledger(shape(planner=True))
    assert run.end("plan", done(spawns=plan)) == ["subtask.retry_scheduled"]
    assert run.events[-1].data["error_class"] == "invalid_plan"
    assert run.state.subtasks["plan"].generation == 1


def test_a_planned_id_that_a_child_of_the_planner_has_is_refused() -> None:
    run = Ledger(shape(planner=True))
    run.park("plan", children=(ChildRequest("b", "help", "ask", 0),))
    run.end("plan/b-0")
    assert run.end("plan", done(spawns=(planned("b-0"),))) == ["subtask.retry_scheduled"]


@pytest.mark.parametrize("plan", [(planned("x", "y"), planned("y", "x")), (planned("synthesis"),)])
def test_a_static_plan_that_cannot_be_spawned_ends_the_run(
    plan: tuple[PlannedSubtask, ...],
) -> None:
    run = Ledger(shape(*plan, synthesizer=True))
    assert [event.type for event in run.events] == ["run.submitted", "run.ending", "run.failed"]
    assert run.events[-1].data["error_class"] == "invalid_plan"


def test_a_static_plan_may_have_any_size() -> None:
    assert len(Ledger(shape(*(planned(f"x{i}") for i in range(40)))).state.subtasks) == 40


def test_a_subtask_that_failed_for_good_is_replanned() -> None:
    run = planning(planned("x"), planned("y", "x"), planned("z"))
    happened = run.end("plan/x", BROKEN)
    assert happened[:2] == ["subtask.failed", "subtask.superseded"]
    assert run.status("plan/x/replan") == "ready"
    assert run.status("plan/z") == "ready"


def test_superseding_reaches_what_depends_on_what_is_superseded() -> None:
    run = planning(planned("x"), planned("y", "x"), planned("z", "y"), planned("v", "z"))
    run.end("plan/x", BROKEN)
    assert [run.status(f"plan/{s}") for s in "yzv"] == ["superseded"] * 3


def test_any_is_not_superseded_while_an_alternative_lives() -> None:
    run = planning(
        planned("x"), planned("y"), planned("z", "x", "y", join="any"), planned("v", "x")
    )
    run.end("plan/x", BROKEN)
    assert run.status("plan/v") == "superseded"
    assert run.status("plan/z") == "pending"


def test_a_join_with_a_deadline_is_not_superseded_while_a_dependency_lives() -> None:
    run = planning(planned("x"), planned("y"), planned("z", "x", "y", deadline_s=9.0))
    run.end("plan/x", BROKEN)
    assert run.status("plan/z") == "pending"


def test_a_replan_may_depend_on_what_is_completed() -> None:
    run = planning(planned("x"), planned("y"))
    run.end("plan/y")
    run.end("plan/x", BROKEN)
    run.end("plan/x/replan", done(spawns=(planned("v", "plan/y"),)))
    assert run.state.subtasks["plan/x/replan/v"].used == ("plan/y",)


def test_one_replan_is_open_at_a_time_and_later_failures_wait() -> None:
    run = planning(planned("x"), planned("y"))
    run.end("plan/x", BROKEN)
    assert run.end("plan/y", BROKEN) == ["subtask.failed", "replan.queued"]
    run.end("plan/x/replan", done(spawns=(planned("v"),)))
    assert run.status("plan/y/replan") == "ready"
    assert run.state.replan_queue == ()


def test_there_are_two_replans_and_then_the_run_fails() -> None:
    run = planning(planned("x"))
    run.end("plan/x", BROKEN)
    run.end("plan/x/replan", done(spawns=(planned("x"),)))
    run.end("plan/x/replan/x", BROKEN)
    run.end("plan/x/replan/x/replan", done(spawns=(planned("x"),)))
    assert run.end("plan/x/replan/x/replan/x", BROKEN)[-1] == "run.failed"
    assert run.state.replans == 2


def test_a_queued_failure_ends_the_run_when_no_replan_is_left() -> None:
    run = planning(planned("x"), planned("y"), replans=1)
    run.begin("plan/y")
    run.end("plan/x", BROKEN)
    assert run.end("plan/y", BROKEN)[:2] == ["subtask.failed", "run.ending"]


def test_a_failed_planner_ends_the_run() -> None:
    run = Ledger(shape(planner=True))
    assert run.end("plan", BROKEN) == ["subtask.failed", "run.ending", "run.failed"]


def test_a_failed_replan_ends_the_run() -> None:
    run = planning(planned("x"), planned("y"))
    run.end("plan/x", BROKEN)
    assert run.end("plan/x/replan", BROKEN)[-1] == "run.failed"
    assert run.status("plan/y") == "cancelled"


def test_a_budget_that_is_spent_never_replans() -> None:
    run = planning(planned("x"))
    assert run.end("plan/x", Failed("budget", "spent"))[-1] == "run.over_budget"


def test_without_a_planner_a_failure_ends_the_run() -> None:
    run = Ledger(shape(planned("x"), planned("y")))
    assert run.end("x", BROKEN)[-1] == "run.failed"
    assert run.data("run.failed")[0]["subtask"] == "x"


def test_the_child_of_a_child_that_fails_is_its_parents_affair() -> None:
    run = planning(planned("x"))
    run.park("plan/x", children=(ChildRequest("b", "help", "ask", 0),))
    run.park("plan/x/b-0", children=(ChildRequest("c", "help", "ask", 0),))
    run.end("plan/x/b-0/c-0", BROKEN)
    run.end("plan/x/b-0", BROKEN)
    assert run.status("plan/x") == "ready"
    assert run.state.replans == 0
