"""The span of an attempt while it is worked on, and those of the agent's calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from agents.events import AgentEvent
from agents.messages import Message, ToolCall, messages_to_json
from agents.models.base import ModelReply, ModelRequest
from agents.outcome import Completed, Failed, Outcome, Parked
from agents.tools import Tool, ToolResult
from agents.usage import Usage
from tracing import attributes as names
from tracing.content import clip, messages_json
from tracing.spans import Span, Value, current, new_trace_context

_ATTEMPT: ContextVar[AttemptSpan | None] = ContextVar("cadenza_attempt", default=None)


class AttemptSpan:
    """The span of one attempt, open while the agent works, with the spans of its calls.

    Args:
        span: The attempt's own.
        common: Attributes of all its spans.
        heard: The span of the message that brought the work, or None.
    """

    def __init__(self, span: Span, common: Mapping[str, Value], heard: Span | None) -> None:
        self.span = span
        self.common = common
        self._heard = heard
        self.calls: list[Span] = []

    @property
    def traceparent(self) -> str:
        """The attempt's own place, for whoever it causes."""
        return self.span.context.traceparent

    @contextmanager
    def current(self) -> Iterator[None]:
        """Let calls made in this block belong to the attempt."""
        token = _ATTEMPT.set(self)
        try:
            with current(self.span.context):
                yield
        finally:
            _ATTEMPT.reset(token)

    def told(self, event: AgentEvent) -> None:
        """Take what the agent says at its end."""
        if event.type == "agent_end":
            self.span.set(
                {
                    names.ITERATIONS: event.data.get("iterations"),
                    names.NO_PROGRESS: event.data.get("no_progress"),
                }
            )

    def end(self, outcome: Outcome) -> list[Span]:
        """End the attempt and return all its spans, parents first."""
        match outcome:
            case Completed():
                self.span.set({names.STATUS: "completed", names.STOP_REASON: outcome.stop_reason})
            case Failed():
                self.span.set({names.STATUS: "failed", names.STOP_REASON: outcome.error_class})
                self.span.fail(outcome.error_class, outcome.message)
            case Parked():
                self.span.set({names.STATUS: "parked", names.STOP_REASON: "waiting"})
            case _:
                self.span.set({names.STATUS: "cancelled", names.STOP_REASON: "cancelled"})
        self.span.set(totals(outcome.usage))
        self.span.end()
        heard = [] if self._heard is None else [self._heard]
        for span in heard:
            span.end_s = self.span.end_s
        return [*heard, self.span, *self.calls]


def totals(usage: Usage) -> dict[str, Value | None]:
    """Return roll-up attributes; what is unknown is left out."""
    return {
        names.TOTAL_LLM_CALLS: usage.llm_calls,
        names.TOTAL_TOOL_CALLS: usage.tool_calls,
        names.TOTAL_INPUT_TOKENS: usage.input_tokens,
        names.TOTAL_OUTPUT_TOKENS: usage.output_tokens,
        names.TOTAL_COST_USD: usage.cost_usd,
    }


class AgentSpans:
    """Implements ``agents.limits.Spans``: each call becomes a child of the current attempt."""

    def __init__(self, agent: str, *, content: bool) -> None:
        self._agent = agent
        self._content = content

    @contextmanager
    def _call(self, name: str, operation: str) -> Iterator[Span]:
        attempt = _ATTEMPT.get()
        if attempt is None:
            yield Span(name, self._agent, new_trace_context(sampled=False), None)
            return
        parent = attempt.span.context
        span = Span(name, self._agent, parent.child(), parent)
        span.set({names.OPERATION: operation, names.AGENT: self._agent, **attempt.common})
        attempt.calls.append(span)
        try:
            with current(span.context):
                yield span
        except BaseException as exc:
            span.fail(getattr(exc, "error_class", type(exc).__name__), str(exc))
            raise
        finally:
            span.end()

    def chat(
        self, model: str, request: ModelRequest
    ) -> AbstractContextManager[Callable[[ModelReply], None]]:
        """Open the span of a model call."""
        return self._chat(model, request)

    @contextmanager
    def _chat(self, model: str, request: ModelRequest) -> Iterator[Callable[[ModelReply], None]]:
        provider, _, bare = model.partition("/")
        with self._call(f"chat {bare or model}", names.CHAT) as span:
            span.kind = "client"
            span.set({names.REQUEST_MODEL: bare or model, names.PROVIDER: provider})
            if self._content:
                span.set({names.INPUT_MESSAGES: _shown(request.messages)})

            def replied(reply: ModelReply) -> None:
                usage = reply.usage
                span.set(
                    {
                        names.RESPONSE_MODEL: reply.model or None,
                        names.FINISH_REASONS: [reply.finish_reason],
                        names.INPUT_TOKENS: usage.input_tokens,
                        names.OUTPUT_TOKENS: usage.output_tokens,
                        names.CACHED_TOKENS: usage.cached_tokens or None,
                        names.COST_USD: usage.cost_usd,
                    }
                )
                if self._content:
                    span.set({names.OUTPUT_MESSAGES: _shown([reply.message])})

            yield replied

    def execute_tool(
        self, tool: Tool, call: ToolCall
    ) -> AbstractContextManager[Callable[[ToolResult], None]]:
        """Open the span of a tool call."""
        return self._execute(tool, call)

    @contextmanager
    def _execute(self, tool: Tool, call: ToolCall) -> Iterator[Callable[[ToolResult], None]]:
        with self._call(f"execute_tool {tool.name}", names.EXECUTE_TOOL) as span:
            span.set({names.TOOL: tool.name, names.TOOL_CALL_ID: call.id})
            if self._content:
                span.set({names.TOOL_ARGUMENTS: clip(json.dumps(call.arguments))})

            def returned(result: ToolResult) -> None:
                span.set({names.TOOL_STATUS: result.status, names.COST_USD: result.cost_usd})
                if result.error is not None:
                    span.fail(result.status, result.error)
                if self._content:
                    span.set({names.TOOL_RESULT: clip(result.observation())})

            yield returned


def _shown(messages: Iterable[Message]) -> str:
    return messages_json((str(m["role"]), _text(m)) for m in messages_to_json(messages))


def _text(message: Mapping[str, Any]) -> str:
    said = message.get("text") or message.get("content") or message.get("tool_calls") or ""
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
