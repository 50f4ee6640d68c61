"""How subtasks come to be: plans, reactions and children; their ids are deterministic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agents.outcome import ChildRequest, PlannedSubtask
from orchestrator.decision import Decision
from orchestrator.plan import MAX_SUBTASKS, validate_plan
from orchestrator.state import Subtask

SYNTHESIS = "synthesis"


def spawn(d: Decision, subtask_id: str, kind: str, agent: str, *, task: str, **data: Any) -> None:
    """Spawn one subtask; ready at once when it depends on nothing.

    An id that exists already was spawned by a duplicate of the same cause: nothing happens.
    """
    if subtask_id in d.state.subtasks:
        return
    d.emit("subtask.spawned", subtask=subtask_id, kind=kind, agent=agent, task=task, **data)
    if not data.get("after"):
        d.ready(subtask_id)


def plan_problem(
    d: Decision, planned: Sequence[PlannedSubtask], *, parent: str | None
) -> str | None:
    """Return why a plan cannot be spawned, or None; a static plan may have any size."""
    done = [s for s in d.state.subtasks.values() if s.status == "completed"]
    problems = validate_plan(
        tuple(planned),
        agents=tuple(d.state.sort_of().agents),
        existing=tuple(s.id for s in done if s.kind == "act"),
        max_subtasks=len(planned) if parent is None else MAX_SUBTASKS,
    )
    # A child or a reaction of the planner, or the synthesizer, may have the id already.
    used = {SYNTHESIS} if parent is None else d.state.subtasks
    taken = (i.id for i in planned if planned_id(parent, i.id) in used)
    problems += [f"the id {name!r} is taken (choose another)" for name in taken]
    return "; ".join(problems) or None


def planned_id(parent: str | None, name: str) -> str:
    """Return the id of a planned subtask: its plan's, under its parent."""
    return name if parent is None else f"{parent}/{name}"


def spawn_plan(d: Decision, planned: Sequence[PlannedSubtask], *, parent: str | None) -> list[str]:
    """Spawn a plan's subtasks under their parent, dependencies first, and return their ids."""
    ids = []
    own = {item.id for item in planned}
    root = d.state.subtasks[parent] if parent is not None else None
    for item in in_order(planned):
        after = [planned_id(parent, dep) if dep in own else dep for dep in item.after]
        deadline = None if item.deadline_s is None else d.time + item.deadline_s
        ids.append(planned_id(parent, item.id))
        spawn(
            d,
            ids[-1],
            "act",
            item.agent,
            task=item.task,
            after=after,
            join=item.join,
            deadline_at=deadline,
            **_lineage(root),
        )
    return ids


def in_order(planned: Sequence[PlannedSubtask]) -> Iterable[PlannedSubtask]:
    """Yield a valid plan's subtasks, dependencies first, otherwise in the plan's order."""
    left = {item.id: item for item in planned}
    while left:
        for item in list(left.values()):
            if not any(dep in left for dep in item.after):
                del left[item.id]
                yield item


def _lineage(parent: Subtask | None) -> dict[str, Any]:
    if parent is None:
        return {}
    return {"parent": parent.id, "hop": parent.hop, "quiet": parent.quiet}


def may_trigger(author: Subtask) -> bool:
    """Return whether findings of this subtask trigger reactions: not after the synthesis began."""
    return not author.quiet


def may_hand_off(parent: Subtask) -> bool:
    """Return whether a subtask may give its whole task away.

    The synthesizer writes the answer itself, and a planner's plan cannot be adopted.
    """
    return not parent.quiet and parent.kind != "plan"


def reaction_id(origin: str, agent: str, index: int) -> str:
    """Return the id of a reaction: never built from an event id, which contains the attempt."""
    return f"{origin}/{agent}.{index}"


def react(
    d: Decision, origin_id: str, finding: dict[str, Any], *, origin: Subtask | None, index: int
) -> None:
    """Spawn a subtask for each agent that reacts to the finding's kind, except its author."""
    shape = d.state.sort_of()
    hop = 0 if origin is None else origin.hop + 1
    for agent, kinds in sorted(shape.agents.items()):
        if finding["kind"] not in kinds or (origin is not None and agent == origin.agent):
            continue
        if hop > shape.limits.hops:
            d.emit(
                "reaction.refused",
                subtask=origin_id,
                agent=agent,
                kind=finding["kind"],
                reason=f"hop limit of {shape.limits.hops} exceeded",
            )
            continue
        spawn(
            d,
            reaction_id(origin_id, agent, index),
            "act",
            agent,
            task="",
            trigger=None if origin is None else origin.id,
            finding=finding,
            hop=hop,
        )


def spawn_child(d: Decision, parent: Subtask, request: ChildRequest) -> str:
    """Spawn a child that its parked parent waits for, and return its id."""
    child_id = f"{parent.id}/{request.agent}-{request.k}"
    if child_id in d.state.subtasks:
        return child_id
    d.emit(
        "subtask.spawned",
        subtask=child_id,
        kind="act",
        agent=request.agent,
        task=request.task,
        parent=parent.id,
        wait_mode=request.mode,
        hop=parent.hop + 1,
        quiet=parent.quiet,
    )
    return child_id


def admit_child(d: Decision, child_id: str) -> None:
    """Make a new child ready, or fail it where it cannot be served."""
    child = d.state.subtasks[child_id]
    shape = d.state.sort_of()
    if child.status != "pending":
        return
    parent = d.state.subtasks[str(child.parent)]
    if child.wait_mode == "hand_off" and not may_hand_off(parent):
        d.fail(child_id, "may_not_hand_off", f"a {parent.kind!r} subtask does its task itself")
    elif child.agent not in shape.agents:
        d.fail(child_id, "unknown_agent", f"no agent is named {child.agent!r}")
    elif child.hop > shape.limits.hops:
        message = f"hop limit of {shape.limits.hops} exceeded"
        d.fail(child_id, "hop_limit", message)
    else:
        d.ready(child_id)
