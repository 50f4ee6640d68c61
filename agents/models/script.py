"""One line of a scripted model: what it answers, and what it may refer to."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from agents.content import text_of
from agents.errors import (
    BrokenStream,
    ContextOverflow,
    EmptyReply,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from agents.messages import Message, ToolMessage, UserMessage
from agents.models.base import CallKey

_TOKEN = re.compile(r"\{\{\s*(observation|user|match)((?:\.[^{}.\s]+)+)\s*\}\}")
_OBSERVATION = re.compile(r"Observation \[[A-Z_]+\]:\s*")
_ERRORS: dict[str, type[ModelError]] = {
    "unavailable": ModelUnavailable,
    "broken_stream": BrokenStream,
    "empty": EmptyReply,
    "context_overflow": ContextOverflow,
    "refused": ModelRefused,
}
_ERROR_KEYS = {"kind", "message", "status", "retry_after_s", "times"}


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """A reply and the calls it answers; a key that is None matches any.

    Attributes:
        agent: Agent name.
        subtask: Subtask id.
        call: Number of the model call.
        generation: Journal generation.
        match: Pattern searched in the last user or tool text.
        text: Visible text.
        tool_calls: ``{name, arguments}`` each, ``id`` if it matters.
        reasoning: Hidden reasoning.
        usage: Members of ``Usage``.
        finish_reason: Given or derived.
        model: The model that answered, in recordings.
        error: ``{kind, message, status, retry_after_s, times}``; with ``times`` the first tries
            of a call fail and the next one gets the reply.
        delay_s: Seconds before the reply.
        pieces: Number of pieces it is streamed in.
        verbatim: Whether tokens in it are text, as in recordings.
    """

    agent: str | None = None
    subtask: str | None = None
    call: int | None = None
    generation: int | None = None
    match: str | None = None
    text: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    reasoning: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None
    model: str = ""
    error: Mapping[str, Any] | None = None
    delay_s: float = 0.0
    pieces: int = 4
    verbatim: bool = False

    @classmethod
    def read(cls, data: Any, where: str) -> ScriptedReply:
        """Read a reply from YAML, JSON or Python.

        Raises:
            ValueError: A key is unknown or a value has the wrong form.
        """
        if isinstance(data, str):
            return cls(text=data)
        if not isinstance(data, Mapping):
            raise ValueError(f"{where}: a reply is a text or a mapping, not {data!r}")
        _check_keys(data, set(cls.__dataclass_fields__), where)
        values = dict(data)
        calls = values.get("tool_calls") or ()
        for call in calls:
            _check_keys(call, {"id", "name", "arguments", "error"}, f"{where}: tool_calls")
            if not isinstance(call.get("name"), str):
                raise ValueError(f"{where}: a tool call needs a `name`, got {call!r}")
        error = values.get("error")
        if isinstance(error, str):
            values["error"] = error = {"kind": error}
        if error is not None:
            _check_keys(error, _ERROR_KEYS, f"{where}: error")
            if error.get("kind") not in _ERRORS:
                raise ValueError(f"{where}: error.kind is one of {', '.join(_ERRORS)}")
        if values.get("match") is not None:
            try:
                re.compile(values["match"])
            except (re.error, TypeError) as exc:
                raise ValueError(f"{where}: match is not a pattern: {exc}") from exc
        return cls(**{**values, "tool_calls": tuple(calls)})

    def answers(self, key: CallKey, last: str) -> bool:
        """Return whether this reply is for the call."""
        mine = (self.agent, self.subtask, self.call, self.generation)
        theirs = (key.agent, key.subtask, key.call, key.generation)
        if any(m is not None and m != t for m, t in zip(mine, theirs, strict=True)):
            return False
        return self.match is None or re.search(self.match, last) is not None

    def failure(self, tries: int) -> ModelError | None:
        """Return the error of the ``tries``-th try of a call, from 0, or None."""
        if self.error is None or tries >= self.error.get("times", tries + 1):
            return None
        kind = _ERRORS[self.error["kind"]]
        message = self.error.get("message") or f"scripted error {self.error['kind']!r}"
        error = kind(message, status=self.error.get("status"))
        if isinstance(error, ModelUnavailable):
            error.retry_after_s = self.error.get("retry_after_s")
        return error

    def __str__(self) -> str:
        keys = ("agent", "subtask", "call", "generation", "match")
        given = [f"{k}={v!r}" for k in keys if (v := getattr(self, k)) is not None]
        return " ".join(given) or "any call"


def _check_keys(data: Any, known: set[str], where: str) -> None:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: needs a mapping, got {data!r}")
    for key in data:
        if key not in known:
            near = get_close_matches(str(key), known, 1)
            hint = (
                f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(known))}"
            )
            raise ValueError(f"{where}: unknown key {key!r}{hint}")


class Conversation:
    """What the tokens of a reply may refer to.

    ``{{observation.N}}`` is the N-th observation without its ``Observation [SUCCESS]:``,
    ``{{user.N}}`` the N-th other user text, both from 0, or from the end with -1;
    ``{{match.N}}`` is a group of ``match``, by number or name. Further parts go into JSON data:
    ``{{observation.-1.rows.0.sku}}``. Other tokens are left alone.

    Args:
        messages: The conversation.
        match: The pattern of the reply.
    """

    def __init__(self, messages: tuple[Message, ...], match: str | None) -> None:
        self.last = ""
        self._observations: list[str] = []
        self._users: list[str] = []
        for message in messages:
            if isinstance(message, ToolMessage):
                self.last = message.text
            elif isinstance(message, UserMessage):
                self.last = text_of(message.content)
            else:
                continue
            prefix = _OBSERVATION.match(self.last)
            if isinstance(message, ToolMessage) or prefix is not None:
                self._observations.append(self.last[prefix.end() if prefix else 0 :])
            else:
                self._users.append(self.last)
        self._match = re.search(match, self.last) if match is not None else None

    def fill(self, value: Any) -> Any:
        """Replace the tokens in a JSON value, once; what they bring in is not read again.

        A text that is one token becomes the JSON value it stands for.

        Raises:
            ModelRefused: A token refers to what is not there.
        """
        if isinstance(value, str):
            whole = _TOKEN.fullmatch(value)
            if whole is not None:
                return self._value(whole)
            return self.fill_text(value)
        if isinstance(value, Mapping):
            return {key: self.fill(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.fill(item) for item in value]
        return value

    def fill_text(self, text: str) -> str:
        """Replace the tokens in a text, once.

        Raises:
            ModelRefused: A token refers to what is not there.
        """
        return _TOKEN.sub(lambda found: _as_text(self._value(found)), text)

    def _value(self, token: re.Match[str]) -> Any:
        source, (which, *path) = token[1], token[2][1:].split(".")
        try:
            if source == "match":
                value: Any = self._group(which)
            else:
                texts = self._observations if source == "observation" else self._users
                value = texts[int(which)]
            return _walk(value, path)
        except (LookupError, ValueError, TypeError) as exc:
            raise ModelRefused(
                f"scripted reply: {token[0]} is not there ({exc}); the conversation has "
                f"{len(self._observations)} observations and {len(self._users)} user texts"
            ) from exc

    def _group(self, which: str) -> str:
        if self._match is None:
            raise LookupError("the reply has no `match`")
        return self._match[int(which) if which.isdecimal() else which] or ""


def _walk(value: Any, path: list[str]) -> Any:
    if path:
        value = _json_in(value)
    for part in path:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _json_in(text: str) -> Any:
    """Return the JSON value that a text is, or that begins at its first bracket."""
    try:
        return json.loads(text)
    except ValueError:
        start = re.search(r"[\[{]", text)
        if start is None:
            raise ValueError(f"no JSON in {text[:80]!r}") from None
        return json.JSONDecoder().raw_decode(text, start.start())[0]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
