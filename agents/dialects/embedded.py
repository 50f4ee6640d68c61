"""Tool calls that a model wrote into its text instead of calling: tags, fences, bare JSON.

Small models and misconfigured servers do this. Only known tools are called this way, and only
from complete JSON; a call that is clearly meant but broken becomes a fault to tell the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.dialects.loose_json import OPENERS, decode
from agents.dialects.signatures import resolve, tool_names
from agents.messages import ToolCall
from agents.tools import Tool

_TAG = re.compile(
    r"<(?:tool_calls?|tools?|function_calls?)>|\[TOOL_CALLS\]|<\|python_tag\|>", re.IGNORECASE
)
_START = re.compile(
    r"```(?:json|tool_calls?|tool_code)?[ \t]*\r?\n|"
    r"^[ \t]*(?=[{｛\[［\s]*[\"'“](?:name|function|type|arguments)\b)",
    re.MULTILINE,
)
_GAP = re.compile(r"(?:[\s,;]|```\w*|</?(?:tool_calls?|tools?|function_calls?)>)*", re.IGNORECASE)
_MEANT = re.compile(r"[{｛\[［\s]*[\"'“]?(?:name|function|type)\b")
_KEYS = {"name", "arguments", "parameters", "id", "type", "function"}


@dataclass(frozen=True, slots=True)
class Embedded:
    """Calls of known tools with the text ``before`` them, or the ``fault`` why there are none."""

    calls: tuple[ToolCall, ...]
    before: str
    repairs: tuple[str, ...] = ()
    fault: str | None = None


def call_shape(value: Any) -> tuple[str, Any] | None:
    """Return name and arguments of ``{"name": …, "arguments": …}``, or None for other values."""
    if not isinstance(value, dict) or not value.keys() <= _KEYS:
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        return call_shape(inner)
    name = value.get("name", inner)
    if not isinstance(name, str) or not value.keys() & {"arguments", "parameters"}:
        return None
    return name, value.get("arguments", value.get("parameters"))


def read_arguments(value: Any) -> tuple[dict[str, Any], str | None]:
    """Return the arguments object and, where the value is none, the fault.

    Null and empty text mean no arguments; text that holds an object is unwrapped once.
    """
    if isinstance(value, str) and value.strip():
        try:
            value = decode(value.strip()).value
        except ValueError as exc:
            return {}, f"The arguments are not a JSON object: {exc}."
    if value is None or value == "":
        return {}, None
    if not isinstance(value, dict):
        return {}, f"The arguments must be a JSON object, not {type(value).__name__}."
    return value, None


def find_calls(text: str, tools: Sequence[Tool], new_id: Callable[[], str]) -> Embedded | None:
    """Return the calls written into ``text``, or None when it holds none."""
    tag = _TAG.search(text)
    if tag is not None:
        return _collect(text, tag.start(), [tag.end()], tools, new_id, tagged=True)
    starts = list(_START.finditer(text))
    if not starts:
        return None
    return _collect(text, starts[0].start(), [s.end() for s in starts], tools, new_id)


def _read(text: str, starts: Sequence[int]) -> tuple[list[Any], list[str], str | None]:
    values: list[Any] = []
    repairs: list[str] = []
    end, fault = 0, None
    for start in starts:
        if start < end:
            continue
        pos = _gap_end(text, start)
        while pos < len(text) and text[pos] in OPENERS:
            try:
                got = decode(text, pos)
            except ValueError as exc:
                fault = str(exc) if _MEANT.match(text, pos) else fault
                break
            values.extend(got.value if isinstance(got.value, list) else [got.value])
            repairs.extend(got.repairs)
            end, pos = got.end, _gap_end(text, got.end)
    return values, repairs, fault


def _gap_end(text: str, pos: int) -> int:
    gap = _GAP.match(text, pos)
    return gap.end() if gap else pos


def _collect(
    text: str,
    at: int,
    starts: Sequence[int],
    tools: Sequence[Tool],
    new_id: Callable[[], str],
    *,
    tagged: bool = False,
) -> Embedded | None:
    values, repairs, fault = _read(text, starts)
    shapes = [shape for shape in map(call_shape, values) if shape]
    calls, unknown = [], []
    for name, arguments in shapes:
        tool = resolve(name, tools)
        if tool is None:
            unknown.append(name)
            continue
        calls.append(ToolCall(new_id(), tool.name, *read_arguments(arguments)))
    before = text[:at].strip()
    if calls:
        extra = ["unknown_call_dropped"] if unknown else []
        return Embedded(tuple(calls), before, ("textual_call", *repairs, *extra))
    if tagged and unknown:
        names = f"There is no tool {unknown[0]!r}; the tools are: {tool_names(tools)}."
        return Embedded((), before, (), names)
    if fault is not None and (tagged or _names_tool(text, tools)):
        return Embedded((), before, (), f"The tool call is not valid JSON: {fault}.")
    return None


def _names_tool(text: str, tools: Sequence[Tool]) -> bool:
    return any(f'"{tool.name}"' in text or f"'{tool.name}'" in text for tool in tools)
