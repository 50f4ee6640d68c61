"""The watchdog: it ends what no longer ticks, and only that."""

from __future__ import annotations

import threading
import time

from orchestrator.watchdog import EXIT_HUNG, Watchdog

LIMIT_S = 0.2


class Clock:
    """Something that ticks until it is stopped."""

    def __init__(self) -> None:
        self.stopped: float | None = None
        self.asked = 0
        self.later = threading.Event()

    def age_s(self) -> float:
        self.asked += 1
        if self.asked > 30:
            self.later.set()
        return 0.0 if self.stopped is None else time.monotonic() - self.stopped


def test_what_stops_ticking_is_ended_with_a_code_of_its_own() -> None:
    ended: list[int] = []
    over = threading.Event()

    def end(code: int) -> None:
        ended.append(code)
        over.set()

    clock = Clock()
    clock.stopped = time.monotonic()
    with Watchdog(clock.age_s, limit_s=LIMIT_S, end=end):
        assert over.wait(10)
    assert time.monotonic() - clock.stopped > LIMIT_S
    assert ended == [EXIT_HUNG]


def test_what_ticks_is_left_alone_and_leaving_ends_the_watch() -> None:
    ended: list[int] = []
    clock = Clock()
    with Watchdog(clock.age_s, limit_s=LIMIT_S, end=ended.append) as watchdog:
        assert clock.later.wait(10), "it does not look"
    watchdog._thread.join(10)
    assert not watchdog._thread.is_alive()
    assert ended == []
