"""Ctrl-C and SIGTERM: what was begun is finished or recorded, and nothing ends in a traceback."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from orchestrator.cli.exits import INTERRUPTED, TERMINATED

Handler = Callable[[int, FrameType | None], Any]


@contextmanager
def handling(number: signal.Signals, handler: Handler) -> Iterator[None]:
    """Handle a signal within a block, unless whoever started us has it ignored (``nohup``)."""
    known = threading.current_thread() is threading.main_thread()
    if not known or signal.getsignal(number) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def leave_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the process at once, where there is nothing to record."""
    with handling(signal.SIGINT, lambda number, frame: leave("cadenza: interrupted", INTERRUPTED)):
        yield


def ignore_interrupts() -> None:
    """Ignore Ctrl-C while Python ends: what was asked is done, and its exit code stands."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave(line: str, code: int) -> NoReturn:
    """End the process now; what was committed is on disk."""
    # Not by print: the signal may have come in the middle of one.
    os.write(2, f"\n{line}\n".encode())
    os._exit(code)


class Signals(ExitStack):
    """Signals while a run is driven; the handlers work even when a tool blocks the event loop.

    Ctrl-C once cancels the run and records everything, twice leaves at once. SIGTERM leaves the
    run as it is, for ``cadenza runs resume``.

    Args:
        say: Takes a line for people.
        cancel: Asks to cancel the run; called once.
        resume: Returns the command that goes on with the run, or empty when none was begun.

    Attributes:
        interrupted: Ctrl-C came.
        terminated: Set when SIGTERM came.
        over: The run needs nothing more; a first Ctrl-C changes nothing.
    """

    def __init__(
        self, say: Callable[[str], None], cancel: Callable[[], None], resume: Callable[[], str]
    ) -> None:
        super().__init__()
        self._say = say
        self._cancel = cancel
        self._resume = resume
        self._loop = asyncio.get_running_loop()
        self.interrupted = self.over = False
        self.terminated = asyncio.Event()
        self.enter_context(handling(signal.SIGINT, self._on_interrupt))
        self.enter_context(handling(signal.SIGTERM, self._on_terminate))

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted or not self._resume():
            leave(self._where(), INTERRUPTED)
        self.interrupted = True
        if not self.over:
            self._loop.call_soon_threadsafe(self._cancel_it)

    def _cancel_it(self) -> None:
        if self.over:
            return
        self._say("   cancel  recording where the run stands; Ctrl-C again leaves at once")
        self._cancel()

    def _on_terminate(self, number: int, frame: FrameType | None) -> None:
        if self.terminated.is_set() or not self._resume():
            leave(self._where(), TERMINATED)
        self._loop.call_soon_threadsafe(self.terminated.set)

    def _where(self) -> str:
        command = self._resume()
        return f"     left  go on with: {command}" if command else "cadenza: interrupted"
