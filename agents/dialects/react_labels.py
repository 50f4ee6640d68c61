"""Finds the labels of the text format: Thought, Action, Action Input, Observation, Final Answer.

English and Japanese, any case, full-width, in bold, as a heading or numbered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.dialects.loose_json import FULL_WIDTH

_WORDS = {
    "input": (
        r"action[ _-]?inputs?|"
        r"(?:行動|アクション|動作)(?:の|への)?[ _]?(?:入力|引数|インプット)"
    ),
    "observation": (
        r"observations?(?: ?\[[^\]\n]*\])?|(?:action|tool)[ _-]?(?:outputs?|results?|responses?)|"
        r"観察(?:結果)?|観測(?:結果)?|オブザベーション"
    ),
    "final": r"final[ _-]?answers?|最終(?:的な)?(?:回答|解答|答え|結論)",
    "thought": r"thoughts?|思考|考え",
    "action": r"action|行動|アクション|動作",
}
_ANY = "|".join(f"(?P<{kind}>{words})" for kind, words in _WORDS.items())
_STEPS = "|".join(f"(?P<{kind}>{_WORDS[kind]})" for kind in ("final", "action"))
_TAIL = r"(?:[ \t]*\d+)?[ \t]*(?P<close>[*_`]*)[ \t]*:"
_LINE = re.compile(
    rf"^[ \t>]*(?P<open>[*_`#]*)[ \t]*(?:{_ANY}){_TAIL}", re.IGNORECASE | re.MULTILINE
)
# A label in the middle of a line counts after the end of a sentence only: prose names labels too.
_INLINE = re.compile(
    rf"(?<=[.!?。])(?<![0-9]\.)[ \t]*(?P<open>[*_]*)(?:{_STEPS}){_TAIL}", re.IGNORECASE
)
_SAME_LINE_INPUT = re.compile(rf"[ \t,;.]+[*_`]*(?:{_WORDS['input']}){_TAIL}[*_]*", re.IGNORECASE)
_WEAK = re.compile(
    r"^[ \t]*(?:(?P<output>outputs?|results?|response|出力|結果)|"
    r"(?P<input>input|arguments?|args|parameters?|入力|引数))[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Label:
    """A label from ``start`` to after its colon; ``bold`` is decoration it did not close."""

    kind: str
    start: int
    end: int
    bold: str = ""


def find_labels(text: str, *, inline: bool = False) -> list[Label]:
    """Return the labels at line starts, with ``inline`` also those after a sentence, in order."""
    plain = text.translate(FULL_WIDTH)
    found = [_label(match, plain) for match in _LINE.finditer(plain)]
    if inline:
        found += [_label(match, plain) for match in _INLINE.finditer(plain)]
    return sorted(found, key=lambda label: label.start)


def _label(match: re.Match[str], plain: str) -> Label:
    kind = next(k for k in _WORDS if match.groupdict().get(k))
    marks = match["open"].strip("#")
    end = match.end()
    if marks and not match["close"]:
        if plain.startswith(marks, end):
            return Label(kind, match.start(), end + len(marks))
        return Label(kind, match.start(), end, marks)
    return Label(kind, match.start(), end)


def input_on_line(text: str, start: int, stop: int) -> re.Match[str] | None:
    """Return the Action Input label on the rest of an Action's line, if it is there."""
    line = text[start:stop].translate(FULL_WIDTH).split("\n", 1)[0]
    return _SAME_LINE_INPUT.search(text.translate(FULL_WIDTH), start, start + len(line))


def weak_label(text: str, start: int, stop: int) -> Label | None:
    """Return the first ``Input:`` or ``Output:`` line, words that mean a label after an Action."""
    match = _WEAK.search(text.translate(FULL_WIDTH), start, stop)
    if match is None:
        return None
    kind = "input" if match["input"] else "observation"
    return Label(kind, match.start(), match.end())
