"""Ends a process that hangs, so that others may take its share.

A broker counts a static member as there until its session ends, and a group waits for each member
that still answers from a thread but polls no more. What was committed is on disk.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Self

EXIT_HUNG = 70  # EX_SOFTWARE of sysexits.h
POLL_LIMIT_S = 30.0


class Watchdog:
    """Watches from a thread of its own how long ago something ticked; a context manager.

    Args:
        age_s: Returns the seconds since the last tick; called in the thread.
        limit_s: More than this ends the process.
        end: Ends the process, given the exit code.
    """

    def __init__(
        self, age_s: Callable[[], float], *, limit_s: float, end: Callable[[int], None] = os._exit
    ) -> None:
        self._age_s = age_s
        self._limit_s = limit_s
        self._end = end
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(self._limit_s / 10):
            age_s = self._age_s()
            if age_s > self._limit_s:
                told = f"cadenza: the bus was not polled for {age_s:.0f} s: something blocks the"
                sys.stderr.write(f"{told} event loop; this process ends with {EXIT_HUNG}\n")
                sys.stderr.flush()
                self._end(EXIT_HUNG)
                return
