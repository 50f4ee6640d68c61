"""One whole trace in a real Jaeger, whatever became of the processes that a run went through."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.conformance.gear import MODES
from tests.fleet.conftest import Fleets
from tests.fleet.fleet import ANSWER, Fleet
from tests.gear.programs import JaegerAt

pytestmark = [pytest.mark.timeout(150), pytest.mark.parametrize("mode", MODES)]
APPROVED = (Path(__file__).with_name("shop") / "approved.yaml").absolute()


async def verified(fleet: Fleet, run: str, jaeger: JaegerAt) -> set[str]:
    """Verify a run's trace by the command line, and return its services."""
    member = await fleet.start("trace", "verify", run, "--jaeger", jaeger.query)
    await member.ended()
    told = await asyncio.to_thread(member.told)
    return set(told.split("services: ")[1].strip().split(", "))


def traced(jaeger: JaegerAt, **more: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": jaeger.otlp, **more}


async def test_a_trace_is_whole_over_processes_and_equal_ledgers_to_one_process(
    mode: str, fleets: Fleets, kafka_address: str, jaeger: JaegerAt
) -> None:
    fleet = fleets(mode, kafka_address, environment=traced(jaeger))
    await asyncio.gather(*(fleet.worker(name) for name in ("shipper", "check", "writer")))
    await fleet.conductor()
    run = await fleet.submit()
    await fleet.finished(run)
    services = await verified(fleet, run, jaeger)
    assert {"shipper", "check", "writer"} <= services
    alone = await fleet.start("run", str(fleet.file), "Ship it.", "--bus", "memory")
    assert await alone.ended() == ANSWER
    [(_, one), (_, other)] = await fleet.noted("sent")
    assert await fleet.canonical(one) == await fleet.canonical(other)


async def test_a_trace_is_whole_after_a_worker_was_killed(
    mode: str, fleets: Fleets, kafka_address: str, jaeger: JaegerAt
) -> None:
    fleet = fleets(mode, kafka_address, environment=traced(jaeger, FLEET_SHIP_S="60"))
    await asyncio.gather(
        *(fleet.worker(name) for name in ("shipper", "shipper", "check", "writer")),
        fleet.conductor(),
    )
    run = await fleet.submit()
    [(pid, _)] = await fleet.until_noted("shipping")
    os.kill(pid, signal.SIGKILL)
    (fleet.folder / "go").touch()
    await fleet.finished(run)
    assert {"shipper", "check", "writer"} <= await verified(fleet, run, jaeger)


async def test_a_trace_is_whole_after_a_retry_and_an_approval(
    mode: str, fleets: Fleets, kafka_address: str, jaeger: JaegerAt
) -> None:
    fleet = fleets(mode, kafka_address, file=APPROVED, environment=traced(jaeger))
    await asyncio.gather(
        *(fleet.worker(name) for name in ("clerk", "flaky", "writer")), fleet.conductor()
    )
    starter = await fleet.start("run", str(fleet.file), "Ship it.")
    await starter.ended(code=4)
    told = await asyncio.to_thread(starter.told)
    run = next(line.split()[1] for line in told.splitlines() if line.split()[:1] == ["run"])
    await (await fleet.start("approve", run)).ended()
    row = await fleet.finished(run)
    assert row.status == "completed"
    kinds = [event.type for event in await fleet.ledger(run)]
    assert "subtask.retry_scheduled" in kinds
    assert "input.provided" in kinds
    assert {"clerk", "flaky", "writer"} <= await verified(fleet, run, jaeger)
