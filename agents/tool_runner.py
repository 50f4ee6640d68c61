"""The tool runner: one tool call in, one ``ToolResult`` out, whatever the tool does."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from agents.context import RunContext
from agents.errors import Halt, ToolDefinitionError, ToolDenied
from agents.labels import Label
from agents.messages import ToolCall
from agents.redaction import Redactor
from agents.tool_arguments import near, short_form
from agents.tool_threads import still_running
from agents.tools import Tool, ToolResult

_LOG = logging.getLogger("cadenza.tools")
# Lone surrogates cannot be encoded; PostgreSQL stores no NUL.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class ToolRunner:
    """Runs the tools of one agent.

    Args:
        tools: Their names differ.
        redact: Takes secrets out of a text; by default a ``Redactor`` for the environment.

    Raises:
        ToolDefinitionError: Two tools have the same name.
    """

    def __init__(
        self, tools: Iterable[Tool], *, redact: Callable[[str], str] | None = None
    ) -> None:
        self._tools: dict[str, Tool] = {}
        self._redact = redact or Redactor().redact
        for tool in tools:
            if tool.name in self._tools:
                raise ToolDefinitionError(f"two tools are called {tool.name!r}: rename one")
            self._tools[tool.name] = tool

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order given."""
        return tuple(self._tools.values())

    def find(self, name: str) -> Tool | None:
        """Return the tool of that name, or None."""
        return self._tools.get(name)

    def unknown(self, name: str) -> ToolResult:
        """Return the error for a name that no tool has, with the names that are near."""
        names = ", ".join(self._tools) or "none"
        error = f"there is no tool {name[:64]!r}{near(name, self._tools)}; the tools are: {names}"
        return ToolResult("error", error=self._text(error))

    def still_running(self) -> tuple[str, ...]:
        """Return the synchronous tools whose calls were given up but whose threads go on."""
        return tuple(name for name in still_running() if name in self._tools)

    async def run(self, tool: Tool, call: ToolCall, ctx: RunContext) -> ToolResult:
        """Run one call within its limits.

        Args:
            tool: The tool that ``call`` names.
            call: What the model asked for.
            ctx: Handed to the tool with its deadline brought forward to the time-out.

        Returns:
            The result; errors of the tool and of the arguments are results too.

        Raises:
            Halt: The tool asked the gate, and the gate said stop.
        """
        started = time.monotonic()
        try:
            arguments = tool.validate(self._arguments(call))
        except ValueError as exc:
            usage = f"{tool.name}({short_form(tool.parameters)})"
            result = ToolResult("error", error=f"{exc}. Call it as {usage}")
        else:
            result = await self._admit(tool, arguments, ctx)
        untrusted = tool.reads == "untrusted"
        return replace(
            result,
            summary=cut(self._text(result.summary), tool.max_chars),
            error=None if result.error is None else cut(self._text(result.error), tool.max_chars),
            duration_s=time.monotonic() - started,
            label=Label("untrusted" if untrusted else "trusted", frozenset({tool.name})),
        )

    def _arguments(self, call: ToolCall) -> dict[str, Any]:
        if call.error is not None:
            raise ValueError(call.error)
        return {str(k): _map_text(v, storable) for k, v in call.arguments.items()}

    async def _admit(self, tool: Tool, arguments: dict[str, Any], ctx: RunContext) -> ToolResult:
        timeout_s = min(tool.timeout_s, ctx.deadline - time.time())
        if timeout_s <= 0:
            return ToolResult("timeout", error=f"no time was left to run {tool.name}")
        limit = tool.rate_limit
        if limit is not None:
            wait_s = limit.reserve(time.monotonic(), timeout_s)
            if wait_s > timeout_s:
                error = (
                    f"{tool.name} takes {limit.calls} calls in {limit.per_s:g} s; "
                    f"call it again in {math.ceil(wait_s)} s"
                )
                return ToolResult("rate_limited", error=error)
            if wait_s > 0:
                await asyncio.sleep(wait_s)
                timeout_s = min(tool.timeout_s, ctx.deadline - time.time())
        ctx = replace(ctx, deadline=min(ctx.deadline, time.time() + tool.timeout_s))
        result = await self._call(tool, arguments, ctx, timeout_s)
        return replace(result, cost_usd=tool.cost_usd)

    async def _call(
        self, tool: Tool, arguments: dict[str, Any], ctx: RunContext, timeout_s: float
    ) -> ToolResult:
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                value = await tool.call(arguments, ctx)
        except (Halt, asyncio.CancelledError):
            raise
        except ToolDenied as exc:
            return ToolResult("denied", error=str(exc))
        except Exception as exc:  # noqa: BLE001 - whatever a tool raises, the model is told
            if isinstance(exc, TimeoutError) and limit.expired():
                late = f"{tool.name} took longer than {timeout_s:g} s and was given up"
                if tool.name in self.still_running():
                    late += "; its thread is still running and may yet take effect"
                return ToolResult("timeout", error=late)
            _LOG.exception("tool %r failed", tool.name)
            return ToolResult("error", error=_describe(exc))
        try:
            return self._success(value)
        except (ValueError, RecursionError) as exc:
            _LOG.exception("tool %r returned something that is not JSON", tool.name)
            return ToolResult("error", error=f"the result of {tool.name} is not usable: {exc}")

    def _success(self, value: Any) -> ToolResult:
        try:
            data = _map_text(to_jsonable_python(_clean(value)), self._text)
        except PydanticSerializationError as exc:
            message = f"{exc}; return text, numbers, lists, dicts, dataclasses or pydantic models"
            raise ValueError(message) from exc
        if isinstance(data, str):
            return ToolResult("success", data, data)
        return ToolResult("success", data, json.dumps(data, ensure_ascii=False))

    def _text(self, text: str) -> str:
        return self._redact(storable(text))


def storable(text: str) -> str:
    """Return the text with lone surrogates and NULs replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def cut(text: str, max_chars: int) -> str:
    """Return the text, cut to ``max_chars`` with a note of how much was left out."""
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}\n[cut: {len(text) - max_chars} of {len(text)} characters left out]"


def _describe(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__


def _clean(value: Any) -> Any:
    """Return the value with storable text; the serializer fails at surrogates in keys."""
    match value:
        case bytes() | bytearray() | memoryview():
            raise ValueError("it holds bytes: decode them, or save them and return a name")
        case str():
            return storable(value)
        case dict():
            return {storable(k) if isinstance(k, str) else k: _clean(v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_clean(item) for item in value]
        case _:
            return value


def _map_text(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {change(k): _map_text(v, change) for k, v in value.items()}
        case list():
            return [_map_text(v, change) for v in value]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value
