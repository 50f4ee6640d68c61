"""What the model is shown: append-only until too long, then cut once, to 70 %.

Providers cache the prompt's prefix, so a prompt that only grows is cheap; cutting a little each
turn would lose the cache each turn.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.content import Blob, Text, text_of
from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage, user

CUT_TO = 0.7
_SHORTEST = 400
_AFTER_OVERFLOW = 2_000
_BLOB_CHARS = 4_000


def size(message: Message) -> int:
    """Return the length of a message in characters, as the provider will see it."""
    match message:
        case SystemMessage() | ToolMessage():
            return len(message.text)
        case UserMessage():
            blobs = sum(isinstance(p, Blob) for p in message.content)
            return len(text_of(message.content)) + blobs * _BLOB_CHARS
        case AssistantMessage():
            calls = sum(len(c.name) + len(json.dumps(c.arguments)) for c in message.tool_calls)
            return len(message.text) + calls


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Return about how many tokens a prompt has: four characters each."""
    return sum(size(m) for m in messages) // 4 + 4 * len(messages)


def shorten(text: str, limit: int) -> str:
    """Return text of about ``limit`` characters: its beginning, a note, its end."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    return f"{text[:head]}\n[… {len(text) - head - tail} characters cut …]\n{text[-tail:]}"


@dataclass(frozen=True, slots=True)
class Group:
    """Messages that stay or go together: an assistant's calls and all their observations."""

    messages: tuple[Message, ...]
    importance: int = 0


class Memory:
    """The conversation of one attempt.

    Args:
        head: System prompt and task: never cut.
        limit: Estimated tokens above which it is cut.
        keep_last: Newest groups that stay whatever their importance.
    """

    def __init__(self, head: Sequence[Message], *, limit: int, keep_last: int = 3) -> None:
        self._head = tuple(head)
        self._groups: list[Group] = []
        self._limit = limit
        self._keep_last = keep_last
        self._dropped = 0

    def add(self, *messages: Message, importance: int = 0) -> None:
        """Append messages that belong together; 0 is chatter, 2 a result, 3 a finding."""
        self._groups.append(Group(messages, importance))

    def mark_important(self) -> None:
        """Keep the newest group with calls for as long as possible."""
        for i in range(len(self._groups) - 1, -1, -1):
            if len(self._groups[i].messages) > 1:
                self._groups[i] = replace(self._groups[i], importance=9)
                return

    def messages(self) -> tuple[Message, ...]:
        """Return the prompt; what was left out is said in one line."""
        note = (
            (user(f"[{self._dropped} earlier messages were left out.]"),) if self._dropped else ()
        )
        return (*self._head, *note, *(m for g in self._groups for m in g.messages))

    def tokens(self) -> int:
        """Return the estimated size of the prompt."""
        return estimate_tokens(self.messages())

    def fit(self) -> None:
        """Cut to 70 % of the limit if the prompt is over it."""
        if self.tokens() > self._limit:
            target = int(self._limit * CUT_TO)
            self._drop(target)
            self._shorten(target)

    def reduce(self) -> None:
        """Cut after the model said that the prompt is too long: observations first."""
        target = int(self.tokens() * CUT_TO)
        self._groups = [
            replace(
                g, messages=(g.messages[0], *(_cut(m, _AFTER_OVERFLOW) for m in g.messages[1:]))
            )
            for g in self._groups
        ]
        self._drop(target)
        self._shorten(target)

    def _drop(self, target: int) -> None:
        old = range(max(0, len(self._groups) - self._keep_last))
        order = sorted(old, key=lambda i: (self._groups[i].importance, i))
        gone: set[int] = set()
        excess = self.tokens() - target
        for i in order:
            if excess <= 0:
                break
            gone.add(i)
            excess -= estimate_tokens(self._groups[i].messages)
            self._dropped += len(self._groups[i].messages)
        self._groups = [g for i, g in enumerate(self._groups) if i not in gone]

    def _shorten(self, target: int) -> None:
        while self.tokens() > target:
            places = [
                (size(m), i, j)
                for i, g in enumerate(self._groups)
                for j, m in enumerate(g.messages)
                if j > 0
            ]
            longest, i, j = max(places, default=(0, 0, 0))
            if longest <= _SHORTEST:
                return
            parts = list(self._groups[i].messages)
            # The note adds some characters, so halving is bounded from below.
            parts[j] = _cut(parts[j], max(_SHORTEST - 100, longest // 2))
            self._groups[i] = replace(self._groups[i], messages=tuple(parts))


def _cut(message: Message, limit: int) -> Message:
    match message:
        case ToolMessage():
            return replace(message, text=shorten(message.text, limit))
        case UserMessage():
            return UserMessage((Text(shorten(text_of(message.content), limit)),))
        case _:
            return message
