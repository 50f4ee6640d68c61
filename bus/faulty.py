"""A bus that misbehaves on purpose, for tests of whatever must bear it.

    bus = FaultyBus(MemoryBus(), seed=7, duplicate=0.2, delay=0.5, reorder=0.2)

Whether a message meets a fault depends on the seed, the topic, the group, the message's id and
how often it has passed, not on what else happens at the time: a test whose messages have fixed
ids meets the same faults in each run, however its tasks are scheduled.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from bus.base import Bus, Delivery, Handler, Route, Subscription
from bus.envelope import Envelope

Point = Literal[
    "before publish",
    "after publish",
    "before handler",
    "after handler",
    "before acknowledge",
    "after acknowledge",
]
CrashHook = Callable[[Point, str, Envelope], None]

_LONGEST_HOLD_S = 0.05


class Crash(BaseException):
    """The process would have died here.

    Not an ``Exception``, so that no handler of errors in the code under test survives it.
    """


def crash_at(point: Point, *, nth: int = 1, topic: str | None = None) -> CrashHook:
    """Return a hook that raises ``Crash`` once, the nth time a point is passed.

    Args:
        point: Where.
        nth: How often the point is passed until then, this time included.
        topic: Count on this topic alone; None counts on all.
    """
    passed = 0

    def hook(here: Point, at_topic: str, envelope: Envelope) -> None:
        nonlocal passed
        if here == point and topic in (None, at_topic):
            passed += 1
            if passed == nth:
                raise Crash(f"{point}, message {envelope.id!r} on {at_topic!r}")

    return hook


class FaultyBus(Bus):
    """Wraps a bus and adds faults to it.

    All but ``lose`` leave the bus's promises whole: at least once, again when not acknowledged,
    back-pressure, typed errors. ``lose`` breaks the first one, to show that a sweep makes good.

    Args:
        inner: The bus that does the work; opened and closed with this one.
        seed: Chooses the faults.
        duplicate: Chance, 0 to 1, that a message is published twice.
        delay: Chance that a delivery waits before its handler runs; it keeps its place meanwhile.
        reorder: Chance that a delivery lets the next one on its route pass, for at most 50 ms.
        drop_before_acknowledge: Chance that an acknowledgement is lost: the handler has done
            its work and believes in it, and the message comes again.
        lose: Chance that a published message is lost although ``publish`` returns.
        longest_delay_s: Seconds that a delayed delivery waits at most.
        crash: Called at each point a message passes, with the point, the topic and the
            envelope; what it raises goes through. See ``crash_at``.

    Raises:
        ValueError: A chance is not within 0 and 1, or ``longest_delay_s`` is negative.
    """

    def __init__(
        self,
        inner: Bus,
        seed: int,
        *,
        duplicate: float = 0.0,
        delay: float = 0.0,
        reorder: float = 0.0,
        drop_before_acknowledge: float = 0.0,
        lose: float = 0.0,
        longest_delay_s: float = 0.05,
        crash: CrashHook | None = None,
    ) -> None:
        self.inner = inner
        self._seed = seed
        self._chances = {
            "duplicate": duplicate,
            "delay": delay,
            "reorder": reorder,
            "drop_before_acknowledge": drop_before_acknowledge,
            "lose": lose,
        }
        for fault, chance in self._chances.items():
            if not 0 <= chance <= 1:
                raise ValueError(f"{fault}={chance!r} is not a chance; give 0 to 1")
        if longest_delay_s < 0:
            raise ValueError(f"longest_delay_s={longest_delay_s!r} is negative; give seconds")
        self._longest_delay_s = longest_delay_s
        self._crash = crash
        self._passed: Counter[str] = Counter()

    async def open(self) -> None:
        """Open the inner bus."""
        await self.inner.open()

    async def close(self) -> None:
        """Close the inner bus."""
        await self.inner.close()

    async def publish(self, topic: str, envelope: Envelope, *, key: str) -> None:
        """Publish by the inner bus: not at all, once or twice."""
        self._at("before publish", topic, envelope)
        chance = self._draw(f"{topic} {envelope.id}")
        if not self._happens("lose", chance):
            await self.inner.publish(topic, envelope, key=key)
            if self._happens("duplicate", chance):
                await self.inner.publish(topic, envelope, key=key)
        self._at("after publish", topic, envelope)

    async def subscribe(self, routes: Sequence[Route], *, group: str | None) -> Subscription:
        """Subscribe on the inner bus, with faults before and after each handler."""
        faulty = [replace(r, handler=_FaultyHandler(self, r.handler, group or "")) for r in routes]
        return await self.inner.subscribe(faulty, group=group)

    def _draw(self, passes: str) -> Random:
        """Return the random numbers of a message's next passage."""
        self._passed[passes] += 1
        return Random(f"{self._seed} {passes} {self._passed[passes]}")

    def _happens(self, fault: str, chance: Random) -> bool:
        return chance.random() < self._chances[fault]

    def _at(self, point: Point, topic: str, envelope: Envelope) -> None:
        if self._crash is not None:
            self._crash(point, topic, envelope)


class _FaultyHandler:
    """A route's handler, with what may go wrong around it."""

    def __init__(self, bus: FaultyBus, handler: Handler, group: str) -> None:
        self._bus = bus
        self._handler = handler
        self._group = group
        self._arrived = asyncio.Event()

    async def __call__(self, delivery: Delivery) -> None:
        bus, topic, envelope = self._bus, delivery.topic, delivery.envelope
        chance = bus._draw(f"{topic} {self._group} {envelope.id}")
        dropped = bus._happens("drop_before_acknowledge", chance)
        if bus._happens("delay", chance):
            await asyncio.sleep(chance.uniform(0, bus._longest_delay_s))
        await self._let_one_pass(held=bus._happens("reorder", chance))

        async def acknowledge() -> None:
            bus._at("before acknowledge", topic, envelope)
            if not dropped:
                await delivery.acknowledge()
            bus._at("after acknowledge", topic, envelope)

        bus._at("before handler", topic, envelope)
        await self._handler(replace(delivery, acknowledge=acknowledge))
        bus._at("after handler", topic, envelope)

    async def _let_one_pass(self, *, held: bool) -> None:
        before, self._arrived = self._arrived, asyncio.Event()
        before.set()
        if held:
            try:
                async with asyncio.timeout(_LONGEST_HOLD_S):
                    await self._arrived.wait()
            except TimeoutError:
                return  # nothing came that could pass
