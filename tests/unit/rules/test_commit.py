"""From a batch of facts to one transaction with its guards."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from agents.outcome import Completed, InputRequest, Parked
from orchestrator.commit import Batch, Commit, OpenAttempt, Timer, plan_commit
from orchestrator.facts import CancelAsked, Dispatched, Ended, Fact, Submitted
from orchestrator.shape import RunShape
from orchestrator.state import RunState, evolve
from tests.unit.rules.ledger import BROKEN, FLAKY, done, planned, shape

TWO = shape(planned("x"), planned("y"), planned("z", "x", "y", join="any"))


def commit(
    state: RunState,
    *facts: Fact,
    attempts: Sequence[OpenAttempt] = (),
    timers: Sequence[Timer] = (),
    proposals: Sequence[Fact] = (),
    dispatch: bool = True,
) -> Commit:
    """Plan a commit, check that the state is as before, and then apply it."""
    before = copy.deepcopy(state)
    batch = Batch(5.0, list(enumerate(facts)), timers, attempts)
    planned_commit = plan_commit(state, batch, proposals=proposals, dispatch=dispatch)
    assert state == before
    for event in planned_commit.events:
        evolve(state, event)
    return planned_commit


def submitted(run: RunShape = TWO, *, dispatch: bool = True) -> RunState:
    """Return a run after its first commit."""
    state = RunState()
    commit(state, Submitted(0.0, "r", run, "task", {}), dispatch=dispatch)
    return state


def test_the_orchestrator_dispatches_all_that_is_ready_in_the_same_transaction() -> None:
    first = commit(RunState(), Submitted(0.0, "r", TWO, "task", {}))
    assert first.announced == [("x", 1, "a"), ("y", 1, "a")]
    assert first.sent == [("x", 1), ("y", 1)]
    assert first.inbox == [0]
    assert first.timers == [Timer("wall", "", 0, 3_600.0)]


def test_in_choreography_only_what_is_proposed_is_dispatched() -> None:
    state = submitted(dispatch=False)
    proposals = (Dispatched(5.0, "x", 1), Dispatched(5.0, "z", 1))
    assert commit(state, proposals=proposals, dispatch=False).sent == [("x", 1)]


def test_an_expiry_is_guarded_by_its_lease() -> None:
    state = submitted()
    found = commit(state, attempts=[OpenAttempt("x", 1, "a", "claimed", lapsed=True)])
    assert found.still_lapsed == [("x", 1)]
    assert found.closed == [("x", 1)]
    assert found.sent == [("x", 2)]


def test_an_outcome_read_together_with_its_expiry_wins() -> None:
    state = submitted()
    outcome = Ended(5.0, "x", 1, Completed(None), "h", "w")
    found = commit(state, outcome, attempts=[OpenAttempt("x", 1, "a", "claimed", lapsed=True)])
    assert found.still_lapsed == []
    assert "attempt.expired" not in [event.type for event in found.events]


def test_an_unroutable_attempt_is_guarded_by_its_agent_and_by_being_unclaimed() -> None:
    state = submitted()
    found = commit(state, attempts=[OpenAttempt("x", 1, "a", "sent", unserved=True)])
    assert found.still_unserved == ["a"]
    assert found.still_unclaimed == [("x", 1)]


def test_an_undispatched_attempt_that_nobody_serves_needs_no_claim_to_be_ruled_out() -> None:
    state = submitted(dispatch=False)
    row = OpenAttempt("x", 1, "a", "ready", unserved=True)
    found = commit(state, attempts=[row], dispatch=False)
    assert (found.still_unserved, found.still_unclaimed) == (["a"], [])
    assert ("x", 1) in found.closed


def test_unclaimed_attempts_are_cancelled_with_the_run_and_guarded() -> None:
    state = submitted()
    rows = [OpenAttempt("x", 1, "a", "sent"), OpenAttempt("y", 1, "a", "claimed")]
    found = commit(state, CancelAsked(5.0, "enough"), attempts=rows)
    assert found.still_unclaimed == [("x", 1)]
    assert found.cancelled == [("x", 1), ("y", 1)]
    assert state.subtasks["x"].status == "cancelled"
    assert state.subtasks["y"].status == "open"
    assert found.final is None


def test_the_last_outcome_carries_the_final_kind() -> None:
    state = submitted(shape(planned("x")))
    assert commit(state, Ended(5.0, "x", 1, done(), "h", "w")).final == "completed"


def test_timers_are_set_for_all_that_waits() -> None:
    state = submitted(shape(planned("x"), planned("y"), planned("z", "x", deadline_s=7.0)))
    asked = Parked((InputRequest("q", "question", "?", expires_s=30.0),), (), 2.0)
    found = commit(
        state, Ended(5.0, "x", 1, asked, None, "w"), Ended(5.0, "y", 1, FLAKY, None, "w")
    )
    assert [(t.kind, t.key, t.attempt) for t in found.timers] == [
        ("input", "q", 1),
        ("until", "x", 1),
        ("retry", "y", 1),
    ]
    assert [t.at for t in found.timers[:2]] == [35.0, 7.0]
    assert found.closed == [("x", 1), ("y", 1)]


def test_a_timer_that_is_due_is_taken_even_when_nothing_follows() -> None:
    timer = Timer("retry", "x", 9, 1.0)
    found = commit(submitted(), timers=[timer])
    assert (found.fired, found.events, found.empty) == ([timer], [], False)


def test_nothing_to_decide_is_an_empty_commit() -> None:
    assert commit(submitted()).empty


def test_an_attempt_that_became_ready_and_was_cancelled_at_once_is_announced_and_closed() -> None:
    state = submitted(shape(planned("x"), planned("y"), planned("z", "x")))
    outcomes = (Ended(5.0, "x", 1, done(), "h", "w"), Ended(5.0, "y", 1, BROKEN, None, "w"))
    found = commit(state, *outcomes)
    assert ("z", 1, "a") in found.announced
    assert ("z", 1) in found.closed
    assert ("z", 1) not in found.sent
    assert found.final == "failed"
