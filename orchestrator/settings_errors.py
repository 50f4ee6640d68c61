"""Errors of pipeline files, settings and references: what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        message: What is wrong.
        file: Path of the file, or the variable or flag that brought the value; empty for code.
        line: From 1; None when there is no line.
        column: From 1.
        hint: What to do next; may be empty.
    """

    message: str
    file: str = ""
    line: int | None = None
    column: int | None = None
    hint: str = ""

    def __str__(self) -> str:
        places = (self.file, self.line, self.column)
        place = ":".join(str(part) for part in places if part not in ("", None))
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}\n  {self.hint}" if self.hint else text


class SettingsError(Exception):
    """A pipeline file, an override or a reference cannot be used.

    Attributes:
        problems: All that was found, at most ten; the first also speaks through ``message``,
            ``file``, ``line``, ``column`` and ``hint``.
    """

    def __init__(
        self,
        message: str,
        file: str = "",
        *,
        line: int | None = None,
        column: int | None = None,
        hint: str = "",
        problems: Sequence[Problem] = (),
    ) -> None:
        found = tuple(problems) or (Problem(message, file, line, column, hint),)
        self.problems = found[:MAX_PROBLEMS]
        self.left_out = len(found) - len(self.problems)
        first = self.problems[0]
        self.message, self.hint = first.message, first.hint
        self.file, self.line, self.column = first.file, first.line, first.column
        super().__init__(message)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems]
        if self.left_out:
            lines.append(f"… and {self.left_out} more")
        return "\n".join(lines)

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> SettingsError:
        """Return one error for several problems.

        Args:
            problems: At least one, in the order to report them.
        """
        return cls(problems[0].message, problems=problems)


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?``, else the known names; empty when there are none."""
    names = sorted(set(known))
    lower = {other.lower(): other for other in reversed(names)}
    near = difflib.get_close_matches(name.lower(), list(lower), n=2, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(repr(lower[n]) for n in near)}?"
    return f"known: {', '.join(names)}" if names else ""
