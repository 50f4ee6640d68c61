"""What our Kafka bus costs over raw aiokafka on the same broker, and what whole runs take.

A hop is send to handler with commit, without run store and tracing; raw sends the same bytes and
headers. Throughput is measured with many messages in flight and ``acks=all``.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from agents.context import RunContext
from agents.function import agent
from benchmarks.table import Figure, Table, percentile
from bus.base import Delivery, Route
from bus.envelope import Envelope
from bus.kafka import KafkaBus
from bus.kafka_settings import KafkaSettings
from orchestrator.pipeline import Pipeline
from tests.gear.programs import Kafka

HOPS = 2_000
WARM = 200
MESSAGES = 20_000
IN_FLIGHT = 500
RUNS = 60
RUNS_AT_ONCE = 12


def message(n: int) -> Envelope:
    """Return a message of the size and with the headers of a usual one."""
    return Envelope(
        id=f"r/{n}",
        type="cadenza.work",
        source="/bench/orchestrator",
        subject="plan/a",
        data=b"x" * 512,
        run="0123456789abcdef",
        attempt=1,
        deadline=2e9,
        store=str(uuid.UUID(int=1)),
        traceparent=f"00-{n + 1:032x}-{n + 1:016x}-01",
    )


class Raw:
    """The client that ours is built on, used as its documentation says, with our settings."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.producer = AIOKafkaProducer(
            bootstrap_servers=address, acks="all", enable_idempotence=True
        )

    async def consumer(self, topic: str) -> AIOKafkaConsumer:
        """Return a started consumer in a group of its own."""
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=self._address,
            group_id=f"raw-{uuid.uuid4().hex[:8]}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        return consumer

    async def send(self, topic: str, n: int) -> None:
        """Send one message and wait until the broker has it."""
        sent = message(n)
        await self.producer.send_and_wait(
            topic, sent.data, key=str(n).encode(), headers=sent.headers()
        )


async def raw_round_trips(raw: Raw, there: str, back: str) -> list[float]:
    """Return the seconds of each request and reply, each with its commit."""
    server, client = await raw.consumer(there), await raw.consumer(back)

    async def serve() -> None:
        async for record in server:
            await server.commit()
            await raw.send(back, int(record.key or b"0"))

    serving = asyncio.create_task(serve(), name="raw server")
    took = []
    for n in range(WARM + HOPS):
        began = time.perf_counter()
        await raw.send(there, n)
        await client.getone()
        await client.commit()
        took.append(time.perf_counter() - began)
    serving.cancel()
    await asyncio.wait({serving})
    for consumer in (server, client):
        await consumer.stop()
    return took[WARM:]


async def our_round_trips(bus: KafkaBus, there: str, back: str) -> list[float]:
    """The same by our bus."""
    came = asyncio.Event()

    async def serve(delivery: Delivery) -> None:
        await delivery.acknowledge()
        await bus.publish(back, delivery.envelope, key=delivery.envelope.id)

    async def take(delivery: Delivery) -> None:
        await delivery.acknowledge()
        came.set()

    server = await bus.subscribe([Route(there, serve)], group=f"s-{there}")
    client = await bus.subscribe([Route(back, take)], group=f"c-{back}")
    took = []
    for n in range(WARM + HOPS):
        came.clear()
        began = time.perf_counter()
        await bus.publish(there, message(n), key=str(n))
        await came.wait()
        took.append(time.perf_counter() - began)
    for subscription in (server, client):
        await subscription.close()
    return took[WARM:]


async def _many(send: Callable[[int], Awaitable[None]]) -> float:
    """Send all with many in flight; return messages a second."""
    free = asyncio.Semaphore(IN_FLIGHT)

    async def one(n: int) -> None:
        try:
            await send(n)
        finally:
            free.release()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for n in range(MESSAGES):
            await free.acquire()
            group.create_task(one(n))
    return MESSAGES / (time.perf_counter() - began)


async def raw_taken(raw: Raw, topic: str) -> float:
    """Return messages a second, taken in batches with a commit after each."""
    consumer = await raw.consumer(topic)
    taken, began = 0, time.perf_counter()
    while taken < MESSAGES:
        for records in (await consumer.getmany(timeout_ms=1000, max_records=500)).values():
            taken += len([dict(record.headers) for record in records])
        await consumer.commit()
    rate = MESSAGES / (time.perf_counter() - began)
    await consumer.stop()
    return rate


async def our_taken(bus: KafkaBus, topic: str) -> float:
    """The same by our bus: a handler and an acknowledgement a message."""
    taken, over = 0, asyncio.Event()

    async def take(delivery: Delivery) -> None:
        nonlocal taken
        await delivery.acknowledge()
        taken += 1
        if taken == MESSAGES:
            over.set()

    began = time.perf_counter()
    subscription = await bus.subscribe([Route(topic, take, capacity=500)], group=f"t-{topic}")
    await over.wait()
    rate = MESSAGES / (time.perf_counter() - began)
    await subscription.close()
    return rate


async def whole_runs(folder: Path, mode: str, bus: dict[str, Any]) -> tuple[float, list[float]]:
    """Return runs a second, and the seconds from ready to started of each subtask.

    A run is a plan of three functions, one after the other and a join, on a durable store.
    """
    started: dict[tuple[str, str], float] = {}

    @agent
    async def step(ctx: RunContext, task: str) -> str:
        started[ctx.run, ctx.subtask] = time.time()
        return task

    plan: list[dict[str, Any]] = [{"id": "a", "agent": "step"}, {"id": "b", "agent": "step"}]
    plan.append({"id": "c", "agent": "step", "after": ["a", "b"]})
    pipeline = Pipeline(
        [step],
        name=f"bench-{uuid.uuid4().hex[:8]}",
        mode=mode,
        plan=plan,
        limits={"slots": 64},
        store=str(folder / f"{uuid.uuid4().hex}.db"),
        folder=folder,
        bus=bus,
    )
    free = asyncio.Semaphore(RUNS_AT_ONCE)
    waits: list[float] = []
    async with pipeline:

        async def one() -> None:
            async with free:
                result = await pipeline.run("Go.")
            assert result.status == "completed"
            waits.extend(
                started[result.run, event.data["subtask"]] - event.time
                for event in await pipeline.app.store.ledger(result.run)
                if event.type == "subtask.ready"
            )

        await one()  # joining the groups is not measured
        waits.clear()
        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(RUNS)))
        return RUNS / (time.perf_counter() - began), waits


@asynccontextmanager
async def broker(folder: Path) -> AsyncIterator[str]:
    """Yield a broker's address: the one given, or one of our own."""
    if given := os.environ.get("CADENZA_TEST_KAFKA"):
        yield given
        return
    kafka = Kafka(folder)
    await asyncio.to_thread(kafka.format)
    await kafka.start()
    try:
        yield kafka.address
    finally:
        await kafka.stop()


async def measure(folder: Path) -> Table:
    """Measure everything against one broker."""
    table = Table("The Kafka bus against raw aiokafka, on one broker")
    async with broker(folder) as address:
        settings = KafkaSettings(servers=address, partitions=1)
        async with KafkaBus(settings) as bus:
            names = {name: f"bench-{name}-{uuid.uuid4().hex[:6]}" for name in "abcdef"}
            for topic in names.values():  # created by ours, so that both have the same
                await bus.publish(topic, message(0), key="0")
            raw = Raw(address)
            async with raw.producer:
                theirs = await raw_round_trips(raw, names["a"], names["b"])
                ours = await our_round_trips(bus, names["c"], names["d"])
                for share, name in ((0.5, "p50"), (0.99, "p99")):
                    table.add(
                        Figure(
                            f"round trip, {name}",
                            percentile(ours, share) * 1e3,
                            "ms",
                            percentile(theirs, share) * 1e3,
                            "raw aiokafka",
                            "≤ 1.3",
                        )
                    )
                sent = await _many(lambda n: raw.send(names["e"], n))
                published = await _many(lambda n: bus.publish(names["f"], message(n), key=str(n)))
                table.add(Figure("sent", published, "/s", sent, "raw aiokafka", "near 1"))
                taken = await raw_taken(raw, names["e"])
                handled = await our_taken(bus, names["f"])
                table.add(Figure("taken", handled, "/s", taken, "raw aiokafka", "near 1"))
        for mode in ("orchestration", "choreography"):
            memory = await whole_runs(folder, mode, {"kind": "memory"})
            kafka = await whole_runs(folder, mode, {"kind": "kafka", "url": address})
            table.add(Figure(f"runs, {mode}", kafka[0], "/s", memory[0], "memory bus"))
            p50 = [percentile(waits, 0.5) * 1e3 for _, waits in (kafka, memory)]
            table.add(Figure(f"ready to started p50, {mode}", p50[0], "ms", p50[1], "memory bus"))
    return table


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(measure(Path(place))).show()
