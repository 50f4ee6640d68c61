"""Dispatch, outcomes, retries, expiries and late news."""

from __future__ import annotations

import pytest

from agents.outcome import AttemptCancelled, Failed
from agents.usage import Usage
from orchestrator.facts import Dispatched, Submitted
from orchestrator.rules import ready
from orchestrator.state import RunState
from tests.unit.rules.ledger import BROKEN, FLAKY, Ledger, done, planned, shape


@pytest.fixture
def run() -> Ledger:
    return Ledger(shape(planned("x")))


def test_a_subtask_without_dependencies_is_ready_at_once(run: Ledger) -> None:
    assert ready(run.state) == [("x", 1)]
    assert ready(run.state, "a") == [("x", 1)]
    assert ready(run.state, "b") == []


@pytest.mark.parametrize(("subtask", "attempt"), [("x", 2), ("x", 0), ("y", 1)])
def test_a_dispatch_is_refused_unless_it_is_the_next_attempt_of_a_ready_subtask(
    run: Ledger, subtask: str, attempt: int
) -> None:
    assert run.take(Dispatched(0.0, subtask, attempt)) == []


def test_a_second_dispatch_of_an_open_attempt_is_refused(run: Ledger) -> None:
    run.begin("x")
    assert run.take(Dispatched(0.0, "x", 1)) == []
    assert run.take(Dispatched(0.0, "x", 2)) == []


def test_an_outcome_of_an_attempt_that_is_not_current_counts_usage_only(run: Ledger) -> None:
    run.begin("x")
    run.expire("x")
    run.begin("x")
    late = done("finding")
    assert run.ended("x", 1, late) == ["attempt.ended_late"]
    assert run.events[-1].data["usage"] == Usage().to_json()
    assert run.status("x") == "open"


def test_an_outcome_of_an_undispatched_attempt_does_not_count(run: Ledger) -> None:
    run.begin("x")
    run.expire("x")
    assert run.ended("x", 1) == ["attempt.ended_late"]
    assert run.ended("x", 2) == ["attempt.ended_late"]
    assert run.status("x") == "ready"


def test_the_third_failure_is_the_last(run: Ledger) -> None:
    for _ in range(2):
        assert run.end("x", FLAKY) == ["subtask.retry_scheduled"]
        run.retry("x")
    assert run.end("x", FLAKY) == ["subtask.failed", "run.ending", "run.failed"]


def test_a_failure_that_is_not_retryable_is_the_last(run: Ledger) -> None:
    assert run.end("x", BROKEN)[0] == "subtask.failed"


def test_expiries_do_not_count_as_failures_and_have_their_own_limit() -> None:
    run = Ledger(shape(planned("x"), expiries=5))
    for _ in range(4):
        run.begin("x")
        assert run.expire("x") == ["attempt.expired", "subtask.ready"]
    run.begin("x")
    assert run.expire("x")[:2] == ["attempt.expired", "subtask.failed"]
    assert run.state.subtasks["x"].error_class == "lost_worker"
    assert run.state.subtasks["x"].failures == 0


def test_an_attempt_given_back_is_ready_again(run: Ledger) -> None:
    assert run.end("x", AttemptCancelled()) == ["attempt.given_back", "subtask.ready"]


def test_pauses_before_retries_double_and_are_the_same_whoever_decides(run: Ledger) -> None:
    run.end("x", FLAKY)
    run.retry("x")
    run.end("x", FLAKY)
    first, second = (data["at"] for data in run.data("subtask.retry_scheduled"))
    assert 0.25 <= first < 0.75
    assert 0.5 <= second < 1.5
    again = Ledger(shape(planned("x")))
    again.end("x", FLAKY)
    assert again.data("subtask.retry_scheduled")[0]["at"] == first


def test_a_new_generation_begins_only_where_a_replay_would_fail_again(run: Ledger) -> None:
    run.end("x", FLAKY)
    assert run.state.subtasks["x"].generation == 0
    run.retry("x")
    run.end("x", Failed("invalid_output", "no", retryable=True, new_generation=True))
    assert run.state.subtasks["x"].generation == 1
    run.retry("x")
    run.begin("x")
    assert run.data("subtask.dispatched")[-1]["generation"] == 1


def test_a_retry_timer_of_an_earlier_attempt_changes_nothing(run: Ledger) -> None:
    run.end("x", FLAKY)
    assert run.fire("retry", "x", 7) == []
    assert run.status("x") == "waiting"


@pytest.mark.parametrize("begun", [False, True])
def test_an_agent_that_nobody_serves_fails_as_unroutable(run: Ledger, begun: bool) -> None:
    if begun:
        run.begin("x")
    assert run.unroutable("x")[0] == "subtask.failed"
    assert run.state.subtasks["x"].error_class == "unroutable"


def test_an_attempt_that_is_to_stop_is_not_unroutable_but_cancelled() -> None:
    run = Ledger(shape(planned("x"), planned("y"), planned("z", "x", "y", join="any")))
    run.begin("y")
    run.end("x")
    assert run.unroutable("y") == ["subtask.cancelled"]
    assert run.state.ending is None


def test_only_an_attempt_that_is_to_stop_can_be_revoked(run: Ledger) -> None:
    run.begin("x")
    assert run.revoke("x") == []


def test_nothing_but_a_late_outcome_follows_the_final_event(run: Ledger) -> None:
    assert run.end("x")[-1] == "run.completed"
    assert run.cancel() == []
    assert run.fire("wall") == []
    assert run.take(Dispatched(0.0, "x", 2)) == []
    assert run.ended("x", 1) == ["attempt.ended_late"]
    assert ready(run.state) == []


def test_nothing_follows_before_the_submission() -> None:
    run = Ledger(shape(planned("x")))
    run.state = RunState()
    assert run.cancel() == []
    assert run.ended("x", 1) == []


def test_a_second_submission_changes_nothing(run: Ledger) -> None:
    assert run.take(Submitted(1.0, "r", shape(planned("other")), "another task", {})) == []
