"""Sweeps and gates begin at the rows they need: a thousand ended runs cost them nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from agents.journal import EffectMark, Reserve
from agents.usage import Usage
from orchestrator.facts import CancelAsked
from orchestrator.store.base import RunStore
from orchestrator.store.sqlite import SqliteRunStore
from tests.contracts.run_store_gear import LEASE_S, ended, entry, new_run, past, said

# Small by nature: what waits to be taken and what is open; or read with a limit.
_MAY_BE_SCANNED = (
    "SCAN i USING COVERING INDEX inbox_run",
    "SCAN a USING INDEX attempts_open",
    "SCAN runs USING INDEX runs_created",
    "SCAN CONSTANT ROW",
)


@pytest.fixture
async def store() -> AsyncIterator[SqliteRunStore]:
    async with SqliteRunStore(":memory:") as store:
        yield store


async def work(store: RunStore) -> None:
    """Use every hot method once."""
    gear = await new_run(store)
    await gear.take_all()
    assert await gear.commit(said("x"), timers=[past()])
    attempt = await gear.claim()
    await gear.send("t", since=100)
    await store.due(gear.scope("a", "b"))
    await store.beat("w", gear.scope("a"), attempts=[attempt],
                     lease_s=LEASE_S)  # fmt: skip
    for n in (0, 0, 1):
        await store.record(
            attempt, n, [entry(str(n))], lease_s=LEASE_S, settle=Usage(1), reserve=Reserve(1),
            effects=[EffectMark("k", "intent")],
        )  # fmt: skip
    await store.record(replace(attempt, worker="x"), 0, [], lease_s=LEASE_S, settle=Usage(1))
    await store.finish(attempt, ended(attempt), blobs={"f00": b""})
    await store.journal(gear.run, "s", generation=0)
    await store.effects(gear.run, "s")
    await store.put(gear.run, CancelAsked(0, "x"), key="cancel")
    await gear.snapshot()
    guards = {"still_unclaimed": [("t", 1)], "still_unserved": ["b"], "closed": [("s", 1)]}
    assert await gear.commit(said("y"), **guards, fired=[past()], cancelled=[("s", 1)])
    assert await gear.commit(said("run.failed"), final="failed")
    await store.mark_published(gear.run, start=0, end=await store.published(gear.run))
    await store.root_exported(gear.run)
    await store.usage(gear.run)
    await store.run(gear.run[:20])
    await store.runs(limit=3)
    await store.blob("f00")


async def test_no_hot_statement_scans_a_table(store: SqliteRunStore) -> None:
    statements: set[str] = set()

    def plans(db: sqlite3.Connection) -> dict[str, list[str]]:
        explained = {}
        for sql in statements:
            if sql.split()[0] in {"SELECT", "INSERT", "UPDATE", "DELETE"}:
                rows = db.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
                explained[sql] = [row[3] for row in rows if row[3].startswith("SCAN")]
        return explained

    await store._db.peek(lambda db: db.set_trace_callback(statements.add))
    await work(store)
    await store._db.peek(lambda db: db.set_trace_callback(None))
    explained = await store._db.peek(plans)
    assert len(explained) > 40
    scans = {
        sql: found
        for sql, scanned in explained.items()
        if (found := [s for s in scanned if not s.startswith(_MAY_BE_SCANNED)])
    }
    assert scans == {}
