"""Limits of an agent, and the spans it opens while it works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agents.messages import ToolCall
from agents.models.base import ModelReply, ModelRequest
from agents.tools import Tool, ToolResult
from agents.usage import Budget

Depth = Literal["instant", "normal", "deep"]
DEPTHS: dict[Depth, int] = {"instant": 3, "normal": 5, "deep": 10}


@dataclass(frozen=True, slots=True)
class Limits:
    """How far one subtask may go.

    Attributes:
        max_iterations: Model calls that may ask for tools; one more is made to force an answer.
        budget: Bounds of one subtask's journal, replayed calls included.
        parallel: Tool calls of one message that run at the same time.
        prompt_tokens: Estimated prompt size above which memory is cut once, to 70 %.
        reply_tokens: Completion tokens to reserve for a call.
        malformed: Replies in a row that cannot be read before an answer is forced.
        truncated: Replies in a row cut by ``max_tokens`` before an answer is forced.
    """

    max_iterations: int = DEPTHS["normal"]
    budget: Budget = field(default_factory=Budget)
    parallel: int = 8
    prompt_tokens: int = 32_000
    reply_tokens: int = 1_024
    malformed: int = 3
    truncated: int = 2


class Spans(Protocol):
    """Where an agent reports its calls to a tracer; the loop knows no tracing library."""

    def chat(
        self, model: str, request: ModelRequest
    ) -> AbstractContextManager[Callable[[ModelReply], None]]:
        """Open the span of one model call; the yielded function is told the reply."""

    def execute_tool(
        self, tool: Tool, call: ToolCall
    ) -> AbstractContextManager[Callable[[ToolResult], None]]:
        """Open the span of one tool call; the yielded function is told the result."""


class NoSpans:
    """Spans that go nowhere."""

    @contextmanager
    def chat(self, model: str, request: ModelRequest) -> Iterator[Callable[[ModelReply], None]]:
        """Do nothing."""
        yield lambda reply: None

    @contextmanager
    def execute_tool(self, tool: Tool, call: ToolCall) -> Iterator[Callable[[ToolResult], None]]:
        """Do nothing."""
        yield lambda result: None
