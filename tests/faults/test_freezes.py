"""A process is frozen until its leases are over, and revived when another has taken its work."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from contextlib import closing

import pytest

from tests.conformance.gear import MODES, until
from tests.faults.driver import LEASE_S
from tests.faults.ground import ANSWER, Ground, Grounds, ended

pytestmark = [pytest.mark.timeout(120), pytest.mark.parametrize("mode", MODES)]


def _stop(ground: Ground, pid: int) -> None:
    # Within a transaction it would freeze the run store's lock, and everybody with it.
    with closing(sqlite3.connect(ground.folder / "runs.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        os.kill(pid, signal.SIGSTOP)
        db.execute("ROLLBACK")


async def _freeze(ground: Ground, where: str) -> tuple[int, int]:
    """Freeze a process there, let another one end the run, revive it; return both process ids."""
    frozen = await ground.start("run", hold=where)
    await ground.there("holding")
    await asyncio.to_thread(_stop, ground, frozen.pid)
    other = await ground.start("join")
    await ended(other)
    # The other one ended the run, so at least one lease is over; wait until three are.
    asked = await asyncio.to_thread((ground.folder / "holding").stat)
    now = asyncio.get_running_loop().time

    async def three_leases() -> bool:
        newest = await asyncio.to_thread((ground.folder / "runs.db").stat)
        return now() - begun > 3 * LEASE_S or newest.st_mtime - asked.st_mtime > 3 * LEASE_S

    begun = now()
    await until(three_leases)
    await asyncio.to_thread((ground.folder / "released").touch)
    frozen.send_signal(signal.SIGCONT)
    await ended(frozen)
    assert {r["output"] for r in await ground.results()} == {ANSWER}
    return frozen.pid, other.pid


async def test_a_revived_worker_makes_no_further_model_call(grounds: Grounds, mode: str) -> None:
    ground = grounds(mode)
    late, other = await _freeze(ground, "look ERROR")
    asked = await asyncio.to_thread(ground.noted, "asked")
    assert [pid for pid, *key in asked if key == ["failures", 0, 1]] == [other]
    assert late in [pid for pid, *key in asked if key == ["failures", 0, 0]]
    assert await ground.faults(lost=1, frozen=late) == []


async def test_a_revived_worker_makes_no_effect(grounds: Grounds, mode: str) -> None:
    ground = grounds(mode)
    late, other = await _freeze(ground, "reporter 0")
    assert [pid for pid, _ in await asyncio.to_thread(ground.noted, "published")] == [other]
    assert await ground.faults(lost=1, frozen=late) == []


async def test_the_outcome_of_a_revived_worker_is_refused(grounds: Grounds, mode: str) -> None:
    ground = grounds(mode)
    late, _ = await _freeze(ground, "correlator 0")
    _, ledger = await ground.ledger()
    about = [e for e in ledger if e.data.get("subtask") == "cause"]
    done = [e.data["attempt"] for e in about if e.type == "subtask.completed"]
    expired = [e.data["attempt"] for e in about if e.type == "attempt.expired"]
    assert (expired, done) == ([1], [2])
    assert await ground.faults(lost=1, frozen=late) == []
