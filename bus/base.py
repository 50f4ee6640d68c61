"""The bus: one abstract class, and what it promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Self

from bus.envelope import Envelope
from bus.errors import BusError


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message handed to a handler.

    Attributes:
        topic: Where it came from.
        envelope: The message.
        acknowledge: Tells the broker that the message need not be delivered again; call it
            once the message's work is safe elsewhere. Calling it again does nothing.
    """

    topic: str
    envelope: Envelope
    acknowledge: Callable[[], Awaitable[None]]


Handler = Callable[[Delivery], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Route:
    """What a subscription does with one topic.

    Attributes:
        topic: Topic name, namespace included.
        handler: Called once a delivery, as a task of its own.
        capacity: Deliveries whose handler may run at once; above it this topic pauses, the
            others do not.
    """

    topic: str
    handler: Handler
    capacity: int = 64


class Subscription(ABC):
    """A running subscription."""

    @abstractmethod
    async def close(self) -> None:
        """Stop taking deliveries and wait for the handlers that run.

        What was not acknowledged is delivered again, to this group.
        """


class Bus(ABC):
    """Carries work and news between processes.

    Promises:
        * At least once: a published message reaches each group that subscribes to its topic,
          or had subscribed before it was published, until one handler acknowledges it.
        * A handler that raises, or a subscription that ends, leaves its unacknowledged
          deliveries to be delivered again.
        * Back-pressure: no more than ``capacity`` handlers of a route run at once.
        * Typed errors: only ``BusError`` and its kin.
    Does not promise: order, exactly once, or that a message is on disk when ``publish``
    returns. Callers must hold the record elsewhere and bear duplicates.
    """

    @property
    def last_poll_s(self) -> float:
        """Seconds since the broker was last polled; 0 where nothing is to be polled.

        A watchdog reads it from another thread: it grows while the event loop is blocked.
        """
        return 0.0

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @abstractmethod
    async def open(self) -> None:
        """Connect.

        Raises:
            BusUnreachable: No broker answers; the message says where it was sought.
        """

    @abstractmethod
    async def close(self) -> None:
        """End all subscriptions and disconnect; may be called twice."""

    @abstractmethod
    async def publish(self, topic: str, envelope: Envelope, *, key: str) -> None:
        """Send one message.

        Args:
            topic: Topic name, namespace included.
            envelope: The message.
            key: Messages of one key go to one partition, where there are any.

        Raises:
            BusClosed: The bus is not open.
            PublishFailed: The broker did not take it.
            PayloadTooLarge: ``envelope.data`` exceeds ``MAX_PAYLOAD_BYTES``.
        """

    @abstractmethod
    async def subscribe(self, routes: Sequence[Route], *, group: str | None) -> Subscription:
        """Take deliveries for a group; each message goes to one member of each group.

        Args:
            routes: One for each topic.
            group: Group name; members of a group share its messages. None listens: it is told
                what is published from now on, once, and nothing is kept for it.

        Raises:
            BusClosed: The bus is not open.
        """


def check_routes(routes: Sequence[Route]) -> None:
    """Raise ``BusError`` for routes that no subscription can have."""
    twice = [topic for topic, n in Counter(route.topic for route in routes).items() if n > 1]
    if twice:
        raise BusError(f"a subscription needs one route a topic; two name {twice[0]!r}")
    for route in routes:
        if route.capacity < 1:
            raise BusError(
                f"the route of {route.topic!r} has capacity {route.capacity}; give 1 or more"
            )
