"""Progress lines: one for each thing that a person wants to know of a run."""

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
    return f"{text[:width]}… ({len(text) - width:,} more)"


def line(word: str, text: str, color: str | None = None) -> str:
    """Return a line whose first word says what it is about; further lines are indented."""
    head = f"{word:>9}"
    head = head if color is None else click.style(head, fg=color)
    return f"{head}  {text}".replace("\n", f"\n{'':>11}")


class Progress:
    """Turns events into lines.

    Args:
        write: Takes one line.
        verbose: Whether to show each turn, and what models say as they say it.
    """

    def __init__(self, write: Callable[[str], None], *, verbose: bool = False) -> None:
        self._write = write
        self._verbose = verbose
        self._agents: dict[str, str] = {}
        self._said: dict[str, str] = {}

    def learn(self, event: Event | AgentEvent) -> None:
        """Take what later lines need of an event that is not shown."""
        if event.type == "subtask.spawned":
            self._agents[event.data["subtask"]] = event.data["agent"]

    def show(self, event: Event | AgentEvent) -> None:
        """Show one event, if it is of interest."""
        self.learn(event)
        if isinstance(event, AgentEvent):
            if self._verbose:
                self._speech(event)
            told = self._of_agent(event)
        elif event.type.startswith(("subtask.", "attempt.")):
            told = self._of_subtask(event.type, event.data)
        else:
            told = self._of_run(event.type, event.data)
        if told is not None:
            self._write(told)

    def name(self, subtask: str) -> str:
        """Return a subtask with its agent."""
        agent = self._agents.get(subtask, "")
        return f"{subtask} ({agent})" if agent else subtask

    def _of_subtask(self, kind: str, data: dict[str, Any]) -> str | None:
        name = self.name(data["subtask"])
        match kind:
            case "subtask.spawned":
                task = task_of(data)
                return line("subtask", f"{name}{origin(data)}{': ' if task else ''}{task}")
            case "subtask.dispatched":
                again = f", attempt {data['attempt']}" if data["attempt"] > 1 else ""
                return line("start", f"{name}{again}")
            case "subtask.completed":
                return line("done", f"{name}{_completed(data)}", "green")
            case "subtask.failed":
                return line("failed", f"{name}: {_why(data)}", "red")
            case "subtask.retry_scheduled":
                return line("retry", f"{name}: {_why(data)}", "yellow")
            case "subtask.parked" if data["subtasks"]:
                return line("waits", f"{name} for {', '.join(data['subtasks'])}")
            case "subtask.cancelled" | "subtask.superseded":
                because = data.get("reason") or f"by {data.get('by')}"
                return line(kind.removeprefix("subtask."), f"{name}: {because}")
            case "attempt.expired":
                return line("lost", f"{name}: its worker is gone; it goes on elsewhere", "yellow")
            case "attempt.given_back":
                return line("left", f"{name}: its worker stopped; it goes on elsewhere", "yellow")
        return None

    def _of_run(self, kind: str, data: dict[str, Any]) -> str | None:
        match kind:
            case "finding.reported":
                what = f"{data['kind']}: {short(data['data'])}"
                return line("finding", f"{self.name(data['subtask'])}: {what}", "cyan")
            case "reaction.refused":
                return line("refused", f"{data['agent']}: {data['reason']}", "yellow")
            case "input.requested":
                return line("asks", f"{self.name(data['subtask'])}: {data['rendered']}", "yellow")
            case "input.provided":
                by = f" by {data['by']}" if data.get("by") else ""
                return line("answered", f"{self.name(data['subtask'])}: {_answered(data)}{by}")
            case "replan.queued":
                return line("replan", f"{self.name(data['subtask'])} waits for the replan before")
            case "run.ending":
                return line("ending", f"{data['error_class']}: {short(data['message'])}", "red")
        return None

    def _speech(self, event: AgentEvent) -> None:
        said = self._said.get(event.subtask, "")
        if event.type == "text_delta":
            *lines, rest = (said + event.data["text"]).split("\n")
            self._said[event.subtask] = rest
        elif event.type in ("iteration_end", "agent_end"):
            lines = [self._said.pop(event.subtask, "")]
        else:
            return
        for text in filter(None, lines):
            self._write(line("says", f"{event.subtask}: {text}"))

    def _of_agent(self, event: AgentEvent) -> str | None:
        data = event.data
        match event.type:
            case "tool_start":
                call = f"{data['tool']}({_arguments(data['arguments'])})"
                return line("tool", f"{event.subtask}: {call}")
            case "tool_result":
                return line("", f"{event.subtask}: {data['tool']} → {short(data['summary'], 90)}")
            case "tool_error":
                why = f"{data['status']}: {short(data['error'], 90)}"
                return line("", f"{event.subtask}: {data['tool']} → {why}", "red")
            case "tool_duplicate":
                return line("", f"{event.subtask}: {data['tool']} → the same call as another")
            case "parse_repair":
                return line("repair", f"{event.subtask}: {data['repair']}", "yellow")
            case "budget_warning":
                used = f"{data['used']:.6g} of {data['limit']:.6g} {data['bound']} used"
                return line("budget", f"{event.subtask}: {used}", "yellow")
            case "agent_stop":
                why = f"{data['reason']}: no further turns"
                return line("stop", f"{event.subtask}: {why}", "yellow")
            case "iteration_end" if self._verbose:
                return line("turn", f"{event.subtask}: {data['iteration']}")
        return None


def origin(data: dict[str, Any]) -> str:
    """Return what a subtask waits for, or why there is one; ``data`` is of its spawning."""
    if data.get("replan_of"):
        return f" instead of {data['replan_of']}"
    if data.get("wait_mode"):
        word = "handed off" if data["wait_mode"] == "hand_off" else "asked"
        return f" {word} by {data['parent']}"
    if data.get("finding") and data.get("trigger"):
        return f" because of {data['finding']['kind']} from {data['trigger']}"
    after = data.get("after") or data.get("inputs") or ()
    join = " any of" if data.get("join") == "any" else ""
    return f" after{join} {', '.join(after)}" if after else ""


def task_of(data: dict[str, Any]) -> str:
    """Return the task of a subtask, where it is not the run's own."""
    own = data["kind"] != "act" or data["task"].strip("{} ") in ("", "task")
    return "" if own else short(data["task"])


def _completed(data: dict[str, Any]) -> str:
    told = f", by {data['adopted_from']}" if data.get("adopted_from") else ""
    if data.get("stop_reason") not in (None, "final_answer", "handed_off"):
        told += f" (stopped: {data['stop_reason']})"
    return told + "".join(f"\nwarning: {warning}" for warning in data.get("warnings", ()))


def _why(data: dict[str, Any]) -> str:
    return f"{data['error_class']}: {short(data['message'], 300)}"


def _arguments(arguments: dict[str, Any]) -> str:
    pairs = (f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in arguments.items())
    return short(", ".join(pairs), 80)


def _answered(data: dict[str, Any]) -> str:
    if data["expired"]:
        return "denied, because nobody answered in time"
    if data["approved"] is None:
        return short(data["value"])
    word = "approved" if data["approved"] else "denied"
    edited = f" with {short(data['value'])}" if data["value"] is not None else ""
    reason = f" ({data['reason']})" if data["reason"] else ""
    return f"{word}{edited}{reason}"
