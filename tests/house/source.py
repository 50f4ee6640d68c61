"""The repository's own files, for the tests of the house rules."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("agents", "bus", "orchestrator", "tracing")
_LEFT_OUT = {"__pycache__", "build", "dist"}


@cache
def tracked() -> tuple[Path, ...]:
    """Return the files that git tracks or would track; without git, those that look like it."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if done.returncode == 0:
        names = {Path(name) for name in done.stdout.decode().split("\0") if name}
    else:
        names = {path.relative_to(ROOT) for path in ROOT.rglob("*") if _looks_tracked(path)}
    return tuple(sorted(ROOT / name for name in names if (ROOT / name).is_file()))


def _looks_tracked(path: Path) -> bool:
    parts = set(path.relative_to(ROOT).parts)
    hidden = {part for part in parts if part.startswith(".")} - {".ci", ".gitignore"}
    return path.is_file() and not hidden and not parts & _LEFT_OUT


@cache
def text_files() -> tuple[tuple[Path, str], ...]:
    """Return tracked files that are UTF-8 text, with their text."""
    found = []
    for path in tracked():
        try:
            found.append((path.relative_to(ROOT), path.read_text("utf-8")))
        except UnicodeDecodeError:
            continue
    return tuple(found)


def python_files() -> list[tuple[Path, str]]:
    return [(path, text) for path, text in text_files() if path.suffix == ".py"]


def lines_with(text: str, *wanted: str) -> list[int]:
    """Return the numbers of the lines that contain one of the strings."""
    return [n for n, line in enumerate(text.splitlines(), 1) if any(w in line for w in wanted)]
