"""What the memory bus does beyond the contract that all buses keep."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Iterator
from itertools import pairwise

import pytest

from bus.base import Delivery, Route
from bus.errors import BusClosed
from bus.memory import MemoryBus
from tests.contracts.bus_contract import PATIENCE_S, Inbox, message

HERE: contextvars.ContextVar[str] = contextvars.ContextVar("HERE", default="nowhere")


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="cadenza.bus"):
        yield caplog


async def test_what_was_published_before_any_group_goes_to_the_first_one() -> None:
    first, second = Inbox(), Inbox()
    async with MemoryBus() as bus:
        await bus.publish("t", message("early"), key="k")
        await bus.subscribe([Route("t", first.take)], group="first")
        await bus.subscribe([Route("t", second.take)], group="second")
        await bus.publish("t", message("late"), key="k")
        await first.until_seen(["early", "late"])
        await second.until_seen(["late"])
    assert second.ids == ["late"]


async def test_early_messages_are_kept_up_to_the_limit_and_the_loss_is_told_once(
    errors: pytest.LogCaptureFixture,
) -> None:
    inbox = Inbox()
    async with MemoryBus(retain=3) as bus:
        for n in range(6):
            await bus.publish("t", message(f"m{n}"), key="k")
        await bus.subscribe([Route("t", inbox.take)], group="g")
        await inbox.until_seen(["m5"])
    assert inbox.ids == ["m3", "m4", "m5"]
    assert [r.levelname for r in errors.records] == ["WARNING"]
    assert "topic t" in errors.text


async def test_a_group_without_members_keeps_messages_up_to_the_limit() -> None:
    inbox = Inbox()
    async with MemoryBus(retain=2) as bus:
        await (await bus.subscribe([Route("t", inbox.take)], group="g")).close()
        for n in range(4):
            await bus.publish("t", message(f"m{n}"), key="k")
        await bus.subscribe([Route("t", inbox.take)], group="g")
        await inbox.until_seen(["m3"])
    assert inbox.ids == ["m2", "m3"]


async def test_a_group_that_left_long_ago_is_forgotten(errors: pytest.LogCaptureFixture) -> None:
    gone, stays = Inbox(), Inbox()
    async with MemoryBus(absence_s=0.0) as bus:
        await (await bus.subscribe([Route("t", gone.take)], group="gone")).close()
        await bus.subscribe([Route("t", stays.take)], group="stays")
        await bus.publish("t", message("m1"), key="k")
        await bus.subscribe([Route("t", gone.take)], group="gone")
        await bus.publish("t", message("m2"), key="k")
        await gone.until_seen(["m2"])
        await stays.until_seen(["m1", "m2"])
    assert gone.ids == ["m2"]
    assert "group gone left t long ago" in errors.text


async def test_pauses_between_deliveries_double() -> None:
    inbox, times = Inbox(), []

    async def refuse(delivery: Delivery) -> None:
        times.append(asyncio.get_running_loop().time())
        inbox.note(delivery)

    async with MemoryBus() as bus:
        await bus.subscribe([Route("t", refuse)], group="g")
        await bus.publish("t", message("m"), key="k")
        await inbox.until(lambda: len(times) >= 4)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    for pause, least in zip(pauses, (0.019, 0.039, 0.079), strict=False):
        assert pause >= least


async def test_a_handlers_exception_is_logged_with_what_it_handled(
    errors: pytest.LogCaptureFixture,
) -> None:
    inbox = Inbox()

    async def fail_once(delivery: Delivery) -> None:
        if not inbox.deliveries:
            inbox.note(delivery)
            raise ZeroDivisionError("by hand")
        await inbox.take(delivery)

    async with MemoryBus() as bus:
        await bus.subscribe([Route("t", fail_once)], group="g")
        await bus.publish("t", message("m7"), key="k")
        await inbox.until(lambda: len(inbox.deliveries) == 2)
    (record,) = errors.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == "handler failed: message m7 on t, group g"
    assert "ZeroDivisionError: by hand" in errors.text


async def test_a_handler_that_was_cancelled_leaves_its_message_to_come_again() -> None:
    inbox, tasks = Inbox(), []

    async def wait_for_ever(delivery: Delivery) -> None:
        if task := asyncio.current_task():
            tasks.append(task)
        inbox.note(delivery)
        if len(tasks) == 1:
            await asyncio.Event().wait()
        await delivery.acknowledge()

    async with MemoryBus() as bus:
        await bus.subscribe([Route("t", wait_for_ever)], group="g")
        await bus.publish("t", message("m"), key="k")
        await inbox.until_seen(["m"])
        tasks[0].cancel()
        await inbox.until(lambda: len(tasks) == 2)
    assert tasks[0].get_name() == "delivery m on t"


async def test_what_a_leaving_member_gives_up_goes_to_its_fellows_at_once() -> None:
    inbox, fellow, release = Inbox(), Inbox(), asyncio.Event()

    async def hold(delivery: Delivery) -> None:
        inbox.note(delivery)
        await release.wait()

    async with MemoryBus() as bus:
        leaving = await bus.subscribe([Route("t", hold)], group="g")
        await bus.publish("t", message("m"), key="k")
        await inbox.until_seen(["m"])
        await bus.subscribe([Route("t", fellow.take)], group="g")
        release.set()
        await leaving.close()
        await fellow.until_seen(["m"])


async def test_cancelling_close_cancels_the_handlers_and_puts_their_messages_back() -> None:
    inbox, late, ended = Inbox(), Inbox(), []

    async def stuck(delivery: Delivery) -> None:
        inbox.note(delivery)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(delivery.envelope.id)

    async with MemoryBus() as bus:
        subscription = await bus.subscribe([Route("t", stuck)], group="g")
        await bus.publish("t", message("m"), key="k")
        await inbox.until_seen(["m"])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await subscription.close()
        assert ended == ["m"]
        await bus.subscribe([Route("t", late.take)], group="g")
        await late.until_seen(["m"])


async def test_a_handler_may_close_its_own_subscription_and_the_bus() -> None:
    inbox = Inbox()
    bus = MemoryBus()
    await bus.open()

    async def last(delivery: Delivery) -> None:
        await subscription.close()
        await bus.close()
        await inbox.take(delivery)

    subscription = await bus.subscribe([Route("t", last)], group="g")
    await bus.publish("t", message("m"), key="k")
    await inbox.until_seen(["m"])
    await bus.open()
    later = Inbox()
    await bus.subscribe([Route("t", later.take)], group="g")
    await bus.publish("t", message("n"), key="k")
    await later.until_seen(["n"])
    await bus.close()
    assert later.ids == ["n"], "what was acknowledged after closing came again"


async def test_handlers_run_in_the_subscribers_context_not_in_the_publishers() -> None:
    inbox, seen = Inbox(), []

    async def look(delivery: Delivery) -> None:
        seen.append(HERE.get())
        HERE.set("changed by a handler")
        await inbox.take(delivery)

    async with MemoryBus() as bus:
        HERE.set("subscriber")
        await bus.subscribe([Route("t", look)], group="g")
        HERE.set("publisher")
        await bus.publish("t", message("m1"), key="k")
        await bus.publish("t", message("m2"), key="k")
        await inbox.until_seen(["m1", "m2"])
    assert seen == ["subscriber", "subscriber"]


async def test_a_loop_of_publishes_does_not_starve_the_handlers() -> None:
    inbox = Inbox()
    async with MemoryBus() as bus:
        await bus.subscribe([Route("t", inbox.take)], group="g")
        for n in range(10):
            await bus.publish("t", message(f"m{n}"), key="k")
        assert inbox.ids


async def test_an_acknowledgement_after_the_handler_ended_still_counts() -> None:
    inbox = Inbox()

    async def acknowledge_later(delivery: Delivery) -> None:
        inbox.note(delivery)

    async with MemoryBus() as bus:
        await bus.subscribe([Route("t", acknowledge_later, capacity=1)], group="g")
        await bus.publish("t", message("m"), key="k")
        await bus.publish("t", message("n"), key="k")
        await inbox.until_seen(["m", "n"])
        await inbox.deliveries[0].acknowledge()
        # Equal pauses end in the order they began: when "n" is back, "m" would be too.
        await inbox.until(lambda: inbox.ids.count("n") == 2)
    assert inbox.ids.count("m") == 1


def test_a_bus_works_on_one_event_loop_after_another() -> None:
    bus, seen = MemoryBus(), []

    async def first() -> None:
        inbox = Inbox()

        async def hold(delivery: Delivery) -> None:
            inbox.note(delivery)
            await asyncio.Event().wait()

        async def refuse(delivery: Delivery) -> None:
            inbox.note(delivery)

        await bus.open()
        await bus.subscribe([Route("held", hold), Route("refused", refuse)], group="g")
        await bus.publish("held", message("h"), key="k")
        await bus.publish("refused", message("r"), key="k")
        await inbox.until_seen(["h", "r"])  # and the loop ends without closing the bus

    async def second() -> None:
        inbox = Inbox()
        with pytest.raises(BusClosed, match="another event loop"):
            await bus.publish("held", message("x"), key="k")
        await bus.close()  # does nothing: this loop never opened it
        async with bus:
            routes = [Route("held", inbox.take), Route("refused", inbox.take)]
            await bus.subscribe(routes, group="g")
            await inbox.until_seen(["h", "r"])
        seen.extend(inbox.ids)

    asyncio.run(first())
    asyncio.run(second())
    assert sorted(seen) == ["h", "r"]


def test_a_handler_left_on_an_old_event_loop_ends_there_without_harm() -> None:
    bus, old, broken = MemoryBus(), asyncio.new_event_loop(), []
    old.set_exception_handler(lambda _, context: broken.append(context))
    inbox = Inbox()

    async def hold(delivery: Delivery) -> None:
        inbox.note(delivery)
        await asyncio.Event().wait()

    async def first() -> None:
        await bus.open()
        await bus.subscribe([Route("t", hold)], group="g")
        await bus.publish("t", message("m"), key="k")
        await inbox.until_seen(["m"])

    async def second() -> None:
        later = Inbox()
        async with bus:
            await bus.subscribe([Route("t", later.take)], group="g")
            await later.until_seen(["m"])

    async def end_the_rest() -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.wait(left)

    old.run_until_complete(first())
    asyncio.run(second())
    old.run_until_complete(end_the_rest())
    old.close()
    assert broken == []


async def test_opening_twice_keeps_the_subscriptions() -> None:
    inbox = Inbox()
    async with MemoryBus() as bus:
        await bus.subscribe([Route("t", inbox.take)], group="g")
        await bus.open()
        await bus.publish("t", message("m"), key="k")
        await inbox.until_seen(["m"])


async def test_thousands_of_messages_pass_without_a_recursion_or_a_crawl() -> None:
    inbox = Inbox()
    async with MemoryBus() as bus, asyncio.timeout(PATIENCE_S):
        await bus.subscribe([Route("t", inbox.take, capacity=2)], group="g")
        ids = [f"m{n}" for n in range(1_000)]
        for each in ids:
            await bus.publish("t", message(each), key="k")
        await inbox.until(lambda: len(inbox.deliveries) == len(ids))


async def test_a_bus_that_closes_takes_nothing_more_while_it_waits_for_a_handler() -> None:
    inbox, others, release = Inbox(), Inbox(), asyncio.Event()

    async def hold(delivery: Delivery) -> None:
        inbox.note(delivery)
        await release.wait()
        await delivery.acknowledge()

    bus = MemoryBus()
    await bus.open()
    topics = [f"other-{n}" for n in range(8)]
    for topic in topics[:4]:
        await bus.subscribe([Route(topic, others.take)], group="g")
    await bus.subscribe([Route("t", hold)], group="g")
    for topic in topics[4:]:
        await bus.subscribe([Route(topic, others.take)], group="g")
    await bus.publish("t", message("m"), key="k")
    await inbox.until_seen(["m"])
    closing = asyncio.create_task(bus.close())
    for topic in topics:
        await bus.publish(topic, message(topic), key="k")
    release.set()
    await closing
    # The first one may have been taken before the task that closes had its first turn.
    assert set(others.ids) <= {topics[0]}
