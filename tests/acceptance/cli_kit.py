"""What the tests of the command line share: running it here or as a process, and small teams."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "orchestrator.cli.main")


@dataclass(frozen=True, slots=True)
class Told:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output, read as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def run(self) -> str:
        """The run id that a run tells first."""
        words = [line.split() for line in self.err.splitlines()]
        return next(line[1] for line in words if line[:1] == ["run"])

    @property
    def asked(self) -> str:
        """The id of what a person is asked."""
        words = [line.split() for line in self.err.splitlines()]
        return next(line[4] for line in words if line[:1] in (["answer"], ["approve"]))


class Cli:
    """The command line in a folder of its own, in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Told:
        """Run a command."""
        out, err = io.StringIO(), io.StringIO()
        code: Any = None
        before = sys.stdin
        interrupt = signal.getsignal(signal.SIGINT)
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main(list(arguments))
        except SystemExit as exc:
            code = exc.code
        finally:
            sys.stdin = before
            signal.signal(signal.SIGINT, interrupt)
        assert "Traceback" not in err.getvalue(), err.getvalue()
        return Told(code, out.getvalue(), err.getvalue())

    def write(self, **files: str) -> None:
        """Write files; ``__`` in a name stands for the dot."""
        for name, text in files.items():
            (self.folder / name.replace("__", ".")).write_text(text, "utf-8")

    def process(self, *arguments: str, env: dict[str, str] | None = None) -> Told:
        """Run a command as a process of its own."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=environment(env),
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Told(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command as a process; its standard error goes into the file ``err``."""
        with (self.folder / "err").open("w") as err:
            return subprocess.Popen(
                [sys.executable, "-c", _READY, *arguments],
                cwd=self.folder,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )

    def err(self) -> str:
        """Return what a started process has told so far."""
        return (self.folder / "err").read_text("utf-8")


# Says so once the command line is there: before that, Python itself answers a signal.
_READY = """
import signal, sys
from orchestrator.cli.main import main
from orchestrator.cli.signals import leave
if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda *about: leave("cadenza: interrupted", 130))
print("ready", file=sys.stderr, flush=True)
main()
"""


def environment(more: dict[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a process."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **(more or {})}


def until(condition: Callable[[], bool], *, within_s: float = 30.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def team(replies: Sequence[Any], agent: str = "", **more: Any) -> dict[str, Any]:
    """Return the files of a pipeline with one agent, ``clerk``, as YAML that JSON is, too."""
    pipeline = {
        "models": {"main": {"model": "scripted/replies.yaml"}},
        "agents": {"clerk": {"model": "main", **(json.loads(agent) if agent else {})}},
        **more,
    }
    return {
        "pipeline__yaml": json.dumps(pipeline, indent=1),
        "replies__yaml": json.dumps(list(replies)),
    }
