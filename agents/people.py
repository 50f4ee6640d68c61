"""Questions to people: approvals, questions of the model, effects in doubt.

A request parks the attempt; its id is in the journal, so every later attempt of the generation
asks under the same id and finds the answer in the assignment.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from agents.abilities import ability
from agents.assignment import Answer, Assignment
from agents.emitter import Emitter
from agents.messages import ToolCall
from agents.outcome import InputKind, InputRequest
from agents.replay import Place, Tape
from agents.tools import Tool, ToolResult

ASK_HUMAN = "ask_human"


def ask_human_tool() -> Tool:
    """Return the tool with which a model asks a person."""
    return ability(
        ASK_HUMAN,
        "Ask a person a question that you cannot answer otherwise, and wait for the answer.",
        {"question": "The whole question; the person sees nothing else."},
    )


class People:
    """The requests of one attempt."""

    def __init__(
        self, assignment: Assignment, tape: Tape, emitter: Emitter, *, expires_s: float
    ) -> None:
        self._assignment = assignment
        self._tape = tape
        self._emitter = emitter
        self._expires_s = expires_s

    def approval(self, place: Place, call: ToolCall) -> Answer | InputRequest:
        """Ask whether a call may be made; an answer's ``value`` replaces its arguments."""
        return self._ask(
            place,
            "approval",
            f"Agent {self._assignment.agent!r} wants to call {call.name}({_shown(call)}).",
            {"type": "object"},
            {"tool": call.name, "arguments": call.arguments},
        )

    def question(self, place: Place, call: ToolCall) -> Answer | InputRequest:
        """Ask what the model wants to know."""
        return self._ask(place, "question", str(call.arguments["question"]), None, {})

    def doubt(self, place: Place, call: ToolCall, key: str) -> Answer | InputRequest:
        """Ask about an effect that was begun and whose end nobody saw.

        Approved means: make the call again. Denied means: do not; with a ``value``, that is taken
        as the result of the call, without one the model is told that the outcome is unknown.
        """
        return self._ask(
            place,
            "effect_unknown",
            f"Agent {self._assignment.agent!r} called {call.name}({_shown(call)}) and stopped "
            "before its result was seen. Approve to make the call again. Deny not to repeat it; "
            "give its result as the value if it did happen.",
            {},
            {"tool": call.name, "arguments": call.arguments, "idempotency_key": key},
        )

    def _ask(
        self,
        place: Place,
        kind: InputKind,
        rendered: str,
        schema: dict[str, Any] | None,
        data: dict[str, Any],
    ) -> Answer | InputRequest:
        tries = len(self._tape.intents.get(place, ())) if kind == "effect_unknown" else 0
        known = self._tape.inputs.get((*place, kind, tries))
        input_id = known["id"] if known else self._new_id()
        answer = self._assignment.answers.get(input_id)
        if answer is not None:
            self._told(input_id, kind, answer)
            return answer
        request = InputRequest(input_id, kind, rendered, schema, data, self._expires_s)
        if known is None:
            turn, position = place
            line = {"turn": turn, "position": position, "kind": kind, "tries": tries}
            self._tape.put("input", {**line, "id": input_id})
        self._emitter.emit(
            "input_requested",
            {
                "id": input_id,
                "kind": kind,
                "rendered": rendered,
                "expires_s": request.expires_s,
            },
        )
        return request

    def _new_id(self) -> str:
        a = self._assignment
        n = len(self._tape.inputs)
        parts = json.dumps([a.run, a.subtask, a.generation, a.attempt, n])
        return sha256(parts.encode()).hexdigest()[:32]

    def _told(self, input_id: str, kind: str, answer: Answer) -> None:
        self._emitter.emit(
            "input_provided",
            {
                "id": input_id,
                "kind": kind,
                "approved": answer.approved,
                "reason": answer.reason,
                "expired": answer.expired,
            },
        )


def denied(answer: Answer) -> ToolResult:
    """Return what the model sees of a call that a person did not approve."""
    why = "nobody answered in time" if answer.expired else answer.reason or "no reason given"
    return ToolResult(
        "denied", error=f"A person did not approve this call: {why}. Do not repeat it."
    )


def answered(answer: Answer) -> ToolResult:
    """Return what the model sees of an answer to its question."""
    if answer.expired or answer.approved is False:
        why = "nobody answered in time" if answer.expired else answer.reason or "no reason given"
        return ToolResult("denied", error=f"No answer: {why}. Go on without it.")
    text = answer.value if isinstance(answer.value, str) else json.dumps(answer.value)
    return ToolResult("success", data=answer.value, summary=text)


def _shown(call: ToolCall) -> str:
    pairs = (f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in call.arguments.items())
    return ", ".join(pairs)
