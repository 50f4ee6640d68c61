"""Reads JSON the way small models write it: leniently, but complete or not at all.

Accepted beside RFC 8259: Python's quotes and constants, full-width punctuation (as an input
method types it), doubled braces (as a template teaches them), unquoted keys, trailing commas,
line breaks and unknown escapes in strings. Whatever is open at the end stays an error, because
an argument that was cut must never run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

# One character for one, so that a position in the copy is a position in the original.
FULL_WIDTH = {c: c - 0xFEE0 for c in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_STRUCTURE = FULL_WIDTH | {ord("、"): ord(",")}

OPENERS = "{｛[［"
QUOTES = "\"'“‘＂＇"
_CLOSERS = {'"': '"', "'": "'", "“": "“”", "‘": "‘’", "＂": "＂", "＇": "＇"}
_BODY = {q: re.compile(rf"((?:[^{c}\\]++|\\.)*+)[{c}]", re.DOTALL) for q, c in _CLOSERS.items()}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_KEY = re.compile(r"[A-Za-z_]\w*")
_SCALAR = re.compile(r"[^\s,:\[\]{}\"']+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Decoded:
    """A value that was read whole; ``repairs`` name what was not plain JSON."""

    value: Any
    end: int
    repairs: tuple[str, ...] = ()


def scrub(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates, which no encoding takes, by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def decode(text: str, start: int = 0) -> Decoded:
    """Read one object, array or string that begins at ``start``; what follows it is not read.

    Raises:
        ValueError: It is not complete or cannot be read; the message says where and why.
    """
    try:
        value, end = _STRICT.raw_decode(text, start)
        return Decoded(_clean(value), end)
    except (ValueError, RecursionError):
        reader = _Reader(text, start)
    try:
        value = _clean(reader.value(0))
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc
    return Decoded(value, reader.pos, tuple(sorted(reader.repairs or {"loose_json"})))


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")


_STRICT = json.JSONDecoder(strict=False, parse_constant=_constant)


def _clean(value: Any) -> Any:
    raw = json.dumps(value, ensure_ascii=False, allow_nan=False)
    clean = scrub(raw)
    return value if clean == raw else json.loads(clean)


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if code in _ESCAPES:
        return _ESCAPES[code]
    return code if code in "\"'\\/" else match[0]


class _Reader:
    def __init__(self, text: str, pos: int) -> None:
        self.text = text
        self.plain = text.translate(_STRUCTURE)
        self.start = self.pos = pos
        self.repairs: set[str] = set()

    def fail(self, fault: str) -> NoReturn:
        near = self.text[max(self.start, self.pos - 12) : self.pos + 12].strip()
        raise ValueError(f"{fault} (near {near!r})")

    def peek(self) -> str:
        while self.pos < len(self.plain) and self.plain[self.pos].isspace():
            self.pos += 1
        if self.pos >= len(self.plain):
            self.fail("it ends before it is complete")
        return self.plain[self.pos]

    def take(self, wanted: str) -> None:
        if self.peek() != wanted:
            self.fail(f"expected {wanted!r} but found {self.text[self.pos]!r}")
        if self.text[self.pos] != wanted:
            self.repairs.add("full_width")
        self.pos += 1

    def value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            self.fail("it is nested too deeply")
        char = self.peek()
        if char == "{":
            return self.object(depth)
        if char == "[":
            return self.array(depth)
        return self.string() if self.text[self.pos] in QUOTES else self.scalar()

    def object(self, depth: int) -> Any:
        self.take("{")
        if self.peek() == "{":
            inner = self.value(depth + 1)
            self.take("}")
            self.repairs.add("doubled_braces")
            return inner
        found: dict[str, Any] = {}
        while self.peek() != "}":
            key = self.key()
            self.take(":")
            found[key] = self.value(depth + 1)
            if self.peek() != ",":
                break
            self.take(",")
        self.take("}")
        return found

    def array(self, depth: int) -> list[Any]:
        self.take("[")
        found: list[Any] = []
        while self.peek() != "]":
            found.append(self.value(depth + 1))
            if self.peek() != ",":
                break
            self.take(",")
        self.take("]")
        return found

    def key(self) -> str:
        if self.text[self.pos] in QUOTES:
            return self.string()
        word = _KEY.match(self.plain, self.pos)
        if word is None:
            self.fail("a key must be in double quotes")
        self.pos = word.end()
        return word[0]

    def string(self) -> str:
        quote = self.text[self.pos]
        body = _BODY[quote].match(self.text, self.pos + 1)
        if body is None:
            self.fail("a string has no closing quote")
        if quote != '"':
            self.repairs.add("python_literal" if quote == "'" else "full_width")
        self.pos = body.end()
        return _ESCAPE.sub(_unescape, body[1])

    def scalar(self) -> Any:
        word = _SCALAR.match(self.plain, self.pos)
        found = word[0] if word else self.text[self.pos]
        if found.casefold() in _CONSTANTS:
            if found not in ("true", "false", "null"):
                self.repairs.add("python_literal")
            self.pos += len(found)
            return _CONSTANTS[found.casefold()]
        if _NUMBER.fullmatch(found) is None:
            self.fail(f"{found!r} is not a JSON value; put text in double quotes")
        self.pos += len(found)
        return json.loads(found)
