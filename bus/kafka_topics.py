"""Topics of a Kafka cluster: created as configured, and checked when they exist."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any

from aiokafka import errors
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from bus.errors import BusError, TopicMissing
from bus.kafka_client import KafkaClients, end

_log = logging.getLogger("cadenza.bus")
_MADE_S = 5.0
_DENIED = (errors.TopicAuthorizationFailedError, errors.ClusterAuthorizationFailedError)


class KafkaTopics:
    """Knows which topics are there."""

    def __init__(self, clients: KafkaClients) -> None:
        self._clients = clients
        self._there: set[str] = set()
        self._lock = asyncio.Lock()

    async def ensure(self, topics: Iterable[str]) -> None:
        """Create what is not there.

        Raises:
            TopicMissing: A topic is not there and we may not create it, or not see it.
            BusError: A topic cannot be created as it is configured.
        """
        if self._there.issuperset(topics):
            return
        async with self._lock:
            new = sorted(set(topics) - self._there)
            settings, admin = self._clients.settings, self._clients.admin()
            try:
                await admin.start()
                # Assignments, though empty: without them the library refuses a replication of -1.
                wanted = [NewTopic(t, settings.partitions, settings.replication, {}) for t in new]
                made = (await admin.create_topics(wanted)).topic_errors if new else ()
                old = [topic for topic, code, told in made if not self._made(topic, code, told)]
                for found in await self._described(admin, old) if old else ():
                    self._check(found["topic"], found["error_code"], len(found["partitions"]))
            finally:
                await end(admin.close, admin._client)
            self._there.update(new)

    async def _described(self, admin: AIOKafkaAdminClient, topics: list[str]) -> list[Any]:
        end = time.monotonic() + _MADE_S
        while True:
            found: list[Any] = await admin.describe_topics(topics)
            unknown = errors.UnknownTopicOrPartitionError.errno
            # What another process makes at this moment exists before all brokers know of it.
            if time.monotonic() > end or all(each["error_code"] != unknown for each in found):
                return found
            await asyncio.sleep(0.1)

    def _made(self, topic: str, code: int, told: str | None) -> bool:
        error = errors.for_code(code)
        if error not in (errors.NoError, errors.TopicAlreadyExistsError, *_DENIED):
            hint = f"partitions is {self._clients.settings.partitions}, replication "
            hint += f"{self._clients.settings.replication} of as many brokers at least"
            raise BusError(f"topic {topic!r} cannot be created: {told or error.message}; {hint}")
        return error is errors.NoError

    def _check(self, topic: str, code: int, partitions: int) -> None:
        wanted = self._clients.settings.partitions
        if (error := errors.for_code(code)) is not errors.NoError:
            raise TopicMissing(
                f"topic {topic!r} is not there, or hidden from us, and we may not create it "
                f"({error.message}); grant DESCRIBE and CREATE in the broker's ACLs, or have it "
                f"made with {wanted} partitions"
            )
        if partitions < wanted:
            add = f"kafka-topics.sh --alter --topic {topic} --partitions {wanted}"
            told = (topic, partitions, partitions, add)
            _log.warning("topic %s: only %d partitions, %d processes share it; %s adds some", *told)
