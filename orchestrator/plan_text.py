"""Reading a plan from what a model wrote: fences, prose, other keys; cut JSON is never completed.

The key names are those that small models were seen to use instead of the asked ones.
"""

from __future__ import annotations

import json
import re
from typing import Any

from agents.outcome import PlannedSubtask

_LIST_KEYS = ("subtasks", "steps", "tasks", "plan", "items")
_ID_KEYS = ("id", "step_id", "task_id", "step", "name", "number")
_AGENT_KEYS = ("agent", "assignee", "assigned_to", "agent_name", "role", "worker")
_TASK_KEYS = ("task", "description", "instructions", "instruction", "action", "objective", "title")
_AFTER_KEYS = ("after", "depends_on", "dependencies", "dependsOn", "requires", "needs")

_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_JSON_START = re.compile(r'\{\s*"|\[\s*[{\["]')
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]|"', re.DOTALL)


def parse_plan(value: Any) -> tuple[PlannedSubtask, ...]:
    """Return the plan in a model's text or in a JSON value; it may still be invalid.

    Args:
        value: Text, or a parsed JSON value.

    Raises:
        ValueError: There is no plan in it; the message is for its author.
    """
    if isinstance(value, str):
        value = _from_text(_THINKING.sub("", value))
    items = _items(value)
    if items is None:
        raise ValueError('expected {"subtasks": [{"id": …, "agent": …, "task": …, "after": []}]}')
    return tuple(_subtask(item, number) for number, item in enumerate(items, 1))


def _from_text(text: str) -> Any:
    """Return the last value in a text that looks like a plan, else its single steps as a list."""
    found = [value for value in _values(text) if _items(value) is not None]
    if not found:
        raise ValueError("it holds no JSON; answer with the JSON object of the plan only")
    whole = [value for value in found if not _is_step(value)]
    return whole[-1] if whole else found


def _values(text: str) -> list[Any]:
    values: list[Any] = []
    problem: ValueError | None = None
    at = 0
    while (start := _JSON_START.search(text, at)) is not None:
        at = _end(text, start.start())
        try:
            values.append(json.loads(text[start.start() : at]))
        except (ValueError, RecursionError) as exc:
            detail = exc.msg if isinstance(exc, json.JSONDecodeError) else "nested too deeply"
            problem = ValueError(f"its JSON cannot be read: {detail}")
    if problem is not None and not any(_items(value) is not None for value in values):
        raise problem
    return values


def _end(text: str, start: int) -> int:
    """Return where the JSON value that begins at ``start`` ends."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        mark = match.group()
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
            if depth == 0:
                return match.end()
        elif mark == '"':
            break
    raise ValueError("its JSON is cut off; write a shorter plan")


def _is_step(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and any(key in value for key in _AGENT_KEYS)
        and any(key in value for key in _TASK_KEYS)
    )


def _items(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        return value if all(isinstance(item, dict | str) for item in value) else None
    if not isinstance(value, dict):
        return None
    for key in _LIST_KEYS:
        inner = value.get(key)
        if isinstance(inner, dict) and inner and all(isinstance(v, dict) for v in inner.values()):
            return [{"id": name, **item} for name, item in inner.items()]
        if isinstance(inner, list | dict) and (items := _items(inner)) is not None:
            return items
    return [value] if _is_step(value) else None


def _first(item: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((item[key] for key in keys if item.get(key) is not None), None)


def _text(value: Any) -> str:
    if isinstance(value, str | int) and not isinstance(value, bool):
        # Half a surrogate pair, as models write it in JSON escapes, fits in no file or request.
        return str(value).encode("utf-8", "replace").decode()
    return "" if value is None else json.dumps(value, ensure_ascii=True)


def _subtask(item: dict[str, Any] | str, number: int) -> PlannedSubtask:
    if isinstance(item, str):
        item = {"task": item}
    given = _first(item, _ID_KEYS)
    deadline = item.get("deadline_s")
    is_number = isinstance(deadline, int | float) and not isinstance(deadline, bool)
    return PlannedSubtask(
        id=f"s{number}" if given is None else _text(given).strip(),
        agent=_text(_first(item, _AGENT_KEYS)).strip(),
        task=_text(_first(item, _TASK_KEYS)).strip(),
        after=_after(_first(item, _AFTER_KEYS)),
        join="any" if item.get("join") == "any" else "all",
        deadline_s=float(deadline) if is_number and deadline is not None else None,
    )


def _after(value: Any) -> tuple[str, ...]:
    """Return ids: of a list, of one id, of ids with commas between, of steps with ids."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        value = [] if value is None else [value]
    ids = [_text(_first(v, _ID_KEYS) if isinstance(v, dict) else v).strip() for v in value]
    return tuple(dict.fromkeys(one for one in ids if one))
