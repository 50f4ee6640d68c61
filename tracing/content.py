"""Messages as spans show them: JSON strings, cut to a limit, only when capture is switched on."""

from __future__ import annotations

import json
from collections.abc import Iterable

MAX_CONTENT_BYTES = 8 * 1024


def messages_json(messages: Iterable[tuple[str, str]], *, limit: int = MAX_CONTENT_BYTES) -> str:
    """Return messages for ``gen_ai.input.messages`` or ``gen_ai.output.messages``.

    The result is valid JSON whatever the limit: the last messages are kept, the first of these is
    cut, and those before it are left out.

    Source: the GenAI conventions' JSON schema of messages.

    Args:
        messages: Role and text of each.
        limit: Most bytes of the result.
    """
    kept: list[str] = []
    room = limit - 2
    for role, text in reversed(list(messages)):
        encoded = _message(role, text)
        if (size := len(encoded.encode()) + 1) <= room:
            kept.append(encoded)
            room -= size
            continue
        if shorter := _cut_message(role, text, room - 1):
            kept.append(shorter)
        break
    return f"[{','.join(reversed(kept))}]"


def clip(text: str, *, limit: int = MAX_CONTENT_BYTES) -> str:
    """Return the text, cut to so many bytes with a note of how many characters are missing."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode()
    note_room = len(f" … [{len(text)} more characters]".encode())
    head = raw[: max(0, limit - note_room)].decode("utf-8", "ignore")
    return f"{head} … [{len(text) - len(head)} more characters]"


def _message(role: str, text: str) -> str:
    # A lone surrogate, as a broken model reply may hold, has no UTF-8.
    text = text.encode("utf-8", "replace").decode()
    parts = [{"type": "text", "content": text}]
    return json.dumps({"role": role, "parts": parts}, ensure_ascii=False, separators=(",", ":"))


def _cut_message(role: str, text: str, room: int) -> str | None:
    # Quotes and control characters grow in JSON, so the right length is found by halving.
    size = room
    while size > 0:
        shorter = _message(role, clip(text, limit=size))
        if (over := len(shorter.encode()) - room) <= 0:
            return shorter
        size = min(size - over, size - 1) if over < size // 2 else size // 2
    return None
