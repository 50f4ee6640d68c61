"""A member of a Kafka consumer group: takes, hands to handlers, and commits what is acknowledged.

The poll task never waits for a handler. Handlers are tasks; a route whose places are taken is
left out of the next poll, alone. What is acknowledged without a gap is committed, for many
messages at once, and ``acknowledge`` returns when that has happened.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from bus.base import Delivery, Route, Subscription
from bus.envelope import Envelope
from bus.errors import EnvelopeInvalid
from bus.kafka_client import KafkaClients, end
from bus.kafka_partition import Message, Partition
from bus.lane import Lane

_POLL_MS = 500
_FULL_POLL_MS = 10
_TICK_S = 1.0
_COMMIT_S = 1.0
_AGAIN_S = 2.0
_NOWHERE = TopicPartition("", 0)

Partitions = dict[TopicPartition, Partition]
T = TypeVar("T")
_log = logging.getLogger("cadenza.bus")


class KafkaSubscription(Subscription, ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    """A consumer and the handlers it feeds.

    Args:
        clients: Makes the consumer.
        routes: One for each topic.
        group: Its group, or None to listen.
        instance: Its static name in the group, or None.
        partitions: What this process knows of the group's partitions; members share it, so that
            what one of them handles is not handled by another when a partition moves.
        passed_over: Called for each message that is no envelope of ours.
        closed: Called when it is closed.
    """

    def __init__(
        self,
        clients: KafkaClients,
        routes: Sequence[Route],
        *,
        group: str | None,
        instance: str | None,
        partitions: Partitions,
        passed_over: Callable[[], None],
        closed: Callable[[KafkaSubscription], None],
    ) -> None:
        self.group, self.instance = group, instance
        self.polled_at = time.monotonic()
        self._clients = clients
        self._partitions = partitions
        self._passed_over = passed_over
        self._closed = closed
        self._news = asyncio.Event()
        self._lanes = {
            route.topic: Lane(route, self._delivery, self._news.set, group is not None)
            for route in routes
        }
        self._mine: Partitions = {}
        self._consumer: AIOKafkaConsumer | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._next_commit: asyncio.Task[None] | None = None
        self._commits: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Join the group."""
        await self._start()
        self._task = asyncio.create_task(self._run(), name=f"poll {self._name}")

    @property
    def is_open(self) -> bool:
        """Whether it has joined its group and not left it."""
        return self._task is not None

    @property
    def _name(self) -> str:
        return f"{self.group or 'listener'} on {', '.join(self._lanes)}"

    async def _start(self) -> None:
        consumer = self._consumer = self._clients.consumer(self.group, self.instance)
        consumer.subscribe(list(self._lanes), listener=self)
        try:
            async with asyncio.timeout(self._clients.settings.request_timeout_s):
                await consumer.start()
                if self.group is None:
                    await self._listen(consumer)
        except BaseException:
            await self._stop()
            raise

    async def _listen(self, consumer: AIOKafkaConsumer) -> None:
        """Begin at the end of each partition, or where an earlier consumer was."""
        for tp in consumer.assignment():
            if tp in self._partitions:
                consumer.seek(tp, self._partitions[tp].end)
            else:
                self._partitions[tp] = Partition(end=await consumer.position(tp))
        await self.on_partitions_assigned(consumer.assignment())

    async def _stop(self) -> None:
        consumer, self._consumer = self._consumer, None
        self._disown()
        self._mine.clear()
        if consumer is not None:
            await end(consumer.stop, consumer._client)

    async def _run(self) -> None:
        while True:
            try:
                if self._consumer is None:
                    await self._ticking(self._start())
                while True:
                    self._take(await self._poll())
            except (KafkaError, TimeoutError) as exc:
                _log.error("group %s cannot be read and is joined again: %r", self._name, exc)
                await self._ticking(self._stop())
                await self._ticking(asyncio.sleep(_AGAIN_S * random.uniform(0.5, 1.5)))

    async def _ticking(self, awaitable: Awaitable[T]) -> T:
        """Await what may take long and is no hang: the broker may be away."""
        task = asyncio.ensure_future(awaitable)
        try:
            while not task.done():
                self.polled_at = time.monotonic()
                await asyncio.wait({task}, timeout=_TICK_S)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        return task.result()

    async def _poll(self) -> dict[TopicPartition, list[ConsumerRecord[Any, Any]]]:
        rooms = {tp: room for tp in self._mine if (room := self._lanes[tp.topic].room) > 0}
        full = len(rooms) < len(self._mine)
        assert self._consumer is not None
        # Polled even where nothing is wanted: a consumer that does not poll leaves its group.
        return await self._ticking(
            self._consumer.getmany(
                _NOWHERE,
                *rooms,
                timeout_ms=_FULL_POLL_MS if full else _POLL_MS,
                max_records=min(rooms.values(), default=1),
            )
        )

    def _take(self, taken: dict[TopicPartition, list[ConsumerRecord[Any, Any]]]) -> None:
        for tp, records in taken.items():
            partition = self._mine.get(tp)
            if partition is None or partition.owner is not self:
                continue  # moved away meanwhile
            for record in records:
                if not partition.is_new(record.offset):
                    continue
                headers = [(name, value or b"") for name, value in record.headers]
                try:
                    envelope = Envelope.from_headers(headers, record.value or b"")
                except EnvelopeInvalid as exc:
                    self._passed_over()
                    told = (tp.topic, tp.partition, record.offset, exc)
                    _log.error("not ours, passed over: %s[%d] offset %d: %s", *told)
                else:
                    self._lanes[tp.topic].add(partition.take(record.offset, envelope))

    def _delivery(self, topic: str, message: Message) -> Delivery:
        async def acknowledge() -> None:
            if message.acknowledge():
                self._news.set()
                owner = message.partition.owner
                if isinstance(owner, KafkaSubscription):
                    await owner._commit()

        return Delivery(topic, message.envelope, acknowledge)

    async def _commit(self) -> None:
        """Commit what is acknowledged; those who ask while one request is out share the next."""
        if self.group is None:
            return
        if self._next_commit is None and self._to_commit():
            name = f"commit {self._name}"
            self._next_commit = asyncio.create_task(self._send_commit(), name=name)
            self._commits.add(self._next_commit)
            self._next_commit.add_done_callback(self._commits.discard)
        if self._next_commit is not None:
            # While the broker is away work goes on; what was not committed may come again.
            await asyncio.wait({self._next_commit}, timeout=_COMMIT_S)

    def _to_commit(self) -> dict[TopicPartition, int]:
        firsts = {tp: partition.to_commit for tp, partition in self._mine.items()}
        return {tp: first for tp, first in firsts.items() if first is not None}

    async def _send_commit(self) -> None:
        async with self._lock:
            self._next_commit = None
            offsets = self._to_commit()
            if not offsets or self._consumer is None:
                return
            try:
                await self._consumer.commit(offsets)
            except KafkaError as exc:
                _log.info("group %s moved on before a commit: %r", self._name, exc)
                return
            for tp, offset in offsets.items():
                self._partitions[tp].committed = offset

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Give up what is queued, let handlers acknowledge, commit."""
        self._disown()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(5.0, self._clients.settings.session_timeout_s / 2)):
                await self._settled()
        await self._commit()
        self._mine.clear()

    def _disown(self) -> None:
        for lane in self._lanes.values():
            lane.let_go(self._mine.values())
        for partition in self._mine.values():
            if partition.owner is self:
                partition.owner = None

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Own what was assigned."""
        for tp in assigned:
            self._mine[tp] = self._partitions.setdefault(tp, Partition())
            self._mine[tp].own(self)

    def _others(self) -> dict[asyncio.Task[None], Message]:
        """Return what runs, but for the handler that asks."""
        here = asyncio.current_task()
        running = [pair for lane in self._lanes.values() for pair in lane.running.items()]
        return {task: message for task, message in running if task is not here}

    async def _settled(self) -> None:
        """Wait until each running handler has acknowledged or ended."""
        while any(message.held for message in self._others().values()):
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        """Stop taking deliveries, leave the group, and wait for the handlers that run.

        The group is left as soon as all that runs is acknowledged, so that others go on. No
        handler is cancelled, unless ``close`` itself is.
        """
        for lane in self._lanes.values():
            lane.close()
        try:
            await self._settled()
            await self._leave()
            while tasks := set(self._others()):
                await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in (tasks := set(self._others())):
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            raise
        finally:
            await self._leave()
            self._closed(self)

    async def _leave(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await self._commit()
            for each in (task, *self._commits):
                each.cancel()
            await asyncio.wait({task})
            await self._stop()
