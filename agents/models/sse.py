"""Cuts the bytes of a response into JSON objects: server-sent events, or one JSON body.

The format is the WHATWG HTML standard's "server-sent events", read as servers really send it:
any split of the bytes, any line ending, ``data:`` with and without a space, comments, objects
over several ``data:`` lines, no blank lines between events, and a plain JSON body where a
stream was asked for.
"""

from __future__ import annotations

import json
from typing import Any

from agents.errors import BrokenStream

_BOM = b"\xef\xbb\xbf"
_MAX_LINES = 1_000  # of one event; each new line parses the event again


class FrameParser:
    """Feeds on bytes and yields JSON objects.

    Attributes:
        done: Whether ``[DONE]`` was seen; what follows it is ignored.

    Args:
        max_bytes: Upper bound of one line or body.
    """

    def __init__(self, max_bytes: int = 32 * 1024 * 1024) -> None:
        self.done = False
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._started = False
        self._body = False
        self._pending: list[str] = []
        self._event = ""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Take bytes and return the objects that became complete.

        Raises:
            BrokenStream: An event is not JSON, or a line is too long.
        """
        buffer = self._buffer
        buffer += data
        if len(buffer) > self._max_bytes:
            raise BrokenStream(f"the server sent more than {self._max_bytes} bytes in one piece")
        if not self._started and not self._start():
            return []
        if self._body or (b"\n" not in data and b"\r" not in buffer):
            return []
        # A carriage return at the very end may be the first half of a line ending.
        end = max(buffer.rfind(b"\n"), buffer.rfind(b"\r", 0, len(buffer) - 1)) + 1
        lines = bytes(buffer[:end]).splitlines()
        del buffer[:end]
        return [frame for line in lines if (frame := self._line(line)) is not None]

    def close(self) -> list[dict[str, Any]]:
        """Return what the end of the bytes completes.

        Raises:
            BrokenStream: The last event or the body is not JSON.
        """
        rest, self._buffer = bytes(self._buffer), bytearray()
        if self._body:
            frame = _parse(rest.decode("utf-8", "replace"))
            if frame is _NOT_JSON:
                raise BrokenStream(f"the server's answer is not JSON: {_short(rest)}")
            return [frame] if isinstance(frame, dict) else []
        frames = [self._line(line) for line in (*rest.splitlines(), b"")]
        return [frame for frame in frames if frame is not None]

    def _start(self) -> bool:
        """Look at the first bytes to tell a body from a stream; False while undecided."""
        head = bytes(self._buffer[:64]).removeprefix(_BOM).lstrip()
        if not head or _BOM.startswith(head):
            return False
        self._started = True
        self._body = head[:1] in b"{["
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        return True

    def _line(self, line: bytes) -> dict[str, Any] | None:
        if self.done:
            return None
        if not line:
            if self._pending:
                raise BrokenStream(f"an event is not JSON: {_short(''.join(self._pending))}")
            self._event = ""
            return None
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            return self._data(text)
        if name == b"event":
            self._event = text.strip()
        elif name == b"error":  # llama.cpp reports a failure within a stream so
            found = _parse(text)
            return {"error": text if found is _NOT_JSON else found or text}
        return None

    def _data(self, text: str) -> dict[str, Any] | None:
        if not self._pending and text.strip() == "[DONE]":
            self.done = True
            return None
        if not self._pending and not text.strip():
            return None
        self._pending.append(text)
        frame = _parse("\n".join(self._pending))
        if frame is _NOT_JSON:
            if self._event == "error":
                self._pending.clear()
                return {"error": text}
            if len(self._pending) > _MAX_LINES:
                raise BrokenStream(f"an event is not JSON: {_short(self._pending[0])}")
            return None
        self._pending.clear()
        if not isinstance(frame, dict):
            return None
        if self._event == "error" and not frame.get("error"):
            return {"error": frame}
        return frame


_NOT_JSON = object()


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _short(data: bytes | str) -> str:
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    return repr(text[:120])
