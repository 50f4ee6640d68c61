"""The file tools: list, read, search and write text files within one folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from agents.errors import ToolDenied
from agents.tool_decorator import tool
from agents.toolbox.root import Root
from agents.tools import Tool

MOST_FILES = 500
MOST_MATCHES = 100
MOST_SEARCHED_BYTES = 50_000_000
LONGEST_PATTERN = 300
LONGEST_LINE = 400
REGEX_TIMEOUT_S = 5.0

_CHILD = Path(__file__).with_name("regex_child.py")


def files(
    root: Path,
    *,
    max_bytes: int = 10_000_000,
    reads: Literal["trusted", "untrusted"] = "untrusted",
) -> tuple[Tool, ...]:
    """Return ``list_files``, ``read_file`` and ``grep_files`` for one folder.

    Args:
        root: The folder. Paths and links that lead out of it are refused.
        max_bytes: Files above this size are not read.
        reads: ``trusted`` when nobody else writes in the folder.

    Raises:
        ToolDefinitionError: There is no such folder.
    """
    folder = Root(root, max_bytes=max_bytes)

    @tool(reads=reads)
    def list_files(glob: str = "*", path: str = ".") -> dict[str, Any]:
        """List files with their sizes in bytes, hidden ones left out.

        Args:
            glob: Pattern for the path or the name, for example *.csv or docs/*.md.
            path: Folder to look in.
        """
        found = list(islice(folder.walk(glob[:LONGEST_PATTERN], folder.parts(path)), MOST_FILES))
        listed = [{"path": name, "bytes": size} for name, size in found]
        return {"files": listed, "truncated": len(listed) == MOST_FILES}

    @tool(reads=reads)
    def read_file(path: str, start_line: int = 1, max_lines: int = 400) -> str:
        """Read lines of a text file.

        Args:
            path: Path within the folder.
            start_line: First line, from 1.
            max_lines: How many lines.
        """
        if start_line < 1 or max_lines < 1:
            raise ValueError("start_line and max_lines begin at 1")
        lines = folder.read(path).splitlines()
        part = lines[start_line - 1 : start_line - 1 + max_lines]
        if not part:
            return f"[{path} has {len(lines)} lines; nothing from line {start_line}]"
        last = start_line + len(part) - 1
        whole = start_line == 1 and last == len(lines)
        head = "" if whole else f"[{path}: lines {start_line} to {last} of {len(lines)}]\n"
        return head + "\n".join(part)

    @tool(reads=reads)
    def grep_files(pattern: str, glob: str = "*", regex: bool = False) -> dict[str, Any]:
        """Find lines in text files, upper and lower case alike.

        Args:
            pattern: Text to find, or a regular expression with regex=true.
            glob: Which files, for example *.md.
            regex: Whether the pattern is a regular expression.
        """
        return _grep(folder, pattern, glob, regex)

    return list_files, read_file, grep_files


def write_file(root: Path, *, needs_approval: bool = True) -> tuple[Tool, ...]:
    """Return ``write_file`` for one folder; a person approves each call unless told otherwise.

    Args:
        root: The folder. Paths and links that lead out of it are refused.
        needs_approval: Whether a person must approve each call.

    Raises:
        ToolDefinitionError: There is no such folder.
    """
    folder = Root(root, max_bytes=0)

    @tool(
        name="write_file",
        effect="guarded",
        needs_approval=needs_approval,
        destination_args=("path",),
    )
    def write(path: str, content: str) -> str:
        """Write a text file, its former content replaced.

        Args:
            path: Path within the folder; missing folders are made.
            content: The whole content.
        """
        return f"wrote {folder.write(path, content)} bytes to {path}"

    return (write,)


def _grep(folder: Root, pattern: str, glob: str, regex: bool) -> dict[str, Any]:
    if not 0 < len(pattern) <= LONGEST_PATTERN:
        raise ValueError(f"a pattern has 1 to {LONGEST_PATTERN} characters")
    texts: dict[str, str] = {}
    skipped: list[str] = []
    budget = MOST_SEARCHED_BYTES
    for path, size in folder.walk(glob[:LONGEST_PATTERN]):
        budget -= size
        if budget < 0:
            skipped.append(f"{path} and what follows: narrow the glob")
            break
        try:
            texts[path] = folder.read(path)
        except (ValueError, ToolDenied) as exc:
            skipped.append(str(exc))
    found = _regex(pattern, texts) if regex else _literal(pattern, texts)
    shown = [f"{path}:{number}: {line[:LONGEST_LINE]}" for path, number, line in found]
    result: dict[str, Any] = {"matches": shown[:MOST_MATCHES], "files_searched": len(texts)}
    if len(shown) > MOST_MATCHES:
        result["truncated"] = f"only the first {MOST_MATCHES} matches: narrow the pattern"
    return {**result, "skipped": skipped[:10]} if skipped else result


def _literal(pattern: str, texts: dict[str, str]) -> list[tuple[str, int, str]]:
    wanted = pattern.casefold()
    lines = (
        (path, number, line)
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if wanted in line.casefold()
    )
    return list(islice(lines, MOST_MATCHES + 1))


def _regex(pattern: str, texts: dict[str, str]) -> list[tuple[str, int, str]]:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as exc:
        raise ValueError(f"{pattern!r} is no regular expression: {exc}") from None
    paths = list(texts)
    request = {"pattern": pattern, "texts": list(texts.values()), "most": MOST_MATCHES + 1}
    try:
        child = subprocess.run(  # noqa: S603 - our own file, the request on standard input
            [sys.executable, "-I", "-S", str(_CHILD)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=REGEX_TIMEOUT_S,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"{pattern!r} took longer than {REGEX_TIMEOUT_S:g} s: "
            "avoid repeats within repeats, such as (a+)+, or search for plain text"
        ) from None
    return [(paths[index], number, line) for index, number, line in json.loads(child.stdout)]
