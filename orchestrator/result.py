"""What a run came to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from agents.usage import Usage
from orchestrator.brief import read_output
from orchestrator.state import TERMINAL, Event, RunState
from orchestrator.store.base import RunRow, RunStore

_CLOSING = frozenset(f"subtask.{status}" for status in TERMINAL)
RunStatus = Literal[
    "completed", "failed", "cancelled", "stalled", "over_budget", "waiting", "running"
]


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    Attributes:
        run: Run id.
        status: ``completed``; ``failed``, ``cancelled``, ``stalled`` or ``over_budget``;
            ``waiting`` when only people can move it on; ``running`` when it was left running.
        output: The answer, a JSON value; a mapping by subtask id when several leaves answer.
        partial: Outputs of completed leaves by subtask id, when there is no answer.
        stop_reason: ``final_answer``, a stop condition, or the error class.
        message: Why there is no answer, for people; empty when there is one.
        usage: What was spent, lost attempts included.
        trace_id: 32 hex digits.
        warnings: What the reader of the answer should know.
        inputs: Input requests that wait for an answer: the data of ``input.requested``.
    """

    run: str
    status: RunStatus
    output: Any = None
    partial: dict[str, Any] = field(default_factory=dict)
    stop_reason: str = ""
    message: str = ""
    usage: Usage = field(default_factory=Usage)
    trace_id: str = ""
    warnings: tuple[str, ...] = ()
    inputs: tuple[dict[str, Any], ...] = ()

    @property
    def cost(self) -> float | None:
        """US dollars; None if unknown."""
        return self.usage.cost_usd


def waits_for_people(state: RunState) -> bool:
    """Return whether nothing moves this run but an answer of a person."""
    asked = False
    for sub in state.subtasks.values():
        if sub.status in TERMINAL or (sub.status == "pending" and not sub.deadline):
            continue
        if sub.status != "parked" or sub.until:
            return False
        asked = asked or bool(sub.inputs)
    return asked and state.final is None


def open_inputs(events: list[Event]) -> tuple[dict[str, Any], ...]:
    """Return the data of the input requests that wait for an answer."""
    asked: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.type == "input.requested":
            asked[event.data["input"]] = event.data
        elif event.type == "input.provided":
            asked.pop(event.data["input"], None)
        elif event.type in _CLOSING:  # whoever asked no longer waits
            closed = event.data["subtask"]
            asked = {key: data for key, data in asked.items() if data["subtask"] != closed}
    return tuple(asked.values())


async def read_result(store: RunStore, row: RunRow, events: list[Event]) -> RunResult:
    """Put a run's result together from its ledger."""
    base = RunResult(
        run=row.run,
        status="running",
        usage=await store.usage(row.run),
        trace_id=row.trace.split("-")[1] if row.trace else "",
        warnings=tuple(_all_warnings(events)),
    )
    if row.status == "running":
        inputs = open_inputs(events)
        status: RunStatus = "waiting" if inputs else "running"
        return replace(base, status=status, stop_reason=status, inputs=inputs)
    final = next(e for e in reversed(events) if e.type == f"run.{row.status}").data
    completed = {e.data["subtask"]: e.data for e in events if e.type == "subtask.completed"}

    async def outputs(names: list[str]) -> dict[str, Any]:
        return {n: await read_output(store, completed[n]["output_hash"]) for n in names}

    if row.status != "completed":
        return replace(
            base,
            status=cast("RunStatus", row.status),
            partial=await outputs(final["partial"]),
            stop_reason=final["error_class"],
            message=_why(final, events),
        )
    answer = final["answer"]
    found = await outputs(final["answers"] if answer is None else [answer])
    reason = "final_answer" if answer is None else completed[answer]["stop_reason"]
    output = found if answer is None else found[answer]
    return replace(base, status="completed", output=output, stop_reason=reason)


def _why(final: dict[str, Any], events: list[Event]) -> str:
    """Return why a run ended, with the words of the subtask that failed."""
    failures = (
        e.data["message"]
        for e in reversed(events)
        if e.type == "subtask.failed" and e.data["subtask"] == final.get("subtask")
    )
    words = next(failures, "")
    return f"{final['message']}: {words}" if words else str(final["message"])


def _all_warnings(events: list[Event]) -> Iterator[str]:
    for event in events:
        if event.type == "subtask.completed":
            for warning in _warnings(event.data):
                yield f"{event.data['subtask']}: {warning}"


def _warnings(data: dict[str, Any]) -> list[str]:
    found = list(data.get("warnings", ()))
    if data.get("verified") is False:
        found.append("answered without the tools that were expected")
    return found
