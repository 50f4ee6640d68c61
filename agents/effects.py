"""Effects: effectively once, under a key that every attempt computes alike.

An effect goes ``intent → done | unknown``; the intent is on disk before the call. Where it ends:
a request already sent when the worker freezes is in doubt, and what is in doubt is repeated only
if the tool says it may be, reconciled if it can be, else decided by a person.
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import Any, Literal

from agents.assignment import Assignment
from agents.journal import EffectMark
from agents.messages import ToolCall
from agents.outcome import Finding
from agents.replay import Place, Tape
from agents.stops import canonical
from agents.tools import Tool, ToolResult

EffectStatus = Literal["fresh", "done", "doubt"]
# After these nothing was sent, so nothing is in doubt.
_NOT_SENT = ("denied", "rate_limited")


def effect_key(run: str, subtask: str, tool: str, arguments: dict[str, Any], k: int) -> str:
    """Return the idempotency key of the k-th equal call of a subtask, from 0."""
    return sha256(canonical([run, subtask, tool, arguments, k]).encode()).hexdigest()


class Effects:
    """The effects of one attempt's subtask."""

    def __init__(self, assignment: Assignment, tape: Tape) -> None:
        self._assignment = assignment
        self._tape = tape
        self._equal: Counter[str] = Counter()
        for known in tape.intents.values():
            for intent in known[:1]:
                self._equal[canonical([intent["tool"], intent["arguments"]])] += 1

    def intend(self, place: Place, tool: Tool, call: ToolCall, key: str) -> None:
        """Add the intent of a call; it must be recorded before the call is made."""
        turn, position = place
        data = {"turn": turn, "position": position, "tool": tool.name, "key": key}
        self._tape.put("tool_intent", {**data, "arguments": call.arguments})
        if tool.effect != "pure":
            self._tape.mark(EffectMark(key, "intent"))

    def withdraw(self, place: Place, key: str) -> None:
        """Say that an intent was written but the call is not made."""
        turn, position = place
        data = {"turn": turn, "position": position, "key": key, "void": True}
        self._tape.put("tool_intent", data)

    def key(self, place: Place, tool: Tool, call: ToolCall) -> str:
        """Return the key of a call: the recorded one, else that of the next equal call."""
        known = self._tape.intents.get(place)
        if known:
            return str(known[0]["key"])
        same = canonical([tool.name, call.arguments])
        k = self._equal[same]
        self._equal[same] += 1
        a = self._assignment
        return effect_key(a.run, a.subtask, tool.name, call.arguments, k)

    def status(self, key: str) -> EffectStatus:
        """Return what is known of an effect, from all generations."""
        mark = self._tape.effects.get(key)
        if mark is None or key in self._tape.void:
            return "fresh"
        if mark.state != "done":
            return "doubt"
        return "fresh" if (mark.result or {}).get("status") in _NOT_SENT else "done"

    def known(self, key: str) -> tuple[ToolResult, tuple[Finding, ...]]:
        """Return the result, with findings, of an effect that is done."""
        mark = self._tape.effects[key]
        assert mark.result is not None
        return read_result(mark.result)

    def doubt(self, key: str) -> None:
        """Mark an effect as unknown."""
        self._tape.mark(EffectMark(key, "unknown"))

    def close(self, key: str, result: ToolResult, findings: tuple[Finding, ...] = ()) -> None:
        """Mark an effect as done with its result, or as unknown if the tool did not return."""
        if result.status == "success" or result.status in _NOT_SENT:
            self.settle(key, result, findings)
        else:
            self.doubt(key)

    def settle(self, key: str, result: ToolResult, findings: tuple[Finding, ...] = ()) -> None:
        """Mark an effect as done, whatever its result says."""
        self._tape.mark(EffectMark(key, "done", write_result(result, findings)))


def write_result(result: ToolResult, findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Return the JSON form of a result and of what was reported on the way."""
    data = result.to_json()
    if findings:
        data["findings"] = [{"kind": f.kind, "data": f.data} for f in findings]
    return data


def read_result(data: dict[str, Any]) -> tuple[ToolResult, tuple[Finding, ...]]:
    """Read what ``write_result`` wrote."""
    plain = {k: v for k, v in data.items() if k != "findings"}
    findings = tuple(Finding(f["kind"], f["data"]) for f in data.get("findings", ()))
    return ToolResult.from_json(plain), findings
