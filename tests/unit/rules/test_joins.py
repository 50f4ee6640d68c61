"""Joins, deadlines and alternatives."""

from __future__ import annotations

from agents.outcome import ChildRequest
from tests.unit.rules.ledger import BROKEN, Ledger, planned, shape


def test_all_waits_for_every_dependency() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "x", "y")))
    run.end("x")
    assert run.status("z") == "pending"
    run.end("y")
    assert run.state.subtasks["z"].used == ("x", "y")


def test_any_starts_at_the_first_completion_and_the_loser_is_told() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "x", "y", join="any")))
    run.begin("y")
    happened = run.end("x")
    assert happened == ["subtask.completed", "subtask.ready", "subtask.cancel_requested"]
    assert run.state.subtasks["z"].used == ("x",)
    run.end("y", BROKEN)
    assert run.status("y") == "cancelled"


def test_a_loser_that_nobody_works_on_is_cancelled_at_once() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "x", "y", join="any")))
    assert "subtask.cancelled" in run.end("x")
    assert run.status("y") == "cancelled"


def test_a_loser_that_completes_all_the_same_is_no_answer() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "x", "y", join="any")))
    run.begin("y")
    run.end("x")
    run.end("y")
    run.end("z")
    assert run.data("run.completed") == [{"answer": "z", "answers": []}]


def test_a_loser_that_somebody_else_needs_runs_on() -> None:
    run = Ledger(
        shape(planned("x"), planned("y"), planned("z", "x", "y", join="any"), planned("v", "y"))
    )
    run.end("x")
    assert run.status("y") == "ready"


def test_what_only_a_loser_needs_is_cancelled_with_it() -> None:
    run = Ledger(
        shape(planned("x"), planned("v"), planned("y", "v"), planned("z", "x", "y", join="any"))
    )
    run.end("x")
    assert (run.status("y"), run.status("v")) == ("cancelled", "cancelled")


def test_the_children_that_a_loser_waits_for_are_cancelled_with_it() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "x", "y", join="any")))
    run.park("y", children=(ChildRequest("b", "help", "ask", 0),))
    run.park("y/b-0", children=(ChildRequest("c", "help", "ask", 0),))
    run.begin("y/b-0/c-0")
    run.end("x")
    assert run.status("y") == run.status("y/b-0") == "cancelled"
    assert run.state.subtasks["y/b-0/c-0"].cancelling


def test_a_failed_alternative_is_tolerated_while_another_lives() -> None:
    run = Ledger(
        shape(planned("x"), planned("y"), planned("z", "x", "y", join="any"), planner=False)
    )
    assert run.end("x", BROKEN) == ["subtask.failed"]
    assert run.status("z") == "pending"
    run.end("y")
    assert run.status("z") == "ready"


def test_the_last_failed_alternative_is_not_tolerated() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "x", "y", join="any")))
    run.end("x", BROKEN)
    assert run.end("y", BROKEN)[-1] == "run.failed"
    assert run.status("z") == "cancelled"


def test_an_alternative_that_others_need_too_is_not_tolerated() -> None:
    run = Ledger(
        shape(planned("x"), planned("y"), planned("z", "x", "y", join="any"), planned("v", "x"))
    )
    assert "run.ending" in run.end("x", BROKEN)


def test_at_its_deadline_all_starts_with_what_is_completed() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "x", "y", deadline_s=5.0)))
    run.begin("y")
    run.end("x")
    assert run.fire("join", "z") == ["subtask.ready", "subtask.cancel_requested"]
    assert run.state.subtasks["z"].used == ("x",)


def test_at_its_deadline_a_join_with_nothing_completed_fails_and_stops_what_it_waited_for() -> None:
    run = Ledger(
        shape(planned("x"), planned("z", "x", deadline_s=5.0), planned("other"), planner=True)
    )
    happened = run.fire("join", "z")
    assert happened[:2] == ["subtask.failed", "subtask.cancelled"]
    assert run.state.subtasks["z"].error_class == "join_deadline"
    assert run.status("x") == "cancelled"
    assert run.status("z/replan") == "ready"


def test_a_deadline_after_the_start_changes_nothing() -> None:
    run = Ledger(shape(planned("x"), planned("z", "x", deadline_s=5.0)))
    run.end("x")
    assert run.fire("join", "z") == []


def test_a_deadline_runs_from_the_spawn() -> None:
    run = Ledger(shape(planned("x"), planned("z", "x", deadline_s=5.0)))
    assert run.data("subtask.spawned")[1]["deadline_at"] == 5.0


def test_a_dependency_named_twice_is_met_once() -> None:
    run = Ledger(shape(planned("x"), planned("z", "x", "x")))
    run.end("x")
    assert run.status("z") == "ready"


def test_dependents_of_a_cancelled_subtask_that_can_never_run_are_cancelled() -> None:
    run = Ledger(shape(planned("x"), planned("y", "x"), planned("z", "y"), planned("other")))
    run.park("x", children=(ChildRequest("b", "all of it", "hand_off", 0),))
    run.begin("x/b-0")
    child = run.state.subtasks["x/b-0"]
    child.cancelling = True
    run.end("x/b-0", BROKEN)
    assert [run.status(s) for s in ("x", "y", "z")] == ["cancelled"] * 3
    assert run.status("other") == "ready"
