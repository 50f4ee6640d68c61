"""The rules of a run: ``decide(state, fact) -> events`` and ``ready(state, agent) -> subtasks``.

Pure, total, without clock or I/O (the *decider* pattern, Jérémie Chassaing 2021). They hold all
coordination: readiness, joins, retries, deadlines, replanning, reactions, parking, cancellation
and termination. A fact that does not apply yields no event, so duplicates are harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agents.outcome import AttemptCancelled, Completed, Failed, Parked, PlannedSubtask
from orchestrator import endings, joins, spawning, waits
from orchestrator.decision import Decision, jitter
from orchestrator.facts import (
    Answered,
    CancelAsked,
    Dispatched,
    Ended,
    Expired,
    Fact,
    Revoked,
    Submitted,
    TimerFired,
    Unroutable,
)
from orchestrator.state import TERMINAL, Event, RunState, Subtask

RULES_VERSION = 1


def ready(state: RunState, agent: str | None = None) -> list[tuple[str, int]]:
    """Return what may be dispatched: subtask ids with their next attempt, sorted by id.

    Args:
        state: The run.
        agent: Only this agent's subtasks; None for all.
    """
    if state.final is not None:
        return []
    found = (state.subtasks[subtask_id] for subtask_id in state.ready)
    return sorted((s.id, s.attempt + 1) for s in found if agent is None or s.agent == agent)


def decide(state: RunState, fact: Fact) -> list[Event]:
    """Return what follows from a fact, in order; the state is not changed."""
    decision = Decision(state.draft(), fact.time)
    if state.final is not None:
        if isinstance(fact, Ended):
            _late(decision, fact)
        return decision.events
    if state.shape is None and not isinstance(fact, Submitted):
        return []
    _DECIDERS[type(fact)](decision, fact)
    settle(decision)
    endings.finish(decision)
    return decision.events


def settle(d: Decision) -> None:
    """Draw the consequences of every subtask that became terminal, until none is left."""
    while d.closed:
        sub = d.state.subtasks[d.closed.popleft()]
        endings.cancel_children(d, sub)
        waits.child_ended(d, sub.id)
        if d.state.ending is not None:
            continue
        if sub.status == "completed":
            joins.dependency_ended(d, sub.id)
        elif sub.status == "failed":
            endings.failed(d, sub)
        elif sub.status == "cancelled":
            joins.skip_dead(d, sub)
        endings.next_replan(d)


def _submitted(d: Decision, fact: Submitted) -> None:
    if d.state.shape is not None:
        return
    limits = fact.shape.limits
    d.emit(
        "run.submitted",
        run=fact.run,
        task=fact.task,
        shape=fact.shape.to_json(),
        rules_version=RULES_VERSION,
        wall_at=fact.time + limits.wall_s,
        **fact.data,
    )
    if fact.shape.plan:
        problem = spawning.plan_problem(d, fact.shape.plan, parent=None)
        if problem:
            endings.end(d, "failed", "invalid_plan", problem)
        else:
            _spawn_plan(d, fact.shape.plan, parent=None)
    elif fact.shape.planner is not None:
        spawning.spawn(d, "plan", "plan", fact.shape.planner, task=fact.task)
    else:
        spawning.react(d, "task", {"kind": "task", "data": fact.task}, origin=None, index=0)


def _spawn_plan(d: Decision, planned: Sequence[PlannedSubtask], *, parent: str | None) -> None:
    for subtask_id in spawning.spawn_plan(d, planned, parent=parent):
        if d.state.subtasks[subtask_id].status == "pending":
            joins.start_if_ready(d, subtask_id)


def _dispatched(d: Decision, fact: Dispatched) -> None:
    sub = d.state.subtasks.get(fact.subtask)
    if sub is None or sub.status != "ready" or fact.attempt != sub.attempt + 1:
        return
    d.emit(
        "subtask.dispatched",
        subtask=sub.id,
        agent=sub.agent,
        attempt=fact.attempt,
        generation=sub.generation,
    )


def current(d: Decision, subtask_id: str, attempt: int) -> Subtask | None:
    """Return the subtask whose outcome counts: only that of its current, open attempt does."""
    sub: Subtask | None = d.state.subtasks.get(subtask_id)
    return sub if sub is not None and (sub.status, sub.attempt) == ("open", attempt) else None


def _late(d: Decision, fact: Ended) -> None:
    d.emit(
        "attempt.ended_late",
        subtask=fact.subtask,
        attempt=fact.attempt,
        usage=fact.outcome.usage.to_json(),
    )


def _ended(d: Decision, fact: Ended) -> None:
    sub = current(d, fact.subtask, fact.attempt)
    if sub is None:
        _late(d, fact)
        return
    stopping = sub.cancelling or d.state.ending is not None
    match fact.outcome:
        case Completed():
            _completed(d, sub, fact, fact.outcome)
        case _ if stopping:
            d.emit("subtask.cancelled", subtask=sub.id, reason="cancelled")
        case AttemptCancelled():
            _given_back(d, sub)
        case Failed():
            _failed(d, sub, fact.outcome)
        case Parked():
            waits.park(d, sub, fact.attempt, fact.outcome)


def _completed(d: Decision, sub: Subtask, fact: Ended, outcome: Completed) -> None:
    if sub.kind == "plan" and d.state.ending is None:
        problem = spawning.plan_problem(d, outcome.spawns, parent=sub.id)
        if problem:
            failure = Failed("invalid_plan", problem, retryable=True, new_generation=True)
            _failed(d, sub, failure)
            return
    d.emit(
        "subtask.completed",
        subtask=sub.id,
        attempt=fact.attempt,
        agent=sub.agent,
        worker=fact.worker,
        output_hash=fact.output_hash,
        stop_reason=outcome.stop_reason,
        verified=outcome.verified,
        warnings=list(outcome.warnings),
        usage=outcome.usage.to_json(),
    )
    for index, finding in enumerate(outcome.findings):
        told = {"kind": finding.kind, "data": finding.data}
        d.emit("finding.reported", subtask=sub.id, agent=sub.agent, index=index, **told)
    if d.state.ending is not None:
        return
    if sub.kind == "plan":
        _spawn_plan(d, outcome.spawns, parent=sub.id)
    if spawning.may_trigger(sub):
        for index, finding in enumerate(outcome.findings):
            told = {"kind": finding.kind, "data": finding.data}
            spawning.react(d, sub.id, told, origin=sub, index=index)


def _failed(d: Decision, sub: Subtask, outcome: Failed) -> None:
    limits = d.state.sort_of().limits
    if outcome.retryable and sub.failures + 1 < limits.attempts:
        pause = limits.retry_base_s * 2**sub.failures * jitter(d.state.run, sub.id, sub.attempt)
        d.emit(
            "subtask.retry_scheduled",
            subtask=sub.id,
            attempt=sub.attempt,
            at=d.time + pause,
            error_class=outcome.error_class,
            message=outcome.message,
            new_generation=outcome.new_generation,
            usage=outcome.usage.to_json(),
        )
        return
    d.fail(
        sub.id,
        outcome.error_class,
        outcome.message,
        partial=outcome.partial,
        usage=outcome.usage.to_json(),
    )


def _expired(d: Decision, fact: Expired) -> None:
    sub = current(d, fact.subtask, fact.attempt)
    if sub is None:
        return
    d.emit("attempt.expired", subtask=sub.id, attempt=fact.attempt)
    if sub.cancelling or d.state.ending is not None:
        d.emit("subtask.cancelled", subtask=sub.id, reason="lease ran out while stopping")
    else:
        _again(d, sub)


def _given_back(d: Decision, sub: Subtask) -> None:
    d.emit("attempt.given_back", subtask=sub.id, attempt=sub.attempt)
    _again(d, sub)


def _again(d: Decision, sub: Subtask) -> None:
    if d.state.subtasks[sub.id].expiries >= d.state.sort_of().limits.expiries:
        d.fail(sub.id, "lost_worker", f"agent {sub.agent!r} lost its worker too often")
    else:
        d.ready(sub.id)


def _revoked(d: Decision, fact: Revoked) -> None:
    sub = current(d, fact.subtask, fact.attempt)
    if sub is not None and sub.cancelling:
        d.emit("subtask.cancelled", subtask=sub.id, reason="not begun")


def _unroutable(d: Decision, fact: Unroutable) -> None:
    sub = d.state.subtasks.get(fact.subtask)
    if sub is None or sub.status not in ("ready", "open"):
        return
    if sub.attempt + (sub.status == "ready") != fact.attempt:
        return
    if sub.cancelling:
        d.emit("subtask.cancelled", subtask=sub.id, reason="not begun")
    else:
        d.fail(sub.id, "unroutable", f"no live worker serves agent {sub.agent!r}")


def _timer(d: Decision, fact: TimerFired) -> None:
    if fact.kind == "wall":
        endings.end(d, "failed", "wall_time", "the run's wall time is over")
        return
    if fact.kind == "input":
        answer = Answered(fact.time, fact.key, waits.EXPIRED, by="expiry")
        waits.answer(d, answer)
        return
    sub = d.state.subtasks.get(fact.key)
    if sub is None or sub.status in TERMINAL:
        return
    if fact.kind == "retry" and sub.status == "waiting" and sub.attempt == fact.attempt:
        d.ready(sub.id)
    elif fact.kind == "until" and sub.status == "parked" and sub.attempt == fact.attempt:
        d.emit("subtask.pause_ended", subtask=sub.id)
        waits.resume_if_met(d, sub.id)
    elif fact.kind == "join" and sub.status == "pending":
        joins.deadline_passed(d, sub.id)


def _cancel(d: Decision, fact: CancelAsked) -> None:
    endings.end(d, "cancelled", "cancelled", fact.reason)


def _answered(d: Decision, fact: Answered) -> None:
    waits.answer(d, fact)


_DECIDERS: dict[type, Callable[[Decision, Any], None]] = {
    Submitted: _submitted,
    Dispatched: _dispatched,
    Ended: _ended,
    Expired: _expired,
    Revoked: _revoked,
    Unroutable: _unroutable,
    TimerFired: _timer,
    CancelAsked: _cancel,
    Answered: _answered,
}
