"""Removes reasoning that a server left in the visible text (``<think>`` blocks)."""

from __future__ import annotations

import re

_NAMES = r"(?:think|thinking|reasoning)"
_OPEN = re.compile(rf"<{_NAMES}>", re.IGNORECASE)
_CLOSE = re.compile(rf"</{_NAMES}>", re.IGNORECASE)
_LONE_CLOSE = re.compile(rf"^[ \t]*</{_NAMES}>[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_FINAL = re.compile(
    r"^[ \t*_#]*(?:final[ _]?answer|最終\S{0,6}?)[ \t*_]*[:：]", re.IGNORECASE | re.MULTILINE
)
_LABEL = re.compile(r"\s*[*_]*\w*[*_]*[:：]?[*_]*\s*")


def strip_thinking(text: str, *, everywhere: bool = False) -> str:
    """Return ``text`` without its reasoning.

    A block without its end reaches to the end of the text; an end alone on its line, without
    its beginning, ends reasoning that the prompt had opened.

    Args:
        text: What the model wrote.
        everywhere: Also between the steps of the text format, up to the final answer; otherwise
            at the beginning only. Never where a quote or brace stands before it on the line.
    """
    lone = _LONE_CLOSE.search(text)
    first = _OPEN.search(text)
    if lone is not None and (first is None or lone.start() < first.start()):
        text = text[lone.end() :]
    pos = 0
    while (start := _OPEN.search(text, pos)) is not None:
        before = text[: start.start()]
        line = before.rpartition("\n")[2]
        leading = not before.strip()
        if not leading and (not everywhere or _FINAL.search(before) is not None):
            break
        end = _CLOSE.search(text, start.end())
        if set(line) & set("\"'`{｛“") or (end is None and not _LABEL.fullmatch(line)):
            pos = start.end()
            continue
        text = before + (text[end.end() :] if end is not None else "")
        pos = start.start()
    return text
