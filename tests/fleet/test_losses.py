"""Processes of a fleet are killed, frozen, drained or never there: every run ends as it should."""

from __future__ import annotations

import asyncio
import os
import random
import signal

import pytest

from tests.conformance.gear import MODES, until
from tests.fleet.conftest import Fleets
from tests.fleet.fleet import ANSWER, GRACE_S, LEASE_S, SHOP, Fleet

pytestmark = [pytest.mark.timeout(150), pytest.mark.parametrize("mode", MODES)]


async def serve(fleet: Fleet, *, shippers: int = 1) -> list[int]:
    """Start three workers' processes or more, and the orchestrator; return the shippers' ids."""
    (pids, _, _) = await asyncio.gather(
        asyncio.gather(*(fleet.worker("shipper") for _ in range(shippers))),
        asyncio.gather(fleet.worker("check"), fleet.worker("writer")),
        fleet.conductor(),
    )
    return [member.process.pid for member in pids]


async def sound(fleet: Fleet, run: str, *, lost: int = 0) -> None:
    """Check that a run came to its answer: one effect, a whole trace, and nothing left."""
    row = await fleet.finished(run)
    assert row.status == "completed", await fleet.ledger(run)
    assert await fleet.faults(run, lost=lost) == []

    async def nothing_left() -> bool:
        return await fleet.left() == [] == await fleet.trace_faults(run)

    await until(nothing_left)


@pytest.mark.parametrize("seconds", [0.2, 8.0])
async def test_a_worker_is_killed_within_a_tool_with_an_effect(
    mode: str, seconds: float, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address, environment={"FLEET_SHIP_S": "10"})
    await serve(fleet, shippers=2)
    run = await fleet.submit()
    [(pid, _)] = await fleet.until_noted("shipping")
    # The kill is so long into the tool: there is nothing to poll for.
    await asyncio.sleep(seconds * random.uniform(0.9, 1.1))
    os.kill(pid, signal.SIGKILL)
    (fleet.folder / "go").touch()
    await sound(fleet, run, lost=1)
    assert len(await fleet.noted("shipping")) == 2, "another worker makes the call again"
    await dead_are_dead(fleet, pid)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(50))  # told by the test's name
async def test_whoever_is_lost_at_whatever_moment_every_run_finishes(
    mode: str, seed: int, fleets: Fleets, kafka_address: str
) -> None:
    draw = random.Random(seed)
    fleet = fleets(mode, kafka_address, environment={"FLEET_SHIP_S": "3"})
    await serve(fleet, shippers=2)
    starter = await fleet.start("run", str(fleet.file), "Ship it.")
    [(pid, run), *_] = await fleet.until_noted("shipping")
    shipper = next(m for m in fleet.members if m.process.pid == pid)
    conductors = [m for m in fleet.members if "orchestrator" in m.name]
    victim = draw.choice([starter, shipper, *conductors])
    await asyncio.sleep(draw.uniform(0, 4))  # a moment of the seed's
    if victim is shipper and draw.random() < 0.5:
        await asyncio.to_thread(fleet.stop, shipper)
        await asyncio.sleep(3 * LEASE_S)
        shipper.process.send_signal(signal.SIGCONT)
    elif victim.process.returncode is None:
        victim.kill()
    if victim in conductors:
        await fleet.conductor()
    await sound(fleet, run, lost=int(victim is shipper))


async def dead_are_dead(fleet: Fleet, *killed: int) -> None:
    """Check that nobody died but those that were killed."""
    gone = {m.process.pid for m in fleet.members if m.process.returncode == -signal.SIGKILL}
    assert gone == set(killed)


async def test_the_orchestrator_is_killed_and_comes_back(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    if mode == "choreography":
        pytest.skip("nobody conducts")
    fleet = fleets(mode, kafka_address, environment={"FLEET_SHIP_S": "60"})
    await serve(fleet)
    run = await fleet.submit()
    await fleet.until_noted("shipping")
    conductor = next(m for m in fleet.members if "orchestrator" in m.name)
    conductor.kill()
    (fleet.folder / "go").touch()
    await fleet.until_noted("sent")
    await fleet.conductor()
    await sound(fleet, run)


async def test_the_starter_is_killed(mode: str, fleets: Fleets, kafka_address: str) -> None:
    fleet = fleets(mode, kafka_address, environment={"FLEET_SHIP_S": "60"})
    await serve(fleet)
    starter = await fleet.start("run", str(fleet.file), "Ship it.")
    [(_, run)] = await fleet.until_noted("shipping")
    starter.kill()
    (fleet.folder / "go").touch()
    await sound(fleet, run)


async def test_a_starter_leaves_to_the_workers_what_they_serve(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address)
    [shipper] = await serve(fleet)
    starter = await fleet.start("run", str(fleet.file), "Ship it.")
    assert await starter.ended() == ANSWER
    [(pid, run)] = await fleet.noted("sent")
    assert pid == shipper
    asked = {pid for pid, *_ in await fleet.noted("asked")}
    assert starter.process.pid not in asked
    told = await asyncio.to_thread(starter.told)
    assert "tool  parcel: ship" in told, "what the worker's agent does is shown here"
    await sound(fleet, run)


async def test_a_starter_alone_does_everything_itself(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address)
    starter = await fleet.start("run", str(fleet.file), "Ship it.")
    assert await starter.ended() == ANSWER
    [(pid, run)] = await fleet.noted("sent")
    assert pid == starter.process.pid
    await sound(fleet, run)


async def test_a_frozen_worker_is_fenced_when_it_comes_back(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address, environment={"FLEET_SHIP_S": "60"})
    await serve(fleet, shippers=2)
    run = await fleet.submit()
    [(pid, _)] = await fleet.until_noted("shipping")
    frozen = next(m for m in fleet.members if m.process.pid == pid)
    begun = asyncio.get_running_loop().time()
    await asyncio.to_thread(fleet.stop, frozen)
    await fleet.until_noted("shipping", times=2)
    (fleet.folder / "go").touch()
    await fleet.finished(run)

    async def three_leases() -> bool:
        return asyncio.get_running_loop().time() - begun > 3 * LEASE_S

    await until(three_leases)
    frozen.process.send_signal(signal.SIGCONT)
    # It lived: it ends its call, and drains when it is told to.
    await fleet.until_noted("sent again")
    assert frozen.process.returncode is None
    frozen.process.terminate()
    await frozen.ended()
    [(other, _)] = await fleet.noted("sent")
    assert other != pid
    asked = [call for who, _, call in await fleet.noted("asked") if who == pid]
    assert asked == [0], "its next model call is not made"
    done = [e for e in await fleet.ledger(run) if e.type == "subtask.completed"]
    assert [e.data["attempt"] for e in done if e.data["subtask"] == "parcel"] == [2]
    await sound(fleet, run, lost=1)


async def test_a_drained_worker_ends_what_it_has_and_exits_with_0(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address, environment={"FLEET_SHIP_S": "60"})
    await serve(fleet)
    run = await fleet.submit()
    [(pid, _)] = await fleet.until_noted("shipping")
    shipper = next(m for m in fleet.members if m.process.pid == pid)
    shipper.process.terminate()

    async def drains() -> bool:
        return "drain" in await asyncio.to_thread(shipper.told)

    await until(drains)
    (fleet.folder / "go").touch()
    assert await shipper.ended() == ""
    await fleet.worker("shipper")  # for the subtask's next attempt, if there were one
    await sound(fleet, run)
    done = [e for e in await fleet.ledger(run) if e.type == "attempt.given_back"]
    assert done == []


async def test_a_rebalance_while_sixteen_are_at_work_repeats_none(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address, file=SHOP.with_name("wide.yaml"))
    await asyncio.gather(fleet.worker("parcels", "--concurrency", "16"), fleet.conductor())
    run = await fleet.submit()
    await fleet.until_noted("slow", times=16)
    await fleet.worker("parcels")  # joins the group: partitions move
    last = await fleet.worker("parcels")
    last.process.terminate()  # and leaves it again
    await last.ended()
    (fleet.folder / "go").touch()
    row = await fleet.finished(run)
    assert row.status == "completed"
    assert len(await fleet.noted("slow")) == 16
    assert {e.data["attempt"] for e in await fleet.ledger(run) if "attempt" in e.data} == {1}


async def test_a_cancelled_run_stops_the_workers(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address, environment={"FLEET_SHIP_S": "60"})
    await serve(fleet)
    run = await fleet.submit()
    await fleet.until_noted("shipping")
    await (await fleet.start("runs", "cancel", run)).ended()
    row = await fleet.finished(run)
    assert row.status == "cancelled"
    (fleet.folder / "go").touch()
    # The worker is free again: the next run is not held up by the cancelled call.
    await sound_next(fleet)
    assert await fleet.noted("sent", run=run) == []


async def sound_next(fleet: Fleet) -> None:
    """Check that a further run comes to its answer."""
    row = await fleet.finished(await fleet.submit())
    assert row.status == "completed"


async def test_an_agent_that_nobody_serves_fails_within_the_grace(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address)
    await asyncio.gather(fleet.worker("check"), fleet.conductor())
    run = await fleet.submit()
    row = await fleet.finished(run, within_s=3 * GRACE_S)
    assert row.status == "failed"
    failed = next(e for e in await fleet.ledger(run) if e.type == "subtask.failed")
    assert failed.data["error_class"] == "unroutable"


async def test_a_watcher_follows_from_elsewhere(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address, environment={"FLEET_SHIP_S": "60"})
    await serve(fleet)
    run = await fleet.submit()
    await fleet.until_noted("shipping")
    watcher = await fleet.start("runs", "watch", run)

    async def watches() -> bool:
        return "parcel" in await asyncio.to_thread(watcher.told)

    await until(watches)
    (fleet.folder / "go").touch()
    assert await watcher.ended() == ANSWER
    told = await asyncio.to_thread(watcher.told)
    assert "done  report" in told


async def test_a_worker_of_another_run_store_refuses(
    mode: str, fleets: Fleets, kafka_address: str
) -> None:
    fleet = fleets(mode, kafka_address)
    elsewhere = str(fleet.folder / "other.db")
    stranger = await fleet.worker("shipper", CADENZA_STORE__URL=elsewhere)
    await asyncio.gather(fleet.worker("check"), fleet.worker("writer"), fleet.conductor())
    run = await fleet.submit()
    await stranger.ended(code=2)
    assert "run store" in await asyncio.to_thread(stranger.told)
    await fleet.worker("shipper")
    await sound(fleet, run)
