"""What every bus promises, as tests that each implementation inherits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from uuid import uuid4

import pytest

from bus.base import Bus, Delivery, Route
from bus.envelope import MAX_PAYLOAD_BYTES, Envelope
from bus.errors import BusClosed, BusError, PayloadTooLarge

PATIENCE_S = 20.0


def new_topic() -> str:
    """Return a topic that no other test uses."""
    return f"test-{uuid4().hex[:12]}.events"


def message(id: str, *, data: bytes = b"{}") -> Envelope:  # noqa: A002  # the envelope's own word
    return Envelope(id=id, type="test.said", source="/test", data=data)


class Inbox:
    """Collects what a group's members are given, and wakes who waits for it."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self._news = asyncio.Event()

    @property
    def ids(self) -> list[str]:
        return [delivery.envelope.id for delivery in self.deliveries]

    async def take(self, delivery: Delivery) -> None:
        """A handler that acknowledges at once."""
        self.note(delivery)
        await delivery.acknowledge()

    def note(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        self.wake()

    def wake(self) -> None:
        self._news.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until a condition holds that deliveries bring about."""
        async with asyncio.timeout(PATIENCE_S):
            while not reached():
                self._news.clear()
                await self._news.wait()

    async def until_seen(self, ids: Sequence[str]) -> None:
        await self.until(lambda: set(ids) <= set(self.ids))


class BusContract:
    """Promises that hold also while faults are injected; give a fixture ``bus``, opened."""

    async def test_a_message_arrives_as_it_was_sent(self, bus: Bus) -> None:
        topic, inbox = new_topic(), Inbox()
        sent = Envelope(
            id="m1",
            type="subtask.completed",
            source="/stock/worker",
            subject="a/b-1",
            data='{"名前": 1}'.encode(),
            content_type="application/json",
            run="r1",
            attempt=3,
            deadline=1_900_000_000.25,
            hop=2,
            trust="untrusted",
            store="6e7c",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            tracestate="a=1,b=2",
            extra={"tenant": "blå"},
        )
        await bus.subscribe([Route(topic, inbox.take)], group="g")
        await bus.publish(topic, sent, key="r1")
        await inbox.until_seen(["m1"])
        assert inbox.deliveries[0].topic == topic
        assert inbox.deliveries[0].envelope == sent

    async def test_the_largest_payload_arrives_whole(self, bus: Bus) -> None:
        topic, inbox = new_topic(), Inbox()
        data = bytes(range(256)) * (MAX_PAYLOAD_BYTES // 256)
        await bus.subscribe([Route(topic, inbox.take)], group="g")
        await bus.publish(topic, message("big", data=data), key="k")
        await inbox.until_seen(["big"])
        assert inbox.deliveries[0].envelope.data == data

    async def test_each_message_reaches_each_group(self, bus: Bus) -> None:
        topic, left, right = new_topic(), Inbox(), Inbox()
        await bus.subscribe([Route(topic, left.take)], group="left")
        await bus.subscribe([Route(topic, right.take)], group="right")
        ids = [f"m{n}" for n in range(20)]
        for each in ids:
            await bus.publish(topic, message(each), key=each)
        await left.until_seen(ids)
        await right.until_seen(ids)

    async def test_each_listener_hears_what_is_published_from_now_on(self, bus: Bus) -> None:
        topic, group, one, two = new_topic(), Inbox(), Inbox(), Inbox()
        await bus.subscribe([Route(topic, group.take)], group="g")
        await bus.publish(topic, message("before"), key="k")
        await group.until_seen(["before"])

        async def hear(delivery: Delivery) -> None:
            one.note(delivery)  # without acknowledging

        heard = await bus.subscribe([Route(topic, hear)], group=None)
        await bus.subscribe([Route(topic, two.take)], group=None)
        ids = [f"m{n}" for n in range(10)]
        for each in ids:
            await bus.publish(topic, message(each), key=each)
        for inbox in (group, one, two):
            await inbox.until_seen(ids)
        await heard.close()
        await bus.publish(topic, message("after"), key="k")
        await group.until_seen(["after"])
        await two.until_seen(["after"])
        assert "before" not in one.ids + two.ids
        assert "after" not in one.ids

    async def test_a_group_gets_what_was_published_while_it_had_no_member(self, bus: Bus) -> None:
        topic, inbox = new_topic(), Inbox()
        first = await bus.subscribe([Route(topic, inbox.take)], group="g")
        await bus.publish(topic, message("before"), key="k")
        await inbox.until_seen(["before"])
        await first.close()
        await bus.publish(topic, message("between"), key="k")
        await bus.subscribe([Route(topic, inbox.take)], group="g")
        await inbox.until_seen(["between"])

    async def test_a_message_whose_handler_raised_comes_again(self, bus: Bus) -> None:
        topic, inbox = new_topic(), Inbox()

        async def fail_twice(delivery: Delivery) -> None:
            inbox.note(delivery)
            if len(inbox.deliveries) < 3:
                raise ZeroDivisionError("the handler's own fault")
            await delivery.acknowledge()

        await bus.subscribe([Route(topic, fail_twice)], group="g")
        await bus.publish(topic, message("m"), key="k")
        await inbox.until(lambda: len(inbox.deliveries) >= 3)
        assert set(inbox.ids) == {"m"}

    async def test_a_message_whose_handler_forgot_to_acknowledge_comes_again(
        self, bus: Bus
    ) -> None:
        topic, inbox = new_topic(), Inbox()

        async def forget_once(delivery: Delivery) -> None:
            inbox.note(delivery)
            if len(inbox.deliveries) > 1:
                await delivery.acknowledge()

        await bus.subscribe([Route(topic, forget_once)], group="g")
        await bus.publish(topic, message("m"), key="k")
        await inbox.until(lambda: len(inbox.deliveries) >= 2)

    async def test_a_failing_message_does_not_hold_up_the_others(self, bus: Bus) -> None:
        topic, inbox = new_topic(), Inbox()

        async def refuse_one(delivery: Delivery) -> None:
            inbox.note(delivery)
            if delivery.envelope.id == "bad":
                raise ZeroDivisionError("never")
            await delivery.acknowledge()

        await bus.subscribe([Route(topic, refuse_one, capacity=1)], group="g")
        for each in ("bad", "good-1", "good-2"):
            await bus.publish(topic, message(each), key="k")
        await inbox.until_seen(["bad", "good-1", "good-2"])

    async def test_what_a_leaving_member_did_not_acknowledge_comes_again(self, bus: Bus) -> None:
        topic, inbox, release = new_topic(), Inbox(), asyncio.Event()

        async def hold(delivery: Delivery) -> None:
            inbox.note(delivery)
            await release.wait()

        first = await bus.subscribe([Route(topic, hold)], group="g")
        await bus.publish(topic, message("m"), key="k")
        await inbox.until_seen(["m"])
        release.set()
        await first.close()
        second = Inbox()
        await bus.subscribe([Route(topic, second.take)], group="g")
        await second.until_seen(["m"])

    async def test_closing_waits_for_the_handlers_that_run(self, bus: Bus) -> None:
        topic, inbox, release = new_topic(), Inbox(), asyncio.Event()
        ended = []

        async def slow(delivery: Delivery) -> None:
            inbox.note(delivery)
            await release.wait()
            await delivery.acknowledge()
            ended.append(delivery.envelope.id)

        subscription = await bus.subscribe([Route(topic, slow)], group="g")
        await bus.publish(topic, message("m"), key="k")
        await inbox.until_seen(["m"])
        closing = asyncio.create_task(subscription.close())
        _, still = await asyncio.wait([closing], timeout=0.05)
        assert still, "close returned while a handler was running"
        release.set()
        async with asyncio.timeout(PATIENCE_S):
            await closing
        assert ended

    async def test_no_more_handlers_run_than_the_route_has_capacity(self, bus: Bus) -> None:
        topic, inbox = new_topic(), Inbox()
        running, most = 0, 0

        async def count(delivery: Delivery) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _ in range(5):
                await asyncio.sleep(0)
            running -= 1
            await inbox.take(delivery)

        await bus.subscribe([Route(topic, count, capacity=3)], group="g")
        ids = [f"m{n}" for n in range(30)]
        for each in ids:
            await bus.publish(topic, message(each), key=each)
        await inbox.until_seen(ids)
        assert 1 < most <= 3

    async def test_a_full_route_does_not_pause_the_others(self, bus: Bus) -> None:
        work, events, inbox, release = new_topic(), new_topic(), Inbox(), asyncio.Event()

        async def hold(delivery: Delivery) -> None:
            inbox.note(delivery)
            await release.wait()
            await delivery.acknowledge()

        await bus.subscribe([Route(work, hold, capacity=1), Route(events, inbox.take)], group="g")
        await bus.publish(work, message("w"), key="k")
        await inbox.until_seen(["w"])
        for n in range(5):
            await bus.publish(work, message(f"more-{n}"), key="k")
            await bus.publish(events, message(f"e{n}"), key="k")
        await inbox.until_seen([f"e{n}" for n in range(5)])
        assert {i for i in inbox.ids if i.startswith(("w", "more"))} == {"w"}
        release.set()
        await inbox.until_seen([f"more-{n}" for n in range(5)])

    async def test_acknowledging_twice_does_nothing_more(self, bus: Bus) -> None:
        topic, inbox = new_topic(), Inbox()

        async def twice(delivery: Delivery) -> None:
            await delivery.acknowledge()
            await inbox.take(delivery)

        await bus.subscribe([Route(topic, twice)], group="g")
        await bus.publish(topic, message("m"), key="k")
        await bus.publish(topic, message("n"), key="k")
        await inbox.until_seen(["m", "n"])

    async def test_a_handler_may_publish_and_close_others(self, bus: Bus) -> None:
        topic, next_topic, inbox = new_topic(), new_topic(), Inbox()
        done = await bus.subscribe([Route(next_topic, inbox.take)], group="g")

        async def forward(delivery: Delivery) -> None:
            await bus.publish(next_topic, message("out"), key="k")
            await inbox.until_seen(["out"])
            await done.close()
            await inbox.take(delivery)

        await bus.subscribe([Route(topic, forward)], group="g")
        await bus.publish(topic, message("in"), key="k")
        await inbox.until_seen(["out", "in"])

    async def test_too_large_a_payload_is_refused_with_its_size(self, bus: Bus) -> None:
        with pytest.raises(PayloadTooLarge, match=str(MAX_PAYLOAD_BYTES + 1)):
            await bus.publish(
                new_topic(), message("m", data=b"x" * (MAX_PAYLOAD_BYTES + 1)), key="k"
            )

    async def test_two_routes_for_one_topic_are_refused(self, bus: Bus) -> None:
        topic, inbox = new_topic(), Inbox()
        with pytest.raises(BusError, match=topic):
            await bus.subscribe([Route(topic, inbox.take), Route(topic, inbox.take)], group="g")

    async def test_a_capacity_below_one_is_refused(self, bus: Bus) -> None:
        with pytest.raises(BusError, match="capacity 0"):
            await bus.subscribe([Route(new_topic(), Inbox().take, capacity=0)], group="g")

    async def test_a_closed_bus_refuses_and_may_be_closed_again(self, bus: Bus) -> None:
        await bus.close()
        await bus.close()
        with pytest.raises(BusClosed):
            await bus.publish(new_topic(), message("m"), key="k")
        with pytest.raises(BusClosed):
            await bus.subscribe([Route(new_topic(), Inbox().take)], group="g")

    async def test_closing_the_bus_ends_its_subscriptions_and_waits(self, bus: Bus) -> None:
        topic, inbox, release = new_topic(), Inbox(), asyncio.Event()
        ended = []

        async def slow(delivery: Delivery) -> None:
            inbox.note(delivery)
            await release.wait()
            await bus.publish(topic + ".next", message("result"), key="k")
            await delivery.acknowledge()
            ended.append(delivery.envelope.id)

        await bus.subscribe([Route(topic, slow)], group="g")
        await bus.publish(topic, message("m"), key="k")
        await inbox.until_seen(["m"])
        closing = asyncio.create_task(bus.close())
        _, still = await asyncio.wait([closing], timeout=0.05)
        assert still, "close returned while a handler was running"
        release.set()
        async with asyncio.timeout(PATIENCE_S):
            await closing
        assert ended

    async def test_a_bus_opened_again_delivers_what_was_left(self, bus: Bus) -> None:
        topic, inbox = new_topic(), Inbox()

        async def refuse(delivery: Delivery) -> None:
            inbox.note(delivery)

        await bus.subscribe([Route(topic, refuse)], group="g")
        await bus.publish(topic, message("m"), key="k")
        await inbox.until_seen(["m"])
        await bus.close()
        await bus.open()
        second = Inbox()
        await bus.subscribe([Route(topic, second.take)], group="g")
        await second.until_seen(["m"])


class QuietBusContract(BusContract):
    """What holds in addition while nothing goes wrong."""

    async def test_members_of_a_group_share_its_messages(self, bus: Bus) -> None:
        topic, one, two, all_of_it = new_topic(), Inbox(), Inbox(), Inbox()
        for inbox in (one, two):

            async def take(delivery: Delivery, inbox: Inbox = inbox) -> None:
                await inbox.take(delivery)
                all_of_it.note(delivery)

            await bus.subscribe([Route(topic, take)], group="g")
        ids = [f"m{n}" for n in range(40)]
        for each in ids:
            await bus.publish(topic, message(each), key=each)
        await all_of_it.until_seen(ids)
        assert Counter(one.ids) + Counter(two.ids) == Counter(ids)
        assert one.ids
        assert two.ids

    async def test_what_was_acknowledged_does_not_come_to_the_next_member(self, bus: Bus) -> None:
        topic, inbox, late = new_topic(), Inbox(), Inbox()
        subscription = await bus.subscribe([Route(topic, inbox.take)], group="g")
        await bus.publish(topic, message("m"), key="k")
        await inbox.until_seen(["m"])
        await subscription.close()
        await bus.subscribe([Route(topic, late.take)], group="g")
        await bus.publish(topic, message("after"), key="k")
        await late.until_seen(["after"])
        assert "m" not in late.ids

    async def test_what_was_acknowledged_before_the_handler_failed_is_done(self, bus: Bus) -> None:
        topic, inbox, late = new_topic(), Inbox(), Inbox()

        async def fail_late(delivery: Delivery) -> None:
            await inbox.take(delivery)
            raise ZeroDivisionError("after acknowledging")

        subscription = await bus.subscribe([Route(topic, fail_late)], group="g")
        await bus.publish(topic, message("m"), key="k")
        await inbox.until_seen(["m"])
        await subscription.close()
        await bus.subscribe([Route(topic, late.take)], group="g")
        await bus.publish(topic, message("after"), key="k")
        await late.until_seen(["after"])
        assert "m" not in late.ids
