"""Reactions, leaves, the synthesizer, and the one final event."""

from __future__ import annotations

from agents.outcome import ChildRequest, Failed
from tests.unit.rules.ledger import BROKEN, FLAKY, Ledger, done, planned, shape

REACTS = {"b": ("k",), "c": ("k", "k2")}


def test_the_task_is_a_finding_that_begins_an_emergent_run() -> None:
    run = Ledger(shape(reacts={"a": ("task",), "b": ("task",)}))
    assert list(run.state.subtasks) == ["task/a.0", "task/b.0"]
    assert run.data("subtask.spawned")[0]["finding"] == {"kind": "task", "data": "the task"}


def test_a_run_in_which_nobody_begins_is_stalled() -> None:
    assert Ledger(shape()).state.final == "stalled"


def test_a_matching_finding_triggers_every_agent_but_its_author() -> None:
    run = Ledger(shape(planned("x", agent="b"), reacts=REACTS))
    run.end("x", done("k", "k2", "k"))
    assert sorted(run.state.subtasks) == ["x", "x/c.0", "x/c.1", "x/c.2"]


def test_the_id_of_a_reaction_is_the_same_in_every_attempt() -> None:
    run = Ledger(shape(planned("x"), reacts=REACTS))
    run.end("x", FLAKY)
    run.retry("x")
    run.end("x", done("k2"))
    assert "x/c.0" in run.state.subtasks


def test_a_chain_beyond_the_hop_limit_is_refused_in_an_event() -> None:
    run = Ledger(shape(planned("x"), reacts={"b": ("k",), "c": ("k",)}, hops=1))
    run.end("x", done("k"))
    assert run.end("x/b.0", done("k"))[-1] == "reaction.refused"
    assert run.data("reaction.refused")[0]["agent"] == "c"


def test_one_leaf_is_the_answer() -> None:
    run = Ledger(shape(planned("x"), planned("y", "x")))
    run.end("x")
    assert run.end("y")[-1] == "run.completed"
    assert run.events[-1].data == {"answer": "y", "answers": []}


def test_several_leaves_answer_together_sorted_by_id() -> None:
    run = Ledger(shape(planned("y"), planned("x")))
    run.end("y")
    run.end("x")
    assert run.events[-1].data == {"answer": None, "answers": ["x", "y"]}


def test_what_a_reaction_or_a_parent_consumed_is_no_leaf() -> None:
    run = Ledger(shape(planned("x"), reacts={"c": ("k",)}))
    run.park("x", children=(ChildRequest("b", "help", "ask", 0),))
    run.end("x/b-0")
    run.end("x", done("k"))
    run.end("x/c.0")
    assert run.events[-1].data["answer"] == "x/c.0"


def test_an_unused_alternative_that_completed_in_time_is_a_leaf() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "x", "y", join="any")))
    run.end("x")
    assert run.status("y") == "cancelled"
    run.end("z")
    assert run.events[-1].data["answer"] == "z"


def test_the_synthesizer_runs_once_over_the_leaves_and_writes_the_answer() -> None:
    run = Ledger(shape(planned("y"), planned("x"), synthesizer=True))
    run.end("y")
    assert run.end("x")[-2:] == ["subtask.spawned", "subtask.ready"]
    assert run.data("subtask.spawned")[-1]["inputs"] == ["x", "y"]
    assert run.end("synthesis")[-1] == "run.completed"
    assert run.events[-1].data["answer"] == "synthesis"


def test_findings_of_the_synthesizer_and_its_children_trigger_nothing() -> None:
    run = Ledger(shape(planned("x"), synthesizer=True, reacts=REACTS))
    run.end("x")
    run.park("synthesis", children=(ChildRequest("a", "help", "ask", 0),))
    run.end("synthesis/a-0", done("k"))
    run.end("synthesis", done("k"))
    assert run.state.final == "completed"
    assert sorted(run.state.subtasks) == ["synthesis", "synthesis/a-0", "x"]


def test_a_failed_synthesizer_leaves_a_stalled_run_with_what_there_is() -> None:
    run = Ledger(shape(planned("x"), planner=False, synthesizer=True))
    run.end("x")
    run.end("synthesis", BROKEN)
    assert run.state.final == "stalled"
    assert run.events[-1].data["partial"] == ["x"]


def test_a_cancel_stops_at_once_what_nobody_has_begun() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "y")))
    run.park("x", until=9.0)
    happened = run.cancel()
    assert happened[0] == "run.ending"
    assert happened.count("subtask.cancelled") == 3
    assert happened[-1] == "run.cancelled"


def test_a_cancel_waits_for_what_is_claimed() -> None:
    run = Ledger(shape(planned("x")))
    run.begin("x")
    assert run.cancel() == ["run.ending", "subtask.cancel_requested"]
    assert run.expire("x") == ["attempt.expired", "subtask.cancelled", "run.cancelled"]


def test_an_unclaimed_attempt_is_revoked_when_the_run_ends() -> None:
    run = Ledger(shape(planned("x")))
    run.begin("x")
    run.cancel()
    assert run.revoke("x") == ["subtask.cancelled", "run.cancelled"]


def test_an_answer_that_comes_while_the_run_is_ending_counts_but_begins_nothing() -> None:
    run = Ledger(shape(planned("x"), planned("y", "x"), reacts=REACTS))
    run.begin("x")
    run.cancel()
    run.end("x", done("k"))
    assert run.events[-1].data["partial"] == ["x"]
    assert sorted(run.state.subtasks) == ["x", "y"]


def test_a_plan_that_comes_while_the_run_is_ending_is_not_spawned() -> None:
    run = Ledger(shape(planner=True))
    run.begin("plan")
    run.cancel()
    run.end("plan", done(spawns=(planned("x"),)))
    assert list(run.state.subtasks) == ["plan"]
    assert run.state.final == "cancelled"


def test_the_first_reason_to_end_is_the_one_that_counts() -> None:
    run = Ledger(shape(planned("x"), planned("y")))
    run.begin("x", "y")
    run.end("x", BROKEN)
    run.cancel()
    run.end("y", Failed("budget", "spent"))
    assert run.state.final == "failed"


def test_wall_time_ends_the_run() -> None:
    run = Ledger(shape(planned("x"), planner=True, wall_s=5.0))
    assert run.data("run.submitted")[0]["wall_at"] == 5.0
    assert run.fire("wall")[-1] == "run.failed"
    assert run.events[-1].data["error_class"] == "wall_time"


def test_children_end_with_the_run() -> None:
    run = Ledger(shape(planned("x")))
    run.park("x", children=(ChildRequest("b", "help", "ask", 0),))
    run.begin("x/b-0")
    run.cancel()
    assert run.status("x") == "cancelled"
    assert run.state.subtasks["x/b-0"].cancelling
