"""A program that a test starts: it answers before the test goes on, and never outlives it."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 45.0
_POLITE_S = 10.0

# The kernel kills the program when the thread that spawned it ends: run from the command line, so
# that the program itself takes the place of this one, and its process id. The second line is for
# a starter that was gone before the first one ran.
_DIES_WITH_ITS_STARTER = """
import ctypes, os, signal, sys
if sys.platform == "linux": ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]): sys.exit("whoever started this is gone")
os.execvp(sys.argv[2], sys.argv[2:])
"""


def free_port() -> int:
    """Return a loopback port that is free, and stays so.

    It lies below the ports that the kernel gives to clients: one of those could take it while the
    program is down, even a client that connects to it, which would then talk to itself.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)  # not by the seed that all test workers share
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Process:
    """A program under test, or one that tests need.

    Spawn it from a thread that lives as long as it should, such as the main thread.

    Args:
        name: What it is called in errors.
        command: The program and its arguments.
        folder: Its working directory; its output goes to a file there.
        answers: Whether the program is ready; called until it is.
        environment: Environment variables beside the usual few.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        folder: Path,
        answers: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = [str(part) for part in command]
        self._folder = folder
        self._answers = answers
        self._environment = dict(environment or {})
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._running is not None, f"{self.name} was not started"
        return self._running.pid

    @property
    def alive(self) -> bool:
        """Whether it runs; one that has died is reaped by asking."""
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        """Spawn it and wait until it answers."""
        self.spawn()
        self.wait_until_ready()

    def spawn(self) -> None:
        """Start it without waiting."""
        assert not self.alive, f"{self.name} runs already"
        launcher = [sys.executable, "-S", "-c", _DIES_WITH_ITS_STARTER, str(os.getpid())]
        usual = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                [*launcher, *self._command],
                cwd=self._folder,
                env=usual | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_until_ready(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until it answers; it is killed when it does not."""
        deadline = time.monotonic() + patience_s
        while self.alive and time.monotonic() < deadline:
            if self._answers():
                return
            time.sleep(0.05)
        state = f"does not answer after {patience_s:.0f} s" if self.alive else "died at its start"
        self.kill()
        last = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
        raise AssertionError(f"{self.name} {state}; it said:\n{last}")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP."""
        os.kill(self.pid, number)

    def stop(self) -> None:
        """End it politely, then by force, and wait until it is gone."""
        if not self.alive:
            return
        assert self._running is not None
        self._running.terminate()
        self.signal(signal.SIGCONT)  # a stopped program hears nothing else
        try:
            self._running.wait(_POLITE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()
