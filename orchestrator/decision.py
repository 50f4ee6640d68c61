"""One decision in the making: emits events and sees their effect at once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from orchestrator.state import TERMINAL, Event, RunState, evolve

_CLOSING = frozenset(f"subtask.{status}" for status in TERMINAL)


@dataclass(slots=True)
class Decision:
    """Events decided so far, over a draft of the state that they have already changed.

    Attributes:
        state: A draft; see ``RunState.draft``.
        time: Store time of the fact, seconds since the epoch.
        events: What was decided, in order.
        closed: Subtasks that became terminal and whose consequences are still to be drawn.
    """

    state: RunState
    time: float
    events: list[Event] = field(default_factory=list)
    closed: deque[str] = field(default_factory=deque)

    def emit(self, kind: str, /, **data: Any) -> None:
        """Decide one event."""
        event = Event(kind, data, time=self.time)
        self.events.append(event)
        evolve(self.state, event)
        if kind in _CLOSING:
            self.closed.append(data["subtask"])

    def ready(self, subtask_id: str, *, used: tuple[str, ...] | None = None) -> None:
        """Decide that a subtask may be dispatched."""
        sub = self.state.subtasks[subtask_id]
        extra = {} if used is None else {"used": list(used)}
        self.emit("subtask.ready", subtask=sub.id, agent=sub.agent, **extra)

    def fail(self, subtask_id: str, error_class: str, message: str, **data: Any) -> None:
        """Decide that a subtask failed for good."""
        sub = self.state.subtasks[subtask_id]
        self.emit(
            "subtask.failed",
            subtask=subtask_id,
            agent=sub.agent,
            attempt=sub.attempt,
            error_class=error_class,
            message=message,
            **data,
        )

    def cancel(self, subtask_id: str, reason: str) -> None:
        """Decide to cancel a subtask: at once when nobody works on it, else its worker is told."""
        sub = self.state.subtasks[subtask_id]
        if sub.status in TERMINAL or sub.cancelling:
            return
        if sub.status == "open":
            told = {"attempt": sub.attempt, "reason": reason}
            self.emit("subtask.cancel_requested", subtask=subtask_id, **told)
        else:
            self.emit("subtask.cancelled", subtask=subtask_id, reason=reason)


def jitter(run: str, subtask: str, attempt: int) -> float:
    """Return a factor in [0.5, 1.5) that is the same whenever the same thing is decided."""
    digest = sha256(f"{run}/{subtask}/{attempt}".encode()).digest()
    return 0.5 + int.from_bytes(digest[:4], "big") / 2**32
