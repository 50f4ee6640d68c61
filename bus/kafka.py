"""The bus over Apache Kafka."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from bus.base import Bus, Route, check_routes
from bus.envelope import Envelope, check_size
from bus.errors import BusClosed, BusUnreachable
from bus.kafka_client import KafkaClients, end
from bus.kafka_settings import KafkaSettings
from bus.kafka_subscription import KafkaSubscription, Partitions
from bus.kafka_topics import KafkaTopics

_library_log = logging.getLogger("aiokafka")


class KafkaBus(Bus):
    """A bus for any number of processes, over one Kafka cluster.

    Each subscription is a consumer of its own. Topics come to be at their first subscription or
    publication. Messages that are no envelopes of ours are logged, counted in ``passed_over``
    and passed over.
    While the cluster is away, ``publish`` waits ``request_timeout_s`` at most, acknowledgements
    return after a second, handlers go on, and subscriptions come back by themselves.
    A message whose handler failed comes again after 20 ms, then after doubling pauses of at most
    5 s. When partitions move to another process, what is handled here is given up to 5 s to be
    acknowledged; what is not then may run there too.

    Args:
        settings: How the cluster is reached and used.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.passed_over = 0
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._subscriptions: set[KafkaSubscription] = set()

    @property
    def last_poll_s(self) -> float:
        """Seconds since the subscription that was polled the longest ago was polled."""
        now = time.monotonic()
        return max((now - each.polled_at for each in tuple(self._subscriptions)), default=0.0)

    async def open(self) -> None:
        """Connect.

        Raises:
            BusUnreachable: No broker answers.
            BusDenied: A broker does not let us in.
            BusError: The settings cannot be used.
        """
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if _library_log.level == logging.NOTSET:  # it tells each retry, ten a second
            _library_log.setLevel(logging.CRITICAL)
        self._clients = await KafkaClients.load(self._settings)
        self._topics = KafkaTopics(self._clients)
        self._groups: dict[str, Partitions] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self._producer: AIOKafkaProducer | None = None
        await self._sound_producer()
        self._loop = loop

    async def _sound_producer(self) -> AIOKafkaProducer:
        """Return the producer, a new one when the last one failed for good."""
        async with self._lock:
            if self._producer is None:
                producer = self._clients.producer()
                try:
                    async with asyncio.timeout(self._settings.request_timeout_s):
                        await producer.start()
                except (KafkaError, TimeoutError, OSError) as exc:
                    await end(producer.stop, producer.client)
                    raise await self._clients.translated(exc, "connecting") from exc
                self._producer = producer
            return self._producer

    async def close(self) -> None:
        """End all subscriptions, wait for their handlers, and disconnect."""
        if self._loop is not asyncio.get_running_loop():
            return
        try:
            await asyncio.gather(*(each.close() for each in tuple(self._subscriptions)))
        finally:
            self._loop = None
            self._retire()
            if self._ending:
                await asyncio.wait(self._ending)

    def _retire(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            task = asyncio.create_task(end(producer.stop, producer.client), name="end producer")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def publish(self, topic: str, envelope: Envelope, *, key: str) -> None:
        """Send one message; all replicas in sync have it when this returns.

        Raises:
            BusClosed: The bus is not open.
            PublishFailed: The cluster did not take it in time; it may arrive all the same.
            PayloadTooLarge: ``envelope.data`` exceeds ``MAX_PAYLOAD_BYTES``, or the broker's limit.
            BusDenied: We may not write there.
            TopicMissing: The topic is not there and cannot be created.
        """
        self._check_open()
        check_size(topic, envelope)
        doing = f"publishing message {envelope.id!r} to topic {topic!r}"
        producer = None
        try:
            async with asyncio.timeout(self._settings.request_timeout_s):
                await self._topics.ensure([topic])
                producer = await self._sound_producer()
                headers = envelope.headers()
                await producer.send_and_wait(topic, envelope.data, key.encode(), headers=headers)
        except (KafkaError, TimeoutError, BusUnreachable) as exc:
            if producer is self._producer and getattr(exc, "retriable", None) is False:
                self._retire()  # it numbers what follows as if this message had arrived
            raise await self._clients.translated(exc, doing, sent=True) from exc

    async def subscribe(self, routes: Sequence[Route], *, group: str | None) -> KafkaSubscription:
        """Take deliveries for a group; see ``Bus``.

        Raises:
            BusClosed: The bus is not open.
            BusUnreachable: The cluster does not answer.
            BusDenied: We may not read there.
            TopicMissing: A topic is not there and cannot be created.
            BusError: Two routes have one topic, or a capacity is less than 1.
        """
        self._check_open()
        check_routes(routes)
        subscription = KafkaSubscription(
            self._clients,
            routes,
            group=group,
            instance=self._instance(group),
            partitions={} if group is None else self._groups.setdefault(group, {}),
            passed_over=self._pass_over,
            closed=self._subscriptions.discard,
        )
        self._subscriptions.add(subscription)
        try:
            await self._topics.ensure([route.topic for route in routes])
            await subscription.open()
        except (KafkaError, TimeoutError, OSError) as exc:
            raise await self._clients.translated(exc, f"subscribing group {group!r}") from exc
        finally:
            if not subscription.is_open:
                self._subscriptions.discard(subscription)
        return subscription

    def _instance(self, group: str | None) -> str | None:
        """Return the first static name that no other subscription of this bus has."""
        if group is None or self._settings.instance is None:
            return None
        taken = {each.instance for each in self._subscriptions}
        names = (f"{self._settings.instance}-{group}-{n}" for n in range(len(taken) + 1))
        return next(name for name in names if name not in taken)

    def _pass_over(self) -> None:
        self.passed_over += 1

    def _check_open(self) -> None:
        if self._loop is not asyncio.get_running_loop():
            why = "not open" if self._loop is None else "open on another event loop"
            raise BusClosed(f"this KafkaBus is {why}; enter it here with 'async with' first")
