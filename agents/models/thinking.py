"""Separates ``<think>…</think>`` from visible text, also when a stream cuts the tags in two."""

from __future__ import annotations

_OPEN = "<think>"
_CLOSE = "</think>"
_QUOTES = "`'\""


def scrub(text: str) -> str:
    """Return text that is valid Unicode: surrogate pairs joined, lone surrogates replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _held(text: str, *tags: str) -> int:
    """Return how many characters at the end may be the beginning of a tag."""
    start = text.rfind("<", -len(_CLOSE))
    if start < 0 or not any(tag.startswith(text[start:]) for tag in tags):
        return 0
    return len(text) - start


class ThinkSplitter:
    """Splits pieces of content into visible text and reasoning.

    A closing tag without an opening one makes all text before it reasoning, because chat
    templates of reasoning models put the opening tag into the prompt; ``voided`` is then True,
    and what was shown must be taken back. A quoted tag is text.
    """

    def __init__(self) -> None:
        self.visible: list[str] = []
        self.reasoning: list[str] = []
        self.voided = False
        self._inside = False
        self._thought = False
        self._rest = ""

    def feed(self, piece: str) -> str:
        """Take a piece of content and return the text that became visible."""
        text = self._rest + piece
        self._rest = ""
        if "<" not in text and not self._inside and text.isascii():
            return self._show(text)
        half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = scrub(text[:-1] if half else text)
        shown = []
        while text:
            text, out = self._inside_step(text) if self._inside else self._outside_step(text)
            shown.append(out)
        self._rest += half
        return "".join(shown)

    def finish(self) -> str:
        """Return what was held back as a possible tag."""
        rest, self._rest = scrub(self._rest), ""
        if self._inside:
            self.reasoning.append(rest)
            return ""
        return self._show(rest)

    def _show(self, text: str) -> str:
        if self._thought and not any(self.visible):
            text = text.lstrip()
        if text:
            self.visible.append(text)
        return text

    def _inside_step(self, text: str) -> tuple[str, str]:
        thought, closed, after = text.partition(_CLOSE)
        if closed:
            self.reasoning.append(thought)
            self._inside = False
            return after, ""
        held = _held(text, _CLOSE)
        self.reasoning.append(text[: len(text) - held])
        self._rest = text[len(text) - held :]
        return "", ""

    def _outside_step(self, text: str) -> tuple[str, str]:
        found = [(at, tag) for tag in (_OPEN, _CLOSE) if (at := text.find(tag)) >= 0]
        if not found:
            held = _held(text, _OPEN, _CLOSE)
            self._rest = text[len(text) - held :]
            return "", self._show(text[: len(text) - held])
        at, tag = min(found)
        before, after = text[:at], text[at + len(tag) :]
        last = before[-1:] or "".join(self.visible[-1:])[-1:]
        orphan = tag == _CLOSE and (self._thought or last not in ("", "\n"))
        if orphan or (last and last in _QUOTES):
            return after, self._show(before + tag)
        self._thought = True
        if tag == _OPEN:
            self._inside = True
            return after, self._show(before)
        self.voided = self.voided or bool(self.visible)
        self.reasoning += [*self.visible, before]
        self.visible.clear()
        return after, ""
