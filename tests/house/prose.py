"""Reads Markdown as the house rules need it: the tree in the README, and sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DRAWING = re.compile(r"^[\s│├└─|`+\-]*")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_NOT_PROSE = re.compile(r"^\s*(#|\||<|\[[^\]]+\]:|!\[|\[!|---+$|===+$|:::|$)")
_ITEM = re.compile(r"^\s*([-*+]|\d+[.)])\s+(\[[ x]\]\s+)?")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SHORT = re.compile(r"\b(e\.g|i\.e|vs|cf|etc|approx|no|fig)\.", re.IGNORECASE)
_SECOND_SENTENCE = re.compile(r"[.!?][\"')*_]*\s+[\"'(*_]*[A-Z0-9`]|[。！？][^」）\s]")
_END = re.compile(r"[.!?:;…。！？：|\"”)*_`}>]$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a drawn tree.

    Attributes:
        path: From the root of the tree, without its name.
        folder: Whether it ends in a slash.
        about: What the line says of it.
    """

    path: str
    folder: bool
    about: str


def fenced_blocks(markdown: str) -> list[list[str]]:
    """Return the lines of each fenced block."""
    blocks: list[list[str]] = []
    fence = ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if fence and mark and mark[1].startswith(fence):
            fence = ""
        elif fence:
            blocks[-1].append(line)
        elif mark:
            fence = mark[1]
            blocks.append([])
    return blocks


def tree(markdown: str, root: str) -> list[Entry]:
    """Read the fenced block that begins with the root's name.

    The depth of a line is where its name begins, so that lines drawn with ``├──`` and plainly
    indented ones read the same. A line that names several files (``a.py, b.py``) is not one.

    Raises:
        ValueError: No such block.
    """
    block = next((b for b in fenced_blocks(markdown) if b and b[0].split()[:1] == [root]), None)
    if block is None:
        raise ValueError(f"no fenced block begins with {root!r}")
    entries: list[Entry] = []
    above: list[tuple[int, str]] = []
    for line in block[1:]:
        indent = len((_DRAWING.match(line) or [""])[0])
        name, _, about = line[indent:].strip().partition(" ")
        if not name or name.startswith("#"):
            continue
        while above and above[-1][0] >= indent:
            above.pop()
        path = "".join(part for _, part in above) + name
        entries.append(Entry(path.rstrip("/"), name.endswith("/"), about.strip(" #—-")))
        if name.endswith("/"):
            above.append((indent, name))
    return entries


def prose_faults(markdown: str) -> list[tuple[int, str]]:
    """Return lines that hold two sentences, or a part of one, with what is wrong."""
    faults = []
    lines = _prose(markdown)
    for n, line in lines.items():
        if _SECOND_SENTENCE.search(line):
            faults.append((n, "two sentences"))
        following = lines.get(n + 1)
        if following and not _END.search(line) and not _ITEM.match(following):
            faults.append((n, "the sentence goes on in the next line"))
    return faults


def _prose(markdown: str) -> dict[int, str]:
    """Return the lines of prose by number, with code, links and list marks smoothed out."""
    found = {}
    fence = ""
    for n, line in enumerate(markdown.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and not mark and not _NOT_PROSE.match(line):
            plain = _LINK.sub(r"\1", _CODE.sub("code", line.rstrip()))
            item = _ITEM.match(plain)
            text = plain[item.end() :] if item else plain
            found[n] = ("- " if item else "") + _SHORT.sub(r"\1", text)
    return found
