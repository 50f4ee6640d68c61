"""Reads what follows an Action: a JSON object, a bare argument, or arguments in brackets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.dialects.loose_json import OPENERS, QUOTES, decode
from agents.dialects.signatures import (
    example_input,
    kind_of,
    properties,
    required,
    sole_parameter,
    tool_names,
)
from agents.tools import Tool

_FENCE = re.compile(r"\s*```[\w+-]*[ \t]*\r?\n?")
_FENCE_END = re.compile(r"^[ \t]*```", re.MULTILINE)
_NOTHING = {"none", "null", "nil", "n/a", "no input", "(none)", "(empty)", "-", "なし", "無し"}
_PAIR = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?|[Tt]rue|[Ff]alse|[Nn]one|null")


@dataclass(frozen=True, slots=True)
class ReadInput:
    """The arguments of a call, or their ``error``; ``end`` is the position after them."""

    arguments: dict[str, Any]
    error: str | None
    end: int
    repairs: tuple[str, ...] = ()


def wanted(name: str, tool: Tool | None, tools: Sequence[Tool]) -> str:
    """Return the sentence that tells the model what to write."""
    if tool is None:
        return f"There is no tool {name!r}; the tools are: {tool_names(tools)}."
    return f"Write: Action Input: {example_input(tool)}"


def read_input(text: str, start: int, stop: int, *, tool: Tool | None, hint: str) -> ReadInput:
    """Read the input that begins after an Action Input label.

    Args:
        text: The reply.
        start: Position after the label.
        stop: Position of the next label; a JSON object may reach beyond it.
        tool: The tool, or None if it is unknown.
        hint: What to write instead, for errors.
    """
    fence = _FENCE.match(text, start)
    fenced = ("code_fence",) if fence else ()
    at = fence.end() if fence else start
    while at < len(text) and (text[at].isspace() or text[at] == "`"):
        at += 1
    if at >= stop and not fence:
        return _missing(tool, stop, hint, label=True)
    if text[at : at + 1] and text[at] in OPENERS + QUOTES:
        try:
            got = decode(text, at)
        except ValueError as exc:
            error = f"Action Input is not a complete JSON object: {exc}. {hint}"
            return ReadInput({}, error, stop)
        rest = text[got.end : stop].strip().strip("`").strip()
        if text[at] in OPENERS or not rest:
            read = from_value(got.value, got.end, tool=tool, hint=hint)
            return _with(read, (*fenced, *got.repairs))
    if fence:
        close = _FENCE_END.search(text, fence.end())
        if close is None:
            return ReadInput({}, f"The code fence of Action Input has no end. {hint}", len(text))
        body = text[fence.end() : close.start()].rstrip("\r\n")
        return _with(bare(body, close.end(), tool=tool, hint=hint, block=True), fenced)
    return bare(text[at:stop].strip().strip("`").strip(), stop, tool=tool, hint=hint)


def from_value(value: Any, end: int, *, tool: Tool | None, hint: str) -> ReadInput:
    """Turn a decoded value into arguments: an object, its text, or the one argument."""
    if isinstance(value, str) and value.strip()[:1] and value.strip()[0] in OPENERS:
        try:
            inner = decode(value.strip())
        except ValueError:
            inner = None
        if inner is not None and isinstance(inner.value, dict):
            return ReadInput(inner.value, None, end, ("double_encoded", *inner.repairs))
    if isinstance(value, dict):
        return ReadInput(value, None, end)
    if value is None:
        return _missing(tool, end, hint, label=False)
    sole = sole_parameter(tool) if tool else None
    if tool is not None and sole is not None:
        is_list = isinstance(value, list)
        if is_list == (kind_of(properties(tool).get(sole)) == "array"):
            return ReadInput({sole: value}, None, end, ("bare_argument",))
    return ReadInput({}, f"Action Input must be a JSON object. {hint}", end)


def bare(raw: str, end: int, *, tool: Tool | None, hint: str, block: bool = False) -> ReadInput:
    """Read an argument that is not JSON: one line, or the block inside a code fence."""
    if raw.strip().casefold() in _NOTHING:
        return _missing(tool, end, hint, label=False)
    pairs = None if block else _pairs(raw)
    if pairs is not None and tool is not None and pairs.keys() <= properties(tool).keys():
        return ReadInput(pairs, None, end, ("keyword_arguments",))
    if not raw.strip() or raw.lstrip()[0] in OPENERS or not (block or _one_line(raw)):
        return ReadInput({}, f"Action Input must be one JSON object. {hint}", end)
    if tool is not None and (sole := sole_parameter(tool)) is not None:
        named = re.match(rf"{re.escape(sole)}\s*[:：]\s*(?=\S)", raw)
        value = raw[named.end() :] if named and not block else raw
        if kind_of(properties(tool).get(sole)) != "array":
            return ReadInput({sole: value}, None, end, ("bare_argument",))
    return ReadInput({}, f"Action Input must be a JSON object. {hint}", end)


def read_brackets(text: str, start: int, stop: int, *, tool: Tool | None, hint: str) -> ReadInput:
    """Read the arguments of ``f(…)`` or ``f[…]``; ``start`` is the opening bracket."""
    close = {"(": ")", "（": "）)", "[": "]", "［": "］]"}[text[start]] + ")]"
    at = start + 1
    while at < len(text) and text[at].isspace():
        at += 1
    if text[at : at + 1] and text[at] in OPENERS[:2]:
        read = read_input(text, at, stop, tool=tool, hint=hint)
        end = read.end + len(text[read.end :]) - len(text[read.end :].lstrip())
        closed = read.error is None and text[end : end + 1] in tuple(close)
        return _with(read, ("call_style",), end=end + 1 if closed else read.end)
    line = text[at:stop].split("\n", 1)[0].rstrip().rstrip("`*.;").rstrip()
    if not line or line[-1] not in close:
        return ReadInput({}, f"The brackets after the Action are not closed. {hint}", stop)
    end, inner = at + len(line), line[:-1].strip()
    if not inner:
        return ReadInput({}, None, end, ("call_style",))
    if inner[0] in QUOTES:
        try:
            got = decode(inner)
        except ValueError:
            return ReadInput({}, f"The brackets after the Action hold an open quote. {hint}", end)
        if got.end == len(inner):
            return _with(from_value(got.value, end, tool=tool, hint=hint), ("call_style",))
    return _with(bare(inner, end, tool=tool, hint=hint), ("call_style",))


def _pairs(raw: str) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    pos = 0
    while (pair := _PAIR.match(raw, pos)) is not None:
        at = pair.end()
        number = _NUMBER.match(raw, at)
        try:
            if number is not None:
                found[pair[1]], pos = decode(f"[{number[0]}]").value[0], number.end()
            elif raw[at : at + 1] and raw[at] in OPENERS + QUOTES:
                got = decode(raw, at)
                found[pair[1]], pos = got.value, got.end
            else:
                return None
        except ValueError:
            return None
        rest = raw[pos:].lstrip()
        if not rest:
            return found
        if rest[0] not in ",，、":
            return None
        pos = len(raw) - len(rest) + 1
    return None


def _missing(tool: Tool | None, end: int, hint: str, *, label: bool) -> ReadInput:
    # An empty label may be a cut reply, so only a tool without parameters runs on it.
    if tool is None or (not required(tool) and not (label and properties(tool))):
        return ReadInput({}, None, end)
    return ReadInput({}, f"Action Input is missing. {hint}", end)


def _one_line(raw: str) -> bool:
    return "\n" not in raw.strip()


def _with(read: ReadInput, repairs: tuple[str, ...], *, end: int | None = None) -> ReadInput:
    return ReadInput(
        read.arguments,
        read.error,
        read.end if end is None else end,
        tuple(dict.fromkeys((*repairs, *read.repairs))),
    )
