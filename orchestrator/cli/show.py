"""The story of a run: who did what in which order, with which results, and why it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from agents.events import AgentEvent
from orchestrator.advance import RunView
from orchestrator.brief import read_output
from orchestrator.cli.people import how_to_answer
from orchestrator.cli.progress import Progress, line, origin, short, task_of
from orchestrator.cli.screen import cost_of, render
from orchestrator.cli.sources import store_option
from orchestrator.result import RunResult, read_result
from orchestrator.state import Event, RunState
from orchestrator.store.base import RunRow, RunStore

_TASK, _OUTPUT = 500, 300
_CLOSES = {
    "subtask.completed",
    "subtask.failed",
    "subtask.cancelled",
    "subtask.retry_scheduled",
    "subtask.parked",
    "attempt.expired",
    "attempt.given_back",
}
_WORDS = {"pending": "not begun", "ready": "not begun", "open": "at work"}
_QUIET = {"subtask.spawned", "subtask.ready"}  # the plan shows them
Attempt = tuple[str, int]


async def story_of(store: RunStore, row: RunRow, events: list[Event]) -> list[str]:
    """Return what happened in a run, as lines for people."""
    result = await read_result(store, row, events)
    option = await store_option(store)
    told = await _told(store, row, events)
    outputs = {
        e.seq: await read_output(store, e.data["output_hash"])
        for e in events
        if e.type == "subtask.completed" and not e.data.get("adopted_from")
    }
    return [
        *_head(row, result, option),
        "",
        click.style("subtasks", bold=True),
        *_plan(events),
        "",
        click.style("what happened", bold=True),
        *_timeline(row, events, told, outputs),
        "",
        *_end(result, option),
    ]


async def _told(
    store: RunStore, row: RunRow, events: list[Event]
) -> dict[Attempt, list[AgentEvent]]:
    """Return what the agents told, by attempt."""
    found: dict[Attempt, list[AgentEvent]] = {}
    for subtask in {e.data["subtask"] for e in events if e.type == "subtask.dispatched"}:
        for entry in await store.journal(row.run, subtask):
            if entry.kind == "event":
                event = AgentEvent.from_json(entry.data)
                found.setdefault((subtask, event.attempt), []).append(event)
    return found


def _head(row: RunRow, result: RunResult, option: str) -> Iterator[str]:
    status = result.status
    yield line("run", f"{row.run} · {row.pipeline} · {row.mode} · {status}")
    yield line("task", _cut(row.task, _TASK))
    files = ", ".join(str(blob["name"]) for blob in row.data.get("files", ()))
    for name, what in (("files", files), ("values", row.data.get("values"))):
        if what:
            yield line(name, short(what, _OUTPUT))
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.created))
    took = f"took {row.ended - row.created:.2f} s" if row.ended else "has not ended"
    yield line("time", f"{since}, {took}")
    yield line("cost", cost_of(result.usage))
    if result.trace_id:
        yield line("trace", f"{result.trace_id} · cadenza trace show {row.run}{option}")


def _plan(events: list[Event]) -> Iterator[str]:
    view = RunView(RunState())
    view.fold(events)
    names = {sub.id: f"{sub.id} ({sub.agent})" for sub in view.state.subtasks.values()}
    wide = max(map(len, names.values()), default=0)
    for subtask, data in view.brief.spawned.items():
        sub = view.state.subtasks[subtask]
        state = _WORDS.get(sub.status, sub.status)
        state += f" at attempt {sub.attempt}" if sub.attempt > 1 else ""
        yield f"{'':>11}{names[subtask]:<{wide}}  {state}{origin(data)}"
        if task := task_of(data):
            yield f"{'':>13}{task}"


def _timeline(
    row: RunRow,
    events: list[Event],
    told: dict[Attempt, list[AgentEvent]],
    outputs: dict[int, Any],
) -> list[str]:
    lines: list[str] = []
    progress = Progress(lines.append)

    def agents_of(attempt: Attempt) -> None:
        for known in told.pop(attempt, ()):
            progress.show(known)

    for event in events:
        if event.type in _QUIET:
            progress.learn(event)
            continue
        if event.type in _CLOSES and "attempt" in event.data:
            agents_of((event.data["subtask"], event.data["attempt"]))
        before = len(lines)
        progress.show(event)
        if len(lines) > before:
            lines[before] += click.style(f"  +{event.time - row.created:.2f} s", dim=True)
        if event.seq in outputs:
            lines.append(line("", f"→ {_result(outputs[event.seq])}"))
    for attempt in list(told):  # still open, or without a word on how it ended
        agents_of(attempt)
    return lines


def _end(result: RunResult, option: str) -> Iterator[str]:
    yield click.style("how it ended" if result.status != "running" else "so far", bold=True)
    for warning in result.warnings:
        yield line("warning", warning, "yellow")
    match result.status:
        case "completed":
            yield line("answer", render(result.output), "green")
        case "waiting":
            for asked in result.inputs:
                yield line("asks", f"{asked['subtask']}: {asked['rendered']}", "yellow")
                yield from how_to_answer(result.run, asked, option)
            yield line("then", f"cadenza runs resume {result.run}{option}")
        case "running":
            yield line("running", f"unless a process works on it: cadenza runs resume {result.run}")
        case _:
            yield line(result.status, f"{result.stop_reason}: {result.message}", "red")
            for name, output in result.partial.items():
                yield line("partial", f"{name}: {_result(output)}")


def _result(output: Any) -> str:
    return _cut(output, _OUTPUT) if isinstance(output, str) else short(output, _OUTPUT)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"
