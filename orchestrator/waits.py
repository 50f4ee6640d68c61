"""Parking: what an attempt waits for, and how it goes on."""

from __future__ import annotations

from agents.assignment import Answer
from agents.outcome import Parked
from orchestrator import spawning
from orchestrator.decision import Decision
from orchestrator.facts import Answered
from orchestrator.state import TERMINAL, Subtask

EXPIRED = Answer(approved=False, reason="nobody answered in time", expired=True)


def park(d: Decision, sub: Subtask, attempt: int, outcome: Parked) -> None:
    """Park an attempt on people, children and time; resume it at once when all is met."""
    children = [spawning.spawn_child(d, sub, request) for request in outcome.children]
    for request in outcome.inputs:
        d.emit(
            "input.requested",
            input=request.id,
            subtask=sub.id,
            attempt=attempt,
            kind=request.kind,
            rendered=request.rendered,
            schema=request.schema,
            about=request.data,
            expires_at=d.time + request.expires_s,
        )
    d.emit(
        "subtask.parked",
        subtask=sub.id,
        attempt=attempt,
        inputs=[request.id for request in outcome.inputs],
        subtasks=children,
        until_at=None if outcome.until is None else d.time + outcome.until,
        hand_off=spawning.may_hand_off(sub)
        and any(request.mode == "hand_off" for request in outcome.children),
        usage=outcome.usage.to_json(),
    )
    for child_id in children:
        spawning.admit_child(d, child_id)
        child_ended(d, child_id)
    resume_if_met(d, sub.id)


def met(status: str) -> bool:
    """Return whether a waited-for subtask counts as met: when terminal, however it ended."""
    return status in TERMINAL


def child_ended(d: Decision, child_id: str) -> None:
    """Tell a waiting parent that its child is terminal; after a hand-off it adopts the end."""
    child = d.state.subtasks[child_id]
    if child.wait_mode is None or child.parent is None or not met(child.status):
        return
    parent = d.state.subtasks[child.parent]
    if parent.status != "parked" or child_id not in parent.children:
        return
    if parent.hand_off and child.wait_mode == "hand_off":
        adopt(d, parent, child)
        return
    d.emit("subtask.child_ended", subtask=parent.id, child=child_id, status=child.status)
    resume_if_met(d, parent.id)


def adopt(d: Decision, parent: Subtask, child: Subtask) -> None:
    """Give the parent its child's terminal kind and output, without another attempt."""
    if child.status == "completed":
        d.emit(
            "subtask.completed",
            subtask=parent.id,
            attempt=parent.attempt,
            agent=parent.agent,
            output_hash=child.output_hash,
            adopted_from=child.id,
            stop_reason="handed_off",
        )
    elif child.status == "failed":
        error = child.error_class or "failed"
        d.fail(parent.id, error, f"handed off to {child.id!r}, which failed")
    else:
        d.cancel(parent.id, f"handed off to {child.id!r}, which was cancelled")


def resume_if_met(d: Decision, subtask_id: str) -> None:
    """Make a parked subtask ready when nothing is left to wait for."""
    sub = d.state.subtasks[subtask_id]
    if sub.status == "parked" and not (sub.inputs or sub.children or sub.until):
        d.ready(subtask_id)


def answer(d: Decision, fact: Answered) -> None:
    """Accept the first answer to an open input request; later ones change nothing."""
    where = d.state.inputs.get(fact.input_id)
    if where is None:
        return
    subtask_id, attempt = where
    if d.state.subtasks[subtask_id].status != "parked":
        return
    d.emit(
        "input.provided",
        input=fact.input_id,
        subtask=subtask_id,
        attempt=attempt,
        approved=fact.answer.approved,
        value=fact.answer.value,
        reason=fact.answer.reason,
        expired=fact.answer.expired,
        by=fact.by,
    )
    resume_if_met(d, subtask_id)
