"""The broker is away: claimed work goes on, nothing is lost, and memory does not grow."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.conformance.gear import MODES, until
from tests.fleet.conftest import Fleets
from tests.fleet.fleet import Fleet
from tests.gear.programs import Kafka

pytestmark = [pytest.mark.timeout(240), pytest.mark.parametrize("mode", MODES)]
RUNS = 6
GROWTH_MB = 50


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def outage(fleet: Fleet, broker: Kafka, seconds: float) -> None:
    """Stop the broker while work is claimed, let that work end, and start the broker again."""
    servers = await asyncio.gather(
        *(fleet.worker(name) for name in ("shipper", "check", "writer")), fleet.conductor()
    )
    runs = [await fleet.submit() for _ in range(RUNS)]
    await fleet.until_noted("shipping", times=4)  # as many as there are slots
    pids = [member.process.pid for member in servers if member is not None]
    before = [await asyncio.to_thread(resident_mb, pid) for pid in pids]
    await broker.stop()
    (fleet.folder / "go").touch()
    await fleet.until_noted("sent", times=4)

    began = asyncio.get_running_loop().time()

    async def over() -> bool:
        return asyncio.get_running_loop().time() - began > seconds

    await until(over, within_s=seconds + 5)
    after = [await asyncio.to_thread(resident_mb, pid) for pid in pids]
    await broker.start()
    for run in runs:
        row = await fleet.finished(run)
        assert row.status == "completed"
        assert await fleet.faults(run) == []
    assert [m.process.returncode for m in servers if m is not None] == [None] * len(pids)
    growth = [now - then for now, then in zip(after, before, strict=True)]
    assert max(growth) < GROWTH_MB, growth


async def test_runs_outlive_a_short_outage(mode: str, fleets: Fleets, own_kafka: Kafka) -> None:
    fleet = fleets(mode, own_kafka.address, environment={"FLEET_SHIP_S": "60"})
    await outage(fleet, own_kafka, 5)


@pytest.mark.heavy
async def test_runs_outlive_half_a_minute(mode: str, fleets: Fleets, own_kafka: Kafka) -> None:
    fleet = fleets(mode, own_kafka.address, environment={"FLEET_SHIP_S": "60"})
    await outage(fleet, own_kafka, 30)
