"""Agent events: what an agent tells while it works; frozen types, stable JSON.

All but ``text_delta`` are stored in the journal, in order, so that a watcher can come late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

AgentEventType = Literal[
    "agent_start",
    "iteration_start",
    "text_delta",
    "text_discard",
    "tool_start",
    "tool_result",
    "tool_error",
    "tool_duplicate",
    "parse_repair",
    "input_requested",
    "input_provided",
    "budget_warning",
    "error",
    "iteration_end",
    "agent_stop",
    "agent_end",
]


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """One event of one attempt.

    Attributes:
        type: One of the sixteen types.
        run: Run id.
        subtask: Subtask id.
        attempt: Attempt number.
        agent: Agent name.
        data: JSON object; what is in it depends on the type (see docs/reference).
    """

    type: AgentEventType
    run: str
    subtask: str
    attempt: int
    agent: str
    data: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the plain-JSON form."""
        return {
            "type": self.type,
            "run": self.run,
            "subtask": self.subtask,
            "attempt": self.attempt,
            "agent": self.agent,
            "data": self.data,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> AgentEvent:
        """Read the plain-JSON form."""
        return cls(**data)


OnEvent = Callable[[AgentEvent], None]
