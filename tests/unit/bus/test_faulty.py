"""The faulty bus does what it was told, and the same for the same seed."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from bus.base import Delivery, Route
from bus.envelope import Envelope
from bus.faulty import Crash, FaultyBus, Point, crash_at
from bus.memory import MemoryBus
from tests.contracts.bus_contract import Inbox, message


async def counted(bus: FaultyBus, ids: list[str], *, until: str = "last") -> Counter[str]:
    """Publish the ids and then a mark, and count what a group receives up to the mark."""
    inbox = Inbox()
    async with bus:
        await bus.subscribe([Route("t", inbox.take)], group="g")
        for each in ids:
            await bus.publish("t", message(each), key="k")
        await bus.inner.publish("t", message(until), key="k")
        await inbox.until_seen([until])
    return Counter(inbox.ids) - Counter([until])


IDS = [f"m{n}" for n in range(60)]


async def test_duplicates_follow_the_seed() -> None:
    first, again, other = [
        await counted(FaultyBus(MemoryBus(), seed, duplicate=0.5), IDS) for seed in (1, 1, 2)
    ]
    assert set(first) == set(IDS)
    assert 10 < sum(first.values()) - len(IDS) < 50
    assert first == again
    assert first != other


async def test_faults_of_a_message_do_not_depend_on_what_else_is_published() -> None:
    forward = await counted(FaultyBus(MemoryBus(), 3, lose=0.5), IDS)
    backward = await counted(FaultyBus(MemoryBus(), 3, lose=0.5), IDS[::-1])
    assert forward == backward


async def test_losing_all_delivers_nothing_and_losing_some_delivers_the_rest() -> None:
    assert not await counted(FaultyBus(MemoryBus(), 1, lose=1.0), IDS)
    some = await counted(FaultyBus(MemoryBus(), 1, lose=0.5), IDS)
    assert 10 < len(some) < 50


async def test_a_dropped_acknowledgement_brings_the_message_again_after_its_work_was_done() -> None:
    inbox, done = Inbox(), []

    async def work(delivery: Delivery) -> None:
        await inbox.take(delivery)
        done.append(delivery.envelope.id)

    async with FaultyBus(MemoryBus(), 1, drop_before_acknowledge=1.0) as bus:
        await bus.subscribe([Route("t", work)], group="g")
        await bus.publish("t", message("m"), key="k")
        await inbox.until(lambda: len(done) >= 3)


async def test_reordering_lets_the_next_delivery_pass() -> None:
    inbox = Inbox()
    async with FaultyBus(MemoryBus(), 5, reorder=0.5) as bus:
        await bus.subscribe([Route("t", inbox.take)], group="g")
        for each in IDS:
            await bus.publish("t", message(each), key="k")
        await inbox.until_seen(IDS)
    assert inbox.ids != IDS
    assert sorted(inbox.ids) == sorted(IDS)


async def test_a_delivery_with_nobody_to_pass_is_not_held_for_long() -> None:
    inbox = Inbox()
    async with FaultyBus(MemoryBus(), 5, reorder=1.0) as bus:
        await bus.subscribe([Route("t", inbox.take, capacity=1)], group="g")
        await bus.publish("t", message("m1"), key="k")
        await bus.publish("t", message("m2"), key="k")
        await inbox.until_seen(["m1", "m2"])


async def test_delayed_deliveries_wait_within_the_limit() -> None:
    inbox = Inbox()
    loop = asyncio.get_running_loop()
    async with FaultyBus(MemoryBus(), 5, delay=1.0, longest_delay_s=0.02) as bus:
        await bus.subscribe([Route("t", inbox.take)], group="g")
        begun = loop.time()
        for each in IDS:
            await bus.publish("t", message(each), key="k")
        await inbox.until_seen(IDS)
    assert inbox.ids != IDS
    assert loop.time() - begun >= 0.01


@pytest.mark.parametrize("point", ["before publish", "after publish"])
async def test_a_crash_while_publishing_reaches_the_publisher(point: Point) -> None:
    inbox = Inbox()
    async with FaultyBus(MemoryBus(), 1, crash=crash_at(point, nth=2)) as bus:
        await bus.subscribe([Route("t", inbox.take)], group="g")
        await bus.publish("t", message("m1"), key="k")
        with pytest.raises(Crash, match=f"{point}, message 'm2' on 't'"):
            await bus.publish("t", message("m2"), key="k")
        await bus.publish("t", message("m3"), key="k")
        await inbox.until_seen(["m1", "m3"])
    assert ("m2" in inbox.ids) == (point == "after publish")


@pytest.mark.parametrize(
    ("point", "deliveries"),
    [
        ("before handler", 1),
        ("before acknowledge", 2),
        ("after acknowledge", 1),
        ("after handler", 1),
    ],
)
async def test_a_crash_while_handling_repeats_what_was_not_acknowledged(
    point: Point, deliveries: int
) -> None:
    inbox = Inbox()
    async with FaultyBus(MemoryBus(), 1, crash=crash_at(point, topic="t")) as bus:
        await bus.subscribe([Route("t", inbox.take), Route("mark", inbox.take)], group="g")
        await bus.publish("t", message("m"), key="k")
        await inbox.until(lambda: inbox.ids.count("m") >= deliveries)
    async with bus:
        await bus.subscribe([Route("t", inbox.take), Route("mark", inbox.take)], group="g")
        await bus.publish("mark", message("mark"), key="k")
        await inbox.until_seen(["mark"])
    assert inbox.ids.count("m") == deliveries


async def test_a_hook_of_ones_own_sees_every_point_in_order() -> None:
    inbox, passed = Inbox(), []

    def note(point: Point, topic: str, envelope: Envelope) -> None:
        passed.append((point, topic, envelope.id))
        inbox.wake()

    async with FaultyBus(MemoryBus(), 1, crash=note) as bus:
        await bus.subscribe([Route("t", inbox.take)], group="g")
        await bus.publish("t", message("m"), key="k")
        await inbox.until(lambda: ("after handler", "t", "m") in passed)
    assert {p for p, _, _ in passed[:2]} <= {"before publish", "after publish", "before handler"}
    assert [p for p, _, _ in passed if "publish" not in p] == [
        "before handler",
        "before acknowledge",
        "after acknowledge",
        "after handler",
    ]


@pytest.mark.parametrize("wrong", [{"duplicate": 1.5}, {"lose": -0.1}, {"reorder": float("nan")}])
def test_a_chance_outside_0_and_1_is_refused(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        FaultyBus(
            MemoryBus(),
            1,
            duplicate=wrong.get("duplicate", 0.0),
            lose=wrong.get("lose", 0.0),
            reorder=wrong.get("reorder", 0.0),
        )


def test_a_negative_delay_is_refused() -> None:
    with pytest.raises(ValueError, match="longest_delay_s"):
        FaultyBus(MemoryBus(), 1, longest_delay_s=-1.0)
