"""How subtasks fail and are cancelled, and how a run ends."""

from __future__ import annotations

from typing import Any

from orchestrator import joins, spawning
from orchestrator.decision import Decision
from orchestrator.state import TERMINAL, RunState, Subtask

NEVER_REPLANNED = frozenset({"budget", "wall_time"})


def failed(d: Decision, sub: Subtask) -> None:
    """Decide what a subtask that failed for good means for the rest of the run."""
    if sub.kind == "synthesize" or parent_waits(sub) or joins.tolerated(d, sub):
        return
    _exhausted(d, sub)


def parent_waits(sub: Subtask) -> bool:
    """Return whether a parent waits for this child; then it never replans."""
    return sub.wait_mode is not None


def _exhausted(d: Decision, sub: Subtask) -> None:
    shape = d.state.sort_of()
    error_class = sub.error_class or "failed"
    may_replan = (
        shape.planner is not None
        and sub.kind == "act"
        and not sub.quiet
        and error_class not in NEVER_REPLANNED
        and d.state.replans < shape.limits.replans
    )
    if not may_replan:
        kind = "over_budget" if error_class == "budget" else "failed"
        end(d, kind, error_class, f"{sub.id!r} failed: {error_class}", subtask=sub.id)
    elif d.state.replan_open is not None:
        supersede(d, sub)
        d.emit("replan.queued", subtask=sub.id)
    else:
        supersede(d, sub)
        replan(d, sub.id)


def replan(d: Decision, failed_id: str) -> None:
    """Spawn a plan subtask that replaces what cannot run any more."""
    failed = d.state.subtasks[failed_id]
    spawning.spawn(
        d,
        f"{failed_id}/replan",
        "plan",
        str(d.state.sort_of().planner),
        task="",
        parent=failed_id,
        replan_of=failed_id,
        hop=failed.hop,
    )


def next_replan(d: Decision) -> None:
    """Spawn the replan of a failure that waited for the one before."""
    if d.state.ending is not None or d.state.replan_open is not None or not d.state.replan_queue:
        return
    failed_id = d.state.replan_queue[0]
    sub = d.state.subtasks[failed_id]
    if d.state.replans < d.state.sort_of().limits.replans:
        replan(d, failed_id)
    else:
        error = sub.error_class or "failed"
        end(d, "failed", error, f"{failed_id!r} failed and no replan is left", subtask=failed_id)


def supersede(d: Decision, failed: Subtask) -> None:
    """Supersede pending dependents that cannot run without a failed subtask, and theirs."""
    for dependent_id in failed.dependents:
        dependent = d.state.subtasks[dependent_id]
        if dependent.status == "pending" and not joins.can_run(d, dependent):
            d.emit("subtask.superseded", subtask=dependent_id, by=failed.id)
            supersede(d, dependent)


def cancel_children(d: Decision, sub: Subtask) -> None:
    """Cancel what a subtask waited for as its parent."""
    for child_id in sub.spawned:
        if d.state.subtasks[child_id].wait_mode is not None:
            d.cancel(child_id, f"{sub.id!r} no longer waits")


def end(d: Decision, kind: str, error_class: str, message: str, *, subtask: str = "") -> None:
    """Begin to end the run: nothing new starts, and all that lives is cancelled."""
    if d.state.ending is not None:
        return
    d.emit("run.ending", kind=kind, error_class=error_class, message=message, subtask=subtask)
    for subtask_id in living(d.state):
        d.cancel(subtask_id, f"the run is ending: {error_class}")


def living(state: RunState) -> list[str]:
    """Return the subtasks that are not terminal, sorted by id."""
    return sorted(sub.id for sub in state.subtasks.values() if sub.status not in TERMINAL)


def leaves(state: RunState) -> list[str]:
    """Return the completed act subtasks that nothing completed consumed, sorted by id."""
    subs = state.subtasks

    def done(subtask_id: str) -> bool:
        return subs[subtask_id].status == "completed"

    def consumed(sub: Subtask) -> bool:
        by_dependent = any(done(x) and sub.id in (subs[x].used or ()) for x in sub.dependents)
        by_reaction = any(done(x) for x in sub.reactions)
        by_parent = sub.wait_mode is not None and sub.parent is not None and done(sub.parent)
        return by_dependent or by_reaction or by_parent

    def lost(sub: Subtask) -> bool:
        # An alternative that is not needed may complete before its worker hears of it.
        return sub.cancelling and state.ending is None

    found = (s for s in subs.values() if s.status == "completed" and s.kind == "act")
    return sorted(s.id for s in found if not (s.quiet or lost(s) or consumed(s)))


def finish(d: Decision) -> None:
    """Write the one final event when nothing is outstanding, or spawn the synthesizer first."""
    state = d.state
    if state.final is not None or state.shape is None or state.outstanding:
        return
    answers = leaves(state)
    if state.ending is not None:
        d.emit(f"run.{state.ending}", **_why(state), partial=answers)
    elif state.synthesis is not None:
        synthesis = state.subtasks[state.synthesis]
        if synthesis.status == "completed":
            d.emit("run.completed", answer=synthesis.id, answers=[])
        else:
            reason = f"the synthesizer {synthesis.agent!r} ended as {synthesis.status}"
            d.emit(
                "run.stalled",
                error_class=synthesis.error_class or "stalled",
                message=reason,
                partial=answers,
            )
    elif not answers:
        message = "no subtask completed, and nothing is left to do"
        d.emit("run.stalled", error_class="stalled", message=message, partial=[])
    elif state.shape.synthesizer is not None:
        name = state.shape.synthesizer
        spawning.spawn(
            d, spawning.SYNTHESIS, "synthesize", name, task="", inputs=answers, quiet=True
        )
    elif len(answers) == 1:
        d.emit("run.completed", answer=answers[0], answers=[])
    else:
        d.emit("run.completed", answer=None, answers=answers)


def _why(state: RunState) -> dict[str, Any]:
    data = state.ending_data
    return {key: data[key] for key in ("error_class", "message", "subtask")}
