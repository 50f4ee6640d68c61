"""Reads a step that a model wrote as JSON: ``{"thought": …, "action": …, "action_input": …}``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.dialects.action_input import ReadInput, from_value, wanted
from agents.dialects.loose_json import decode
from agents.dialects.signatures import resolve
from agents.tools import Tool

_THOUGHT = ("thought", "thoughts", "思考")
_ACTION = ("action", "tool", "tool_name", "name", "function", "行動")
_INPUT = ("action_input", "input", "tool_input", "arguments", "args", "parameters", "行動入力")
_FINAL = ("final_answer", "最終回答")
_MEANT = re.compile(
    rf"[{{｛\s]*[\"'“]?(?:{'|'.join((*_THOUGHT, *_ACTION, *_FINAL))})\b", re.IGNORECASE
)
FINISH = {"finish", "finalanswer", "final"}


@dataclass(frozen=True, slots=True)
class JsonStep:
    """A step in JSON: a call of ``name``, a ``final`` answer, or the ``fault`` in reading it."""

    end: int
    thought: str = ""
    name: str = ""
    read: ReadInput | None = None
    final: str | None = None
    fault: str | None = None
    repairs: tuple[str, ...] = ()


def is_finish(name: str, tools: Sequence[Tool]) -> bool:
    """Return whether an action's name means the final answer and is no tool's."""
    return re.sub(r"[\s_-]", "", name.casefold()) in FINISH and resolve(name, tools) is None


def answer_text(value: Any) -> str:
    """Return an answer given as JSON: text itself, the one text of an object, else its JSON."""
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        value = only if isinstance(only, str) else value
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_step(text: str, start: int, tools: Sequence[Tool]) -> JsonStep | None:
    """Read the step that begins at ``start``, or return None if what stands there is none."""
    try:
        got = decode(text, start)
    except ValueError as exc:
        return JsonStep(len(text), fault=str(exc)) if _MEANT.match(text, start) else None
    value = got.value[0] if isinstance(got.value, list) and got.value else got.value
    if not isinstance(value, dict):
        return None
    keys = {re.sub(r"[\s-]", "_", key.casefold()): key for key in value}

    def first(names: tuple[str, ...]) -> Any:
        return next((value[keys[n]] for n in names if n in keys and value[keys[n]]), None)

    thought, action = first(_THOUGHT), first(_ACTION)
    step = JsonStep(got.end, str(thought or "").strip(), repairs=got.repairs)
    given = first(_INPUT)
    if isinstance(action, dict):
        nested = read_step(json.dumps(action), 0, tools)
        return replace(nested, end=got.end, thought=step.thought) if nested else None
    if isinstance(action, str) and is_finish(action, tools) and given is not None:
        return replace(step, final=answer_text(given))
    if isinstance(action, str):
        tool = resolve(action, tools)
        read = from_value(given, got.end, tool=tool, hint=wanted(action, tool, tools))
        repairs = (*got.repairs, *read.repairs)
        return replace(step, name=tool.name if tool else action.strip(), read=read, repairs=repairs)
    final = first(_FINAL)
    if final is None and thought is not None:
        final = first(("answer",))
    return replace(step, final=answer_text(final)) if final is not None else None
