"""What the tests of several processes run in each: ``python -m tests.unit.store.processes``."""

from __future__ import annotations

import asyncio
import sys
import time

from agents.journal import Entry
from orchestrator.commit import Commit
from orchestrator.state import Event
from orchestrator.store.base import AttemptId
from orchestrator.store.sqlite import SqliteRunStore


def tell(*words: object) -> None:
    print(*words, flush=True)


async def write_for_ever(path: str, run: str) -> None:
    """Write journals of eight subtasks, and tell each position that was acknowledged."""

    async def write(subtask: str) -> None:
        n = 0
        while True:
            lines = [Entry("notes", {"n": n + i}) for i in range(2)]
            attempt = AttemptId(run, subtask, 1, "w")
            assert await store.record(attempt, n, lines, lease_s=30) == "ok"
            tell(subtask, n)
            n += 2

    async with SqliteRunStore(path) as store:
        await asyncio.gather(*(write(f"s{i}") for i in range(8)))


async def take_all(path: str, run: str) -> None:
    """Commit one event for each row of the inbox, against whoever else does."""
    async with SqliteRunStore(path) as store:
        await hear("ready")
        lost = 0
        while (batch := await store.take(run)).inbox:
            row = batch.inbox[0][0]
            events = await store.ledger(run)
            commit = Commit(run, len(events), time.time(), inbox=[row])
            commit.events = [Event("took", {"row": row})]
            if await store.commit(commit):
                tell("took", row)
            else:
                lost += 1
        tell("lost", lost)


async def open_once(path: str, _run: str) -> None:
    """Open a store at the moment the test says."""
    await hear("ready")
    async with SqliteRunStore(path) as store:
        tell(store.uuid)


async def hear(word: str) -> None:
    """Tell a word and wait for a line."""
    tell(word)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    job = {"write": write_for_ever, "take": take_all, "open": open_once}[sys.argv[1]]
    asyncio.run(job(*sys.argv[2:]))
