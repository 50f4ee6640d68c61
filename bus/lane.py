"""One route of a subscription at work: what was taken, is handled, or waits to be handled again."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from bus.base import Delivery, Route
from bus.kafka_partition import Message, Partition

_AHEAD = 64
_MOST_PAUSED = 256
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 5.0

_log = logging.getLogger("cadenza.bus")


@dataclass(slots=True, eq=False)
class Lane:
    """Hands messages to a route's handler; it keeps its own pace, whatever other lanes do.

    Attributes:
        route: The route.
        delivery: Makes what the handler is given.
        changed: Called when a handler has ended.
        lasting: Whether a message comes again until it is acknowledged.
        open: Whether messages are handled again here.
    """

    route: Route
    delivery: Callable[[str, Message], Delivery]
    changed: Callable[[], None]
    lasting: bool
    open: bool = True
    queue: deque[Message] = field(default_factory=deque)
    paused: dict[Message, asyncio.TimerHandle] = field(default_factory=dict)
    running: dict[asyncio.Task[None], Message] = field(default_factory=dict)
    context: contextvars.Context = field(default_factory=contextvars.copy_context)

    @property
    def room(self) -> int:
        """How many messages to take: some more than can be handled, none when many fail."""
        if not self.open or len(self.paused) >= _MOST_PAUSED:
            return 0
        return self.route.capacity + _AHEAD - len(self.running) - len(self.queue)

    def add(self, message: Message) -> None:
        """Take a message; it is handled when there is a place."""
        self.queue.append(message)
        self._pump()

    def _pump(self) -> None:
        while self.queue and len(self.running) < self.route.capacity:
            message = self.queue.popleft()
            message.deliveries += 1
            if not self.lasting:
                message.acknowledge()
            task = asyncio.get_running_loop().create_task(
                self._handle(message),
                name=f"delivery {message.envelope.id} on {self.route.topic}",
                context=self.context.copy(),
            )
            self.running[task] = message
            task.add_done_callback(self._ended)

    async def _handle(self, message: Message) -> None:
        await self.route.handler(self.delivery(self.route.topic, message))

    def _ended(self, task: asyncio.Task[None]) -> None:
        message = self.running.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            told = (message.envelope.id, self.route.topic)
            _log.error("handler failed: message %s on %s", *told, exc_info=error)
        if message.held and self.open and message.partition.owner is not None:
            pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(message.deliveries - 1, 16))
            timer = asyncio.get_running_loop().call_later(pause_s, self._resume, message)
            self.paused[message] = timer
        else:
            message.give_up()
        self._pump()
        self.changed()

    def _resume(self, message: Message) -> None:
        del self.paused[message]
        self.add(message)

    def let_go(self, partitions: Container[Partition]) -> None:
        """Give up what is not being handled of some partitions."""
        for message in [*self.queue, *self.paused]:
            if message.partition in partitions:
                message.give_up()
                if timer := self.paused.pop(message, None):
                    timer.cancel()
        self.queue = deque(message for message in self.queue if message.held)

    def close(self) -> None:
        """Handle nothing more, and give up what is not being handled."""
        self.open = False
        self.let_go({message.partition for message in (*self.queue, *self.paused)})
