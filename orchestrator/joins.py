"""When a subtask may start: joins over dependencies, and their deadlines."""

from __future__ import annotations

from orchestrator.decision import Decision
from orchestrator.state import TERMINAL, Subtask


def dependency_ended(d: Decision, subtask_id: str) -> None:
    """Start those dependents that waited for this subtask alone."""
    for dependent in d.state.subtasks[subtask_id].dependents:
        if d.state.subtasks[dependent].status == "pending":
            start_if_ready(d, dependent)


def start_if_ready(d: Decision, subtask_id: str) -> None:
    """Make a pending subtask ready when its join is met."""
    sub = d.state.subtasks[subtask_id]
    done = completed_dependencies(d, sub)
    if len(done) == len(sub.after) or (sub.join == "any" and done):
        start(d, subtask_id, done)


def completed_dependencies(d: Decision, sub: Subtask) -> tuple[str, ...]:
    """Return the dependencies that are completed."""
    return tuple(dep for dep in sub.after if d.state.subtasks[dep].status == "completed")


def start(d: Decision, subtask_id: str, used: tuple[str, ...]) -> None:
    """Make a subtask ready with these dependencies; cancel those that nobody else needs."""
    d.ready(subtask_id, used=used)
    for dep in d.state.subtasks[subtask_id].after:
        drop_if_unneeded(d, dep)


def drop_if_unneeded(d: Decision, subtask_id: str) -> None:
    """Cancel a running dependency that no pending subtask needs, and what only it needs."""
    sub = d.state.subtasks[subtask_id]
    if sub.status in TERMINAL or sub.cancelling or needed(d, sub):
        return
    d.cancel(subtask_id, "no longer needed")
    for dep in sub.after:
        drop_if_unneeded(d, dep)


def needed(d: Decision, sub: Subtask) -> bool:
    """Return whether a pending subtask, or nothing at all, depends on this one."""
    waiting = [d.state.subtasks[dependent].status == "pending" for dependent in sub.dependents]
    return not waiting or any(waiting)


def can_run(d: Decision, sub: Subtask) -> bool:
    """Return whether a pending subtask may still start some day."""
    states = [d.state.subtasks[dep].status for dep in sub.after]
    dead = [status in TERMINAL and status != "completed" for status in states]
    if sub.join == "all" and not sub.deadline:
        return not any(dead)
    return not all(dead)


def tolerated(d: Decision, sub: Subtask) -> bool:
    """Return whether all that depends on a failed subtask can do without it."""
    if not sub.dependents:
        return False
    for dependent_id in sub.dependents:
        dependent = d.state.subtasks[dependent_id]
        if dependent.status == "pending" and (dependent.join != "any" or not can_run(d, dependent)):
            return False
    return any(d.state.subtasks[dep].join == "any" for dep in sub.dependents)


def deadline_passed(d: Decision, subtask_id: str) -> None:
    """Start with what is completed, or fail with none."""
    done = completed_dependencies(d, d.state.subtasks[subtask_id])
    if done:
        start(d, subtask_id, done)
        return
    dependencies = d.state.subtasks[subtask_id].after
    message = "none of its dependencies completed before its deadline"
    d.fail(subtask_id, "join_deadline", message)
    for dep in dependencies:
        drop_if_unneeded(d, dep)


def skip_dead(d: Decision, cancelled: Subtask) -> None:
    """Cancel pending dependents that cannot run without a cancelled subtask."""
    for dependent_id in cancelled.dependents:
        dependent = d.state.subtasks[dependent_id]
        if dependent.status == "pending" and not can_run(d, dependent):
            d.cancel(dependent_id, f"{cancelled.id!r} was cancelled")
