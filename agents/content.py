"""Content of a message: text and blobs by hash."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes kept in the run store, named by their SHA-256.

    Attributes:
        media_type: For example ``image/png`` (RFC 6838).
        sha256: Lower-case hex digest of the bytes.
        name: File name for people and for tools.
        size: Number of bytes.
    """

    media_type: str
    sha256: str
    name: str
    size: int = 0


Content = tuple[Text | Blob, ...]


def text_of(content: Content) -> str:
    """Join the text parts."""
    return "".join(part.text for part in content if isinstance(part, Text))


def content_to_json(content: Content) -> list[dict[str, Any]]:
    """Return the plain-JSON form of content parts."""
    return [
        {"type": "text", "text": p.text}
        if isinstance(p, Text)
        else {
            "type": "blob",
            "media_type": p.media_type,
            "sha256": p.sha256,
            "name": p.name,
            "size": p.size,
        }
        for p in content
    ]


def content_from_json(parts: Iterable[dict[str, Any]]) -> Content:
    """Read the plain-JSON form of content parts."""
    return tuple(
        Text(p["text"])
        if p["type"] == "text"
        else Blob(p["media_type"], p["sha256"], p["name"], p.get("size", 0))
        for p in parts
    )
