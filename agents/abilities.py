"""Built-in tools that the loop offers: report a finding, mark as important, ask, hand off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agents.context import RunContext
from agents.errors import ToolDenied
from agents.tools import Tool

REPORT_FINDING = "report_finding"
MARK_IMPORTANT = "mark_important"


async def _by_the_loop(arguments: dict[str, Any], ctx: RunContext) -> Any:
    raise ToolDenied("this call is made by the agent's loop, not by a tool runner")


def ability(
    name: str,
    description: str,
    words: dict[str, str],
    *,
    one_of: dict[str, tuple[str, ...]] | None = None,
    anything: tuple[str, ...] = (),
    call: Callable[[dict[str, Any], RunContext], Awaitable[Any]] = _by_the_loop,
) -> Tool:
    """Return a tool whose arguments are all required.

    Args:
        name: Its name.
        description: What the model is told.
        words: Argument to description; strings, unless named in ``anything``.
        one_of: Argument to its allowed values.
        anything: Arguments that take any JSON value.
        call: What it does; by default the loop does it.
    """
    allowed = one_of or {}
    properties: dict[str, Any] = {}
    for key, text in words.items():
        properties[key] = {"description": text}
        if key not in anything:
            properties[key]["type"] = "string"
        if key in allowed:
            properties[key]["enum"] = list(allowed[key])

    def validate(arguments: dict[str, Any]) -> dict[str, Any]:
        for key in words:
            value = arguments.get(key)
            if key not in anything and not (isinstance(value, str) and value.strip()):
                raise ValueError(f"{name} needs {key!r}: {words[key]}")
            if key in allowed and value not in allowed[key]:
                raise ValueError(f"{key} must be one of {', '.join(allowed[key])}, not {value!r}")
        return {k: arguments.get(k) for k in words}

    schema = {
        "type": "object",
        "properties": properties,
        "required": list(words),
        "additionalProperties": False,
    }
    return Tool(name, description, schema, call, validate)


def report_tool(kinds: tuple[str, ...]) -> Tool:
    """Return the tool with which a model reports findings of the given kinds."""

    async def report(arguments: dict[str, Any], ctx: RunContext) -> str:
        ctx.report(arguments["kind"], arguments["data"])
        return f"Reported as {arguments['kind']}."

    return ability(
        REPORT_FINDING,
        "Report something you found out; other agents may act on it. It is not your answer.",
        {"kind": "What kind of finding it is.", "data": "The finding, any JSON value."},
        one_of={"kind": kinds},
        anything=("data",),
        call=report,
    )


def mark_tool() -> Tool:
    """Return the tool with which a model keeps its last observation in memory."""

    async def mark(arguments: dict[str, Any], ctx: RunContext) -> str:
        return "Marked."

    return ability(
        MARK_IMPORTANT,
        "Keep the previous observation in view for as long as possible.",
        {"why": "Why it matters."},
        call=mark,
    )
