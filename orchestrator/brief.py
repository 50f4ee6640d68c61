"""What the ledger says beside the state: texts, findings and answers, folded as it grows.

The rules hold hashes only; whoever writes a ``work`` message needs the words.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from agents.assignment import Answer, Assignment, Input, SubtaskKind
from agents.content import Blob
from orchestrator.state import Event, RunState, Subtask
from orchestrator.store.base import RunStore, Scope

_ENDS = {
    "subtask.completed": "completed",
    "subtask.parked": "parked",
    "subtask.failed": "failed",
    "subtask.retry_scheduled": "failed",
    "subtask.cancelled": "cancelled",
    "attempt.given_back": "cancelled",
    "attempt.expired": "lost",
}


@dataclass(frozen=True, slots=True)
class Dispatch:
    """An attempt from its dispatch to its end, as the ledger tells it.

    Attributes:
        attempt: Attempt number.
        at: Store time of the dispatch.
        event: What ended it.
    """

    attempt: int
    at: float
    event: Event

    @property
    def subtask(self) -> str:
        """Whose attempt it is."""
        return str(self.event.data["subtask"])

    @property
    def status(self) -> str:
        """How it ended."""
        return _ENDS[self.event.type]

    @property
    def error(self) -> tuple[str, str] | None:
        """Error class and message, if it failed."""
        if self.status == "lost":
            return ("lost_worker", "its lease ran out")
        data = self.event.data
        return (data["error_class"], data["message"]) if self.status == "failed" else None

    @property
    def begun(self) -> bool:
        """Whether a worker had claimed it."""
        data = self.event.data
        return data.get("error_class") != "unroutable" and data.get("reason") != "not begun"


@dataclass(slots=True)
class Brief:
    """Words of a run, by subtask.

    Attributes:
        submitted: Data of ``run.submitted``.
        spawned: Data of ``subtask.spawned`` by subtask id.
        failed: Message of a failure by subtask id.
        answers: Answers of people by subtask id, then input id.
        open: Attempts that are dispatched and not ended, by subtask id.
        ended: Those that ended, by the ``seq`` of the event that ended them.
    """

    submitted: dict[str, Any] = field(default_factory=dict)
    spawned: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)
    open: dict[str, Event] = field(default_factory=dict)
    ended: dict[int, Dispatch] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """``traceparent`` of the run's root span, or empty."""
        return str(self.submitted.get("traceparent", ""))

    @property
    def pin(self) -> str:
        """What the run's messages are known by; see ``Scope.pin``."""
        return Scope(self.submitted.get("pipeline_hash", ""), self.submitted.get("mode", "")).pin

    def fold(self, event: Event) -> None:
        """Take one event."""
        data = event.data
        match event.type:
            case "run.submitted":
                self.submitted = data
            case "subtask.spawned":
                self.spawned[data["subtask"]] = data
            case "subtask.dispatched":
                self.open[data["subtask"]] = event
            case "subtask.failed":
                self.failed[data["subtask"]] = f"{data['error_class']}: {data['message']}"
            case "input.provided":
                answer = Answer(data["approved"], data["value"], data["reason"], data["expired"])
                self.answers.setdefault(data["subtask"], {})[data["input"]] = answer
        if event.type in _ENDS and data["subtask"] in self.open:
            sent = self.open.pop(data["subtask"])
            self.ended[event.seq] = Dispatch(sent.data["attempt"], sent.time, event)


async def assignment(
    store: RunStore, state: RunState, brief: Brief, *, subtask: str, team: dict[str, str]
) -> Assignment:
    """Put together all that an agent needs to do a subtask's current attempt.

    Args:
        store: Where outputs lie.
        state: The run, with the attempt dispatched.
        brief: Its words.
        subtask: Subtask id.
        team: Name to description of the pipeline's agents.
    """
    sub = state.subtasks[subtask]
    run = brief.submitted
    kind: SubtaskKind = sub.kind  # type: ignore[assignment]  # the rules spawn the three kinds only
    return Assignment(
        run=state.run,
        subtask=sub.id,
        attempt=sub.attempt,
        kind=kind,
        agent=sub.agent,
        task=brief.spawned[sub.id]["task"] or run["task"],
        run_task=run["task"],
        inputs=tuple(await _inputs(store, state, brief, sub)),
        children={
            child: await _result(store, state, brief, child)
            for child in sub.spawned
            if state.subtasks[child].wait_mode is not None
        },
        answers=dict(brief.answers.get(sub.id, {})),
        files=tuple(Blob(**blob) for blob in run.get("files", ())),
        values=dict(run.get("values", {})),
        session=run.get("session"),
        trust=run.get("task_trust", "trusted"),
        team=team,
        failure=await _failure(store, state, brief, sub),
        deadline=run["wall_at"],
        may_hand_off=not sub.quiet,
        generation=sub.generation,
    )


async def _inputs(store: RunStore, state: RunState, brief: Brief, sub: Subtask) -> list[Input]:
    spawned = brief.spawned[sub.id]
    if "replan_of" in spawned:
        done = [s for s in state.subtasks.values() if s.status == "completed" and s.kind == "act"]
        wanted = [s.id for s in done]
    elif sub.kind == "synthesize":
        wanted = list(spawned["inputs"])
    else:
        wanted = list(sub.used if sub.used is not None else sub.after)
    found = [await _result(store, state, brief, name) for name in sorted(wanted)]
    if spawned.get("finding") and sub.trigger is not None:
        finding = spawned["finding"]
        author = state.subtasks[sub.trigger].agent
        found.append(
            Input(sub.trigger, author, "completed", finding["data"], finding=finding["kind"])
        )
    return found


async def _result(store: RunStore, state: RunState, brief: Brief, subtask: str) -> Input:
    sub = state.subtasks[subtask]
    if sub.status == "completed" and sub.output_hash is not None:
        output = await read_output(store, sub.output_hash)
        return Input(sub.id, sub.agent, "completed", output)
    if sub.status == "failed":
        return Input(sub.id, sub.agent, "failed", error=brief.failed.get(sub.id, "failed"))
    return Input(sub.id, sub.agent, "cancelled", error=sub.status)


async def _failure(store: RunStore, state: RunState, brief: Brief, sub: Subtask) -> Input | None:
    replaced = brief.spawned[sub.id].get("replan_of")
    return None if replaced is None else await _result(store, state, brief, replaced)


async def read_output(store: RunStore, output_hash: str) -> Any:
    """Return an output by the hash of its canonical JSON."""
    return json.loads(await store.blob(output_hash))
