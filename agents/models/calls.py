"""Collects the tool calls of one reply from pieces whose index and id may be missing or wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.messages import ToolCall
from agents.models.arguments import BadArguments, is_object, read_arguments
from agents.models.base import ToolSchema
from agents.models.thinking import scrub

_CUT = (
    "Your message was cut at the token limit, so this call did not run. "
    "Call {name} again with shorter arguments, alone in the message."
)
_SCHEMA_CHARS = 600


def free_id(wanted: object, taken: set[str]) -> str:
    """Return ``wanted`` if it is a free, non-empty text, else a new id; mark it taken."""
    name = scrub(wanted) if isinstance(wanted, str) else ""
    number = len(taken)
    while not name.strip() or name in taken:
        name, number = f"call_{number}", number + 1
    taken.add(name)
    return name


@dataclass(slots=True, eq=False)
class _Call:
    id: Any
    name: str
    pieces: list[str] = field(default_factory=list)
    value: Any = None

    @property
    def bare(self) -> bool:
        return self.value is None and not any(self.pieces)

    @property
    def raw(self) -> Any:
        text = scrub("".join(self.pieces))
        return self.value if self.value is not None and not text.strip() else text

    @property
    def complete(self) -> bool:
        return isinstance(self.value, dict) or is_object("".join(self.pieces))

    def add(self, raw: Any) -> None:
        if isinstance(raw, str):
            self.pieces.append(raw)
        elif raw is not None:
            self.value = raw


class CallCollector:
    """Decides which call each piece belongs to.

    An index that was seen wins, unless the id says otherwise: some servers send all parallel
    calls under index 0. Without an index the id decides, without either the order. Arguments
    that begin anew after a complete object begin another call.

    Args:
        tools: The tools offered.
    """

    def __init__(self, tools: Sequence[ToolSchema] = ()) -> None:
        self._schemas = {tool.name: tool.parameters for tool in tools}
        self._calls: list[_Call] = []
        self._by_index: dict[int | str, _Call] = {}

    def take(self, item: Any, *, whole: bool = False) -> None:
        """Take one entry of ``tool_calls``.

        Args:
            item: The entry; what is not an object is ignored.
            whole: The entry is a call of its own, as in a body that was not streamed.
        """
        if not isinstance(item, dict):
            return
        function = item.get("function")
        if not isinstance(function, dict):
            function = item
        name, raw = function.get("name"), function.get("arguments")
        name = name if isinstance(name, str) else ""
        index, call_id = item.get("index"), item.get("id") or None
        index = index if isinstance(index, int | str) else None
        known = None if whole else self._find(index, call_id, name)
        if known is not None and self._begins_another(known, name, raw):
            if raw == known.raw and (call_id or not name):
                known.id = known.id or call_id
                return
            name, known = name or known.name, None
        if known is None:
            known = _Call(call_id, "")
            self._calls.append(known)
        if index is not None:
            self._by_index[index] = known
        known.id = known.id or call_id
        if name != known.name:
            known.name += name
        known.add(raw)

    def _find(self, index: int | str | None, call_id: Any, name: str) -> _Call | None:
        """Return the call that a piece continues, or None for a new one."""
        known = self._by_index.get(index) if index is not None else None
        if known is not None and (not call_id or not known.id or known.id == call_id):
            return known
        if index is not None and known is None and name:
            return None
        if call_id:
            same = next((c for c in reversed(self._calls) if c.id == call_id), None)
            if same is not None or name or known is not None:
                return same
        # A tail under an index or an id that its head did not have: the latest that still waits.
        waiting = (c for c in reversed(self._calls) if c.bare and not (call_id and c.id))
        latest = self._calls[-1] if self._calls and not call_id else None
        if name or index is None:
            late = self._calls[-1] if self._calls else None
            return late if late is not None and not (call_id and late.id) else None
        return next(waiting, latest)

    def _begins_another(self, known: _Call, name: str, raw: Any) -> bool:
        if name and known.name and name != known.name:
            return known.name in self._schemas or not known.bare
        starts = isinstance(raw, dict) or (isinstance(raw, str) and raw.lstrip()[:1] == "{")
        return starts and known.complete

    def calls(
        self, taken: set[str], *, cut: bool = False
    ) -> tuple[tuple[ToolCall, ...], list[str]]:
        """Return the calls in the model's order, and what was repaired.

        Args:
            taken: Ids that the conversation already uses; the new ones are added.
            cut: The reply was cut at the token limit, so none of its calls may run.
        """
        found: list[ToolCall] = []
        notes: list[str] = []
        for call in self._calls:
            name = scrub(call.name).strip()
            if not name and call.bare and not call.id:
                continue
            new_id = free_id(call.id, taken)
            if new_id != call.id:
                notes.append(f"tool call {name!r} had the id {call.id!r}; it is now {new_id!r}")
            try:
                arguments, error = read_arguments(call.raw), None
            except BadArguments as exc:
                arguments, error = {}, self._problem(name, exc)
                notes.append(f"arguments of tool call {new_id!r} are not a JSON object: {exc}")
            if not name:
                error = "This call names no tool. Call one of your tools by its name."
            if cut:
                error = _CUT.format(name=name or "the tool")
            found.append(ToolCall(new_id, name, {} if error else arguments, error))
        return tuple(found), notes

    def _problem(self, name: str, why: BadArguments) -> str:
        schema = self._schemas.get(name)
        fits = "."
        if schema is not None:
            fits = (
                f" that fits its schema: {json.dumps(schema, ensure_ascii=False)[:_SCHEMA_CHARS]}"
            )
        return (
            f"The arguments of {name} are not a JSON object ({why}), so it did not run. "
            f"Call {name} again with one JSON object{fits}"
        )
