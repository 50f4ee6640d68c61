"""Does what a page of the documentation says: writes its files, runs its commands, compares.

In a page a fenced block is

- a file, when the line before it ends in the file's name and a colon, as in "`shop.py`:";
- commands with what they print, when it is a ``console`` block: ``$ `` begins a command;
- a script, when it is another ``python`` block;
- a part of a pipeline file, when it is another ``yaml`` block.

In what a command prints, ``…`` stands for anything, within a line or, alone on one, for any lines.
``RUN``, ``INPUT``, ``TRACE`` and ``HASH`` stand for ids, the same one wherever they come again.
A command succeeds unless ``$ echo $?`` follows and shows its exit code.

    python -m tests.docs.page docs/quickstart.md    # print what really happens
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from orchestrator.pipeline_file import validate_settings
from orchestrator.yaml_source import YamlSource

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^( *)(`{3,})(\w*)\s*$")
_NAMED = re.compile(r"`([\w./-]+\.\w+)`:$")
_IDS = {
    "RUN": "[0-9a-z]{16}",
    "INPUT": "[0-9a-f]{8}",
    "TRACE": "[0-9a-f]{32}",
    "HASH": "[0-9a-f]{64}",
}
_WORD = re.compile(r"\b(RUN|INPUT|TRACE|HASH)\b|…")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block.

    Attributes:
        kind: Its language.
        name: The file that it is, or empty.
        text: What is in it.
        line: Where it begins.
    """

    kind: str
    name: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block and what the page says it prints."""

    line: str
    printed: str


def pages() -> list[Path]:
    """Return the pages of the documentation, decisions apart."""
    found = sorted(DOCS.rglob("*.md"))
    return [page for page in found if "decisions" not in page.relative_to(DOCS).parts]


def blocks(markdown: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    lines = markdown.splitlines()
    before = ""
    n = 0
    while n < len(lines):
        opened = _FENCE.match(lines[n])
        if opened is None:
            before = lines[n].strip() or before
            n += 1
            continue
        end = next(i for i in range(n + 1, len(lines)) if lines[i].strip() == opened[2])
        text = "\n".join(line.removeprefix(opened[1]) for line in lines[n + 1 : end]) + "\n"
        named = _NAMED.search(before)
        yield Block(opened[3], named[1] if named else "", text, n + 1)
        before, n = "", end + 1


def commands(text: str) -> list[Command]:
    """Return the commands of a console block."""
    found: list[Command] = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, printed = part.partition("\n")
        while line.endswith("\\"):
            more, _, printed = printed.partition("\n")
            line = line[:-1] + more.strip()
        found.append(Command(line, printed))
    return found


def pattern(printed: str, known: Mapping[str, str]) -> re.Pattern[str]:
    """Return what matches what a page says is printed."""
    seen: set[str] = set()

    def piece(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return ".*?"
        if name in known:
            return re.escape(known[name])
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>{_IDS[name]})"

    lines = []
    for line in printed.rstrip("\n").split("\n"):
        if line.strip() == "…":
            lines.append("(?:.*\n)*?")
            continue
        at, made = 0, ""
        for match in _WORD.finditer(line):
            made += re.escape(line[at : match.start()]) + piece(match)
            at = match.end()
        lines.append(f"{made}{re.escape(line[at:])}\n")
    return re.compile("".join(lines))


@dataclass(slots=True)
class Session:
    """Runs the blocks of one page in a folder, in order.

    Attributes:
        folder: Where.
        environment: Further variables.
        known: Ids that were printed so far.
        files: Files that the page made, in order.
    """

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    code: int = 0

    def do(self, page: Path) -> None:
        """Do what a page says.

        Raises:
            AssertionError: Something else happens than the page says.
        """
        for block in blocks(page.read_text("utf-8")):
            self.block(block, f"{page.relative_to(ROOT)}:{block.line}")

    def block(self, block: Block, where: str) -> None:
        """Do what one block says."""
        if block.name:
            path = self.folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
            self.files.append(block.name)
        elif block.kind == "console":
            self._console(block, where)
        elif block.kind == "python":
            done = self.run(f"{shlex.quote(sys.executable)} - <<'EOF_'\n{block.text}EOF_")
            assert done.returncode == 0, f"{where}: {done.stdout}"
        elif block.kind == "yaml":
            check_part(block.text)
        else:
            assert block.kind in ("text", "sh", "json"), f"{where}: what is {block.kind!r}?"

    def _console(self, block: Block, where: str) -> None:
        steps = commands(block.text)
        for i, step in enumerate(steps):
            if step.line.startswith("cadenza run "):
                self.known = {k: v for k, v in self.known.items() if k == "HASH"}
            done = self.run(_WORD.sub(lambda m: self.known[m[1]], step.line))
            told = f"{where}: $ {step.line}\n{done.stdout}"
            match = pattern(step.printed, self.known).fullmatch(_stripped(done.stdout))
            assert match, f"{told}-- the page says\n{step.printed}"
            self.known |= match.groupdict()
            shown = steps[i + 1 :][:1] and steps[i + 1].line == "echo $?"
            assert shown or done.returncode == 0, f"{told}-- exit code {done.returncode}"
            self.code = done.returncode

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a command line in the page's folder, with what it prints on both streams."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        mine = {"PATH": path, "PYTHONPATH": "", "COLUMNS": "100", **self.environment}
        return subprocess.run(
            [
                "bash",
                "-c",
                f"(exit {self.code}); {line}\nexit $?",
            ],  # bash must stay to tell a signal
            cwd=self.folder,
            env={**os.environ, **mine},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=50,
            check=False,
        )


def _stripped(text: str) -> str:
    plain = "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n"))
    return f"{plain}\n"


def check_part(text: str) -> None:
    """Check that a part of a pipeline file could stand in one.

    Raises:
        SettingsError: It could not.
    """
    part = yaml.safe_load(text)
    names = {"agents": {"analyst": {"model": "ollama/gemma3:4b"}}, "name": "part"}
    if "plan" in part or "synthesizer" in part:
        wanted = {step["agent"] for step in part.get("plan", ())} | {part.get("synthesizer")}
        agents = {name: {"model": "ollama/gemma3:4b"} for name in wanted if isinstance(name, str)}
        names["agents"] = agents or names["agents"]
    validate_settings(YamlSource({**names, **part}, "part.yaml"))


def _tell(page: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        for block in blocks(page.read_text("utf-8")):
            if block.kind != "console" or block.name:
                session.block(block, str(block.line))
                continue
            for step in commands(block.text):
                if step.line.startswith("cadenza run "):
                    session.known = {}
                line = _WORD.sub(lambda m: session.known.get(m[1] or "", m[0]), step.line)
                done = session.run(line)
                session.code = done.returncode
                print(f"$ {step.line}\n{done.stdout.rstrip()}\n-- {done.returncode}")
                for name, shape in _IDS.items():
                    about = (
                        rf"(?:approve|answer) \w+ ({shape})"
                        if name == "INPUT"
                        else rf"\b({shape})\b"
                    )
                    match = re.search(about, done.stdout)
                    if match:
                        session.known.setdefault(name, match[1])


if __name__ == "__main__":
    _tell(Path(sys.argv[1]).resolve())
