"""The bus within one process: no broker, nothing on disk, the same promises."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from bus.base import Bus, Delivery, Route, Subscription, check_routes
from bus.envelope import Envelope, check_size
from bus.errors import BusClosed

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 5.0

_log = logging.getLogger("cadenza.bus")


@dataclass(slots=True, eq=False)
class _Message:
    """One message in one group's queue."""

    envelope: Envelope
    deliveries: int = 0
    acknowledged: bool = False

    @property
    def pause_s(self) -> float:
        """Seconds before the next delivery: doubling, from 20 ms to 5 s."""
        return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self.deliveries - 1, 16))

    async def acknowledge(self) -> None:
        """Take the message off the group's queue for good."""
        self.acknowledged = True


@dataclass(slots=True, eq=False)
class _Group:
    """What one group still has to take from one topic, and who takes it."""

    name: str
    queue: deque[_Message] = field(default_factory=deque)
    paused: dict[_Message, asyncio.TimerHandle] = field(default_factory=dict)
    members: list[_Member] = field(default_factory=list)
    left_at: float = 0.0
    lasting: bool = True

    def pump(self) -> None:
        """Start handlers while there are messages and free places."""
        while self.queue:
            member = next((m for m in self.members if len(m.running) < m.route.capacity), None)
            if member is None:
                return
            message = self.queue.popleft()
            if not message.acknowledged:
                self.members.remove(member)
                self.members.append(member)  # the next message goes to the next member
                member.start(message)

    def pause(self, message: _Message) -> None:
        """Deliver a message again, after its pause."""
        again = partial(self._resume, message)
        self.paused[message] = asyncio.get_running_loop().call_later(message.pause_s, again)

    def _resume(self, message: _Message) -> None:
        del self.paused[message]
        self.queue.append(message)
        self.pump()

    def end_pauses(self) -> None:
        """Put what waits for its next delivery back at once."""
        for message, timer in self.paused.items():
            timer.cancel()
            self.queue.append(message)
        self.paused.clear()


@dataclass(slots=True, eq=False)
class _Member:
    """One route of one subscription."""

    route: Route
    group: _Group
    context: contextvars.Context
    running: dict[asyncio.Task[None], _Message] = field(default_factory=dict)

    def start(self, message: _Message) -> None:
        message.deliveries += 1
        message.acknowledged = not self.group.lasting  # a listener hears it once
        task = asyncio.get_running_loop().create_task(
            self._handle(Delivery(self.route.topic, message.envelope, message.acknowledge)),
            name=f"delivery {message.envelope.id} on {self.route.topic}",
            context=self.context.copy(),
        )
        self.running[task] = message
        task.add_done_callback(self._ended)

    async def _handle(self, delivery: Delivery) -> None:
        await self.route.handler(delivery)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        message = self.running.pop(task, None)
        if message is None:  # the bus was opened again meanwhile and has put it back
            return
        if error is not None:
            told = f"message {message.envelope.id} on {self.route.topic}, group {self.group.name}"
            _log.error("handler failed: %s", told, exc_info=error)
        if not message.acknowledged and self in self.group.members:
            self.group.pause(message)
        elif not message.acknowledged:
            self.group.queue.appendleft(message)
        self.group.pump()

    def leave(self) -> None:
        """Take no more deliveries."""
        if self in self.group.members:
            self.group.members.remove(self)
            self.group.left_at = time.monotonic()


@dataclass(slots=True, eq=False)
class MemorySubscription(Subscription):
    """A group member on a ``MemoryBus``."""

    members: list[_Member]
    siblings: set[MemorySubscription]

    async def close(self) -> None:
        """Stop taking deliveries and wait for the handlers that run.

        No handler is cancelled, unless ``close`` itself is: then those that still run are, and
        what they did not acknowledge goes back.
        Called by a handler, it waits for the others.
        """
        for member in self.members:
            member.leave()
        try:
            while tasks := self._tasks():
                await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in (tasks := self._tasks()):
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            raise
        finally:
            self.siblings.discard(self)

    def _tasks(self) -> set[asyncio.Task[None]]:
        here = asyncio.current_task()
        return {task for member in self.members for task in member.running if task is not here}

    def abandon(self) -> None:
        """Put back what runs on an event loop that is gone."""
        for member in self.members:
            member.leave()
            member.group.queue.extend(member.running.values())
            member.running.clear()


class MemoryBus(Bus):
    """A bus for one process and one event loop at a time.

    A group exists on a topic from its first subscription and then receives all that is
    published there, also while it has no member. What was published before any group subscribed
    goes to the first group that does.
    What is not acknowledged comes again after 20 ms, then after doubling pauses of at most 5 s;
    a member that leaves puts it back at once, for its fellows or for the group's next member.
    Handlers run in a copy of the context in which ``subscribe`` was called, never in the
    publisher's: as with a broker, only the envelope travels.
    Closing keeps the queues; the bus may be opened again, on another event loop too. Nothing
    outlives the process: whoever publishes holds the record elsewhere.

    Args:
        retain: Messages kept for a topic that has no group, and for a group that has no member;
            beyond it the oldest is dropped, with one warning.
        absence_s: Seconds after which a group without members is forgotten.
    """

    def __init__(self, *, retain: int = 10_000, absence_s: float = 3600.0) -> None:
        self._retain = retain
        self._absence_s = absence_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early: dict[str, deque[_Message]] = {}
        self._groups: dict[str, dict[str, _Group]] = {}
        self._subscriptions: set[MemorySubscription] = set()
        self._warned: set[str] = set()
        self._listeners = count()

    async def open(self) -> None:
        """Bind the bus to the running event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._let_go()
            self._loop = loop

    async def close(self) -> None:
        """End all subscriptions, wait for their handlers, and keep what is not acknowledged."""
        if self._loop is not asyncio.get_running_loop():
            return
        try:
            for subscription in self._subscriptions:
                for member in subscription.members:
                    member.leave()
            for subscription in list(self._subscriptions):
                await subscription.close()
        finally:
            self._let_go()
            self._loop = None

    def _let_go(self) -> None:
        for subscription in self._subscriptions:
            subscription.abandon()
        self._subscriptions.clear()
        for groups in self._groups.values():
            for group in groups.values():
                group.end_pauses()

    async def publish(self, topic: str, envelope: Envelope, *, key: str) -> None:
        """Send one message; ``key`` has no meaning here."""
        self._check_open()
        check_size(topic, envelope)
        groups = self._groups.get(topic, {})
        self._forget_absent(topic, groups)
        if not any(group.lasting for group in groups.values()):
            self._keep(self._early.setdefault(topic, deque()), envelope, f"topic {topic}")
        for group in groups.values():
            if group.members:
                group.queue.append(_Message(envelope))
                group.pump()
            else:
                self._keep(group.queue, envelope, f"topic {topic} for group {group.name}")
        await asyncio.sleep(0)  # a loop that publishes must not starve the handlers

    def _keep(self, queue: deque[_Message], envelope: Envelope, whose: str) -> None:
        queue.append(_Message(envelope))
        if len(queue) > self._retain:
            queue.popleft()
            if whose not in self._warned:
                self._warned.add(whose)
                _log.warning("nobody takes %s; from now on the oldest message drops", whose)

    def _forget_absent(self, topic: str, groups: dict[str, _Group]) -> None:
        oldest = time.monotonic() - self._absence_s
        for group in list(groups.values()):
            if not group.members and (group.left_at < oldest or not group.lasting):
                del groups[group.name]
                if not group.lasting:
                    continue
                told = (group.name, topic, len(group.queue))
                _log.info("group %s left %s long ago; %d messages were dropped", *told)

    async def subscribe(self, routes: Sequence[Route], *, group: str | None) -> MemorySubscription:
        """Take deliveries for a group; see ``Bus``.

        Raises:
            BusClosed: The bus is not open.
            BusError: Two routes have one topic, or a capacity is less than 1.
        """
        self._check_open()
        check_routes(routes)
        context = contextvars.copy_context()
        members = []
        for route in routes:
            groups = self._groups.setdefault(route.topic, {})
            name = group or f"listener {next(self._listeners)}"
            found = groups.setdefault(name, _Group(name, lasting=group is not None))
            if found.lasting:
                found.queue.extend(self._early.pop(route.topic, ()))
            member = _Member(route, found, context)
            found.members.append(member)
            members.append(member)
        subscription = MemorySubscription(members, self._subscriptions)
        self._subscriptions.add(subscription)
        for member in members:
            member.group.pump()
        return subscription

    def _check_open(self) -> None:
        if self._loop is None:
            raise BusClosed("this MemoryBus is not open; enter it with 'async with' first")
        if self._loop is not asyncio.get_running_loop():
            raise BusClosed("this MemoryBus was opened on another event loop; open it again here")
