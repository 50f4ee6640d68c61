"""Several processes on one SQLite file: killed, racing, and opening at the same moment."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from orchestrator.facts import CancelAsked
from orchestrator.store.sqlite import SqliteRunStore
from tests.contracts.run_store_gear import new_run

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def process(job: str, path: Path, run: str = "") -> AsyncIterator[Process]:
    command = (sys.executable, "-m", "tests.unit.store.processes", job, str(path), run)
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


async def line(child: Process) -> list[str]:
    assert child.stdout is not None
    async with asyncio.timeout(30):
        return (await child.stdout.readline()).decode().split()


async def start(*children: Process) -> None:
    """Let children that are ready go on, all at once."""
    for child in children:
        assert await line(child) == ["ready"]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")


async def lines(child: Process) -> list[list[str]]:
    """Return all further lines, once the child has ended."""
    async with asyncio.timeout(30):
        out, _ = await child.communicate()
    return [text.split() for text in out.decode().splitlines()]


def integrity(path: Path) -> str:
    db = sqlite3.connect(path)
    (told,) = db.execute("PRAGMA integrity_check").fetchone()
    db.close()
    return str(told)


@pytest.mark.parametrize("after", [1, 150])
async def test_every_acknowledged_write_survives_a_kill(data_folder: Path, after: int) -> None:
    path = data_folder / "runs.db"
    async with SqliteRunStore(str(path)) as store:
        gear = await new_run(store)
        for i in range(8):
            await gear.claim(f"s{i}")
    async with process("write", path, gear.run) as child:
        acknowledged = [await line(child) for _ in range(after)]
        child.kill()
        acknowledged += await lines(child)
    assert len(acknowledged) >= after
    assert await asyncio.to_thread(integrity, path) == "ok"
    async with SqliteRunStore(str(path)) as store:
        written = {
            f"s{i}": [e.data["n"] for e in await store.journal(gear.run, f"s{i}")] for i in range(8)
        }
    for positions in written.values():
        assert positions == list(range(len(positions)))
        assert len(positions) % 2 == 0, "a record is there whole or not at all"
    missing = [(s, n) for s, n in acknowledged if int(n) + 1 not in written[s]]
    assert not missing


async def test_processes_that_advance_a_run_at_once_never_fork_it(data_folder: Path) -> None:
    path = data_folder / "runs.db"
    async with SqliteRunStore(str(path)) as store:
        gear = await new_run(store)
        await gear.take_all()
        for i in range(60):
            await store.put(gear.run, CancelAsked(0, str(i)))
        rows = [row for row, _ in (await store.take(gear.run)).inbox]
        async with process("take", path, gear.run) as one, process("take", path, gear.run) as two:
            await start(one, two)
            told = [await lines(one), await lines(two)]
        took = [int(n) for said in told for word, n in said if word == "took"]
        lost = [int(n) for said in told for word, n in said if word == "lost"]
        assert sorted(took) == rows
        assert len(lost) == 2, "both processes ended well"
        events = await store.ledger(gear.run)
        assert [event.seq for event in events] == list(range(1, 62))
        assert sorted(event.data["row"] for event in events[1:]) == rows
    assert await asyncio.to_thread(integrity, path) == "ok"


async def test_processes_that_open_a_new_file_at_once_find_one_store(data_folder: Path) -> None:
    path = data_folder / "runs.db"
    async with process("open", path) as one, process("open", path) as two:
        await start(one, two)
        told = [await lines(one), await lines(two)]
    async with SqliteRunStore(str(path)) as store:
        assert told == [[[store.uuid]]] * 2
