"""A dialect: how tools are described to a model, and how its replies are read.

Native tool calls and the text format are two dialects of one type, so the loop is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.assignment import SubtaskKind
from agents.messages import AssistantMessage, Message, ToolCall
from agents.models.base import ToolSchema
from agents.tools import Tool

Language = Literal["en", "ja"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply says. The loop acts on the first that is there: calls, final, hint.

    Attributes:
        thought: Why the model does what it does; may be empty.
        calls: Tool calls to run; one whose arguments could not be read carries its ``error``.
        final: The final answer.
        repairs: Short names of what had to be repaired; each becomes a ``parse_repair`` event.
        hint: One line for the model: the fault, and what to write instead.
        text: What of the reply goes into the history: without invented observations.
    """

    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    final: str | None = None
    repairs: tuple[str, ...] = ()
    hint: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a system prompt is made of.

    Attributes:
        agent: Agent name.
        instructions: What the pipeline tells this agent.
        language: Language of the prompt itself.
        tools: Tools the agent may call.
        team: Name to description of the agents that may be planned for or asked.
        kind: ``plan`` and ``synthesize`` bring their own paragraph.
        output_schema: JSON Schema of the final answer, or None.
        parallel: Whether several tools may be called in one reply (native dialect).
    """

    agent: str
    instructions: str = ""
    language: Language = "en"
    tools: Sequence[Tool] = ()
    team: Mapping[str, str] = field(default_factory=dict)
    kind: SubtaskKind = "act"
    output_schema: dict[str, Any] | None = None
    parallel: bool = True


class Dialect(Protocol):
    """A way to speak with a model. Without state: one object serves all agents.

    Attributes:
        name: ``native`` or ``text``.
        stop: Stop sequences for each request.
    """

    @property
    def name(self) -> Literal["native", "text"]: ...

    @property
    def stop(self) -> tuple[str, ...]: ...

    def system(self, prompt: PromptParts) -> str:
        """Return the system prompt."""

    def tools(self, tools: Sequence[Tool]) -> tuple[ToolSchema, ...]:
        """Return the tools that go into the request itself."""

    def parse(
        self, message: AssistantMessage, tools: Sequence[Tool], *, new_id: Callable[[], str]
    ) -> Parsed:
        """Read a reply; never raises, and never completes arguments that were cut.

        Args:
            message: The reply.
            tools: The tools it may call; without any, plain text is the final answer.
            new_id: Gives an id that is unique in the conversation.
        """

    def assistant(self, message: AssistantMessage, parsed: Parsed) -> AssistantMessage:
        """Return the reply as it goes into the history."""

    def observation(self, call: ToolCall, text: str) -> Message:
        """Return the message that answers a tool call."""

    def nudge(self, hint: str) -> Message:
        """Return the message that tells the model what to do differently."""
