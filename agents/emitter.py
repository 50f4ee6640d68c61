"""Tells agent events at once, and stores each of them once."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agents.assignment import Assignment
from agents.events import AgentEvent, AgentEventType, OnEvent
from agents.replay import Tape

# What is told of work that is really done again, as opposed to replayed.
_PER_ATTEMPT = ("agent_start", "agent_end", "error", "text_discard", "tool_start")


class Emitter:
    """Emits the events of one attempt; what an earlier attempt stored is not told again.

    Data by type (``iteration`` counts from 1, ``position`` from 0 within a message):
        ``agent_start``: resumed, model, dialect.
        ``iteration_start``: iteration.
        ``text_delta``: iteration, text. The only type that is not stored.
        ``text_discard``: iteration. What was shown of this iteration is void.
        ``parse_repair``: iteration, repair.
        ``tool_start``: iteration, position, call_id, tool, arguments.
        ``tool_result``: iteration, position, call_id, tool, status, summary, duration_s, cost_usd.
        ``tool_error``: the same, with error.
        ``tool_duplicate``: iteration, position, call_id, tool, of (the position that ran).
        ``input_requested``: id, kind, rendered, expires_s.
        ``input_provided``: id, kind, approved, reason, expired.
        ``budget_warning``: bound, used, limit. At 80 % of a bound of the agent's own budget.
        ``error``: error_class, message.
        ``iteration_end``: iteration, usage (of the attempt so far).
        ``agent_stop``: iteration, reason. A stop condition ended the loop.
        ``agent_end``: outcome, reason, iterations, no_progress, usage. Reason is the stop reason
        or the error class.
    """

    def __init__(self, assignment: Assignment, tape: Tape, on_event: OnEvent) -> None:
        self._assignment = assignment
        self._tape = tape
        self._on_event = on_event
        # By content, not by count of all: calls of one message end in any order.
        self._told = Counter(
            _key(e["type"], e["attempt"], e["data"]) for e in tape.events if "type" in e
        )

    def emit(self, kind: AgentEventType, data: dict[str, Any]) -> None:
        """Tell an event, and store it with the next record unless it is a delta."""
        a = self._assignment
        key = _key(kind, a.attempt, data)
        if kind != "text_delta" and self._told[key] > 0:
            self._told[key] -= 1
            return
        event = AgentEvent(kind, a.run, a.subtask, a.attempt, a.agent, data)
        if kind != "text_delta":
            self._tape.put("event", event.to_json())
        self._on_event(event)


def _key(kind: str, attempt: int, data: dict[str, Any]) -> tuple[object, ...]:
    place = data.get("iteration"), data.get("position"), data.get("id"), data.get("bound")
    return kind, attempt if kind in _PER_ATTEMPT else None, *place
