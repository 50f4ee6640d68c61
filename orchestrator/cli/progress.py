"""Progress lines: one for each thing that a person wants to know while a run works."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from agents.events import AgentEvent
from orchestrator.state import Event

_WIDTH = 110


def short(value: Any, width: int = _WIDTH) -> str:
    """Return a value on one line, cut with a note of how much."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    return f"{text[:width]}… ({len(text) - width} more)"


class Progress:
    """Turns events into lines.

    Args:
        write: Takes one line.
        verbose: Whether to show each iteration and thought.
    """

    def __init__(self, write: Callable[[str], None], *, verbose: bool = False) -> None:
        self._write = write
        self._verbose = verbose
        self._agents: dict[str, str] = {}

    def show(self, event: Event | AgentEvent) -> None:
        """Show one event, if it is of interest."""
        if isinstance(event, AgentEvent):
            line = self._agent_line(event)
        else:
            line = self._ledger_line(event)
        if line is not None:
            self._write(line)

    def _name(self, subtask: str) -> str:
        agent = self._agents.get(subtask, "")
        return f"{subtask} ({agent})" if agent else subtask

    def _ledger_line(self, event: Event) -> str | None:
        data = event.data
        match event.type:
            case "subtask.spawned":
                self._agents[data["subtask"]] = data["agent"]
                return self._spawned(data)
            case "subtask.dispatched" if data["attempt"] > 1:
                return _line("again", f"{self._name(data['subtask'])}: attempt {data['attempt']}")
            case "subtask.dispatched":
                return _line("start", self._name(data["subtask"]))
            case "subtask.completed":
                return _line("done", self._completed(data), "green")
            case "subtask.failed":
                why = f"{data['error_class']}: {short(data['message'])}"
                return _line("failed", f"{self._name(data['subtask'])}: {why}", "red")
            case "subtask.retry_scheduled":
                why = f"{data['error_class']}: {short(data['message'])}"
                return _line("retry", f"{self._name(data['subtask'])}: {why}", "yellow")
            case "attempt.expired":
                return _line("lost", f"{self._name(data['subtask'])}: its worker is gone", "yellow")
            case "subtask.cancelled" | "subtask.superseded":
                word = event.type.removeprefix("subtask.")
                return _line(word, self._name(data["subtask"]))
            case "finding.reported":
                what = f"{data['kind']}: {short(data['data'])}"
                return _line("finding", f"{self._name(data['subtask'])}: {what}", "cyan")
            case "input.requested":
                return _line("asks", f"{data['input']}: {data['rendered']}", "yellow")
            case "input.provided":
                return _line("answered", f"{data['input']}: {_answered(data)}")
            case "run.ending":
                return _line("ending", f"{data['error_class']}: {short(data['message'])}", "red")
            case "reaction.refused":
                return _line("refused", f"{data['agent']}: {data['reason']}", "yellow")
        return None

    def _spawned(self, data: dict[str, Any]) -> str:
        after = f" after {', '.join(data['after'])}" if data.get("after") else ""
        task = f": {short(data['task'])}" if data.get("task") and data["kind"] == "act" else ""
        why = ""
        if data.get("finding") and data.get("trigger"):
            why = f" because of {data['finding']['kind']} from {data['trigger']}"
        return _line("subtask", f"{self._name(data['subtask'])}{after}{why}{task}")

    def _completed(self, data: dict[str, Any]) -> str:
        told = self._name(data["subtask"])
        if data.get("adopted_from"):
            told += f", by {data['adopted_from']}"
        if data.get("stop_reason") not in (None, "final_answer", "handed_off"):
            told += f" (stopped: {data['stop_reason']})"
        for warning in data.get("warnings", ()):
            told += f"\n           warning: {warning}"
        return told

    def _agent_line(self, event: AgentEvent) -> str | None:
        data = event.data
        match event.type:
            case "tool_start":
                call = f"{data.get('name', data.get('tool'))}({short(data.get('arguments'), 80)})"
                return _line("tool", f"{event.subtask}: {call}")
            case "tool_result" | "tool_error" | "tool_duplicate":
                text = data.get("summary") or data.get("error") or data.get("status")
                color = "red" if event.type == "tool_error" else None
                return _line("", f"{event.subtask}: → {short(text, 90)}", color)
            case "parse_repair":
                return _line("repair", f"{event.subtask}: {short(data)}", "yellow")
            case "budget_warning":
                return _line("budget", f"{event.subtask}: {short(data)}", "yellow")
            case "iteration_end" if self._verbose:
                return _line("turn", f"{event.subtask}: {short(data)}")
        return None


def _answered(data: dict[str, Any]) -> str:
    if data["expired"]:
        return "denied, because nobody answered in time"
    if data["approved"] is None:
        return short(data["value"])
    word = "approved" if data["approved"] else "denied"
    edited = f" with {short(data['value'])}" if data["value"] is not None else ""
    reason = f": {data['reason']}" if data["reason"] else ""
    return f"{word}{edited}{reason}"


def _line(word: str, text: str, color: str | None = None) -> str:
    return f"{click.style(f'{word:>9}', fg=color)}  {text}"
