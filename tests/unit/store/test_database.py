"""The database's threads: group commit, failures that stay where they are, and waking callers."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from orchestrator.store.database import Database
from orchestrator.store.errors import StoreBusy, StoreError, StoreFull, StoreUnusable


def make_table(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS t (x UNIQUE, data)")


def insert(db: sqlite3.Connection, x: int, data: bytes = b"") -> int:
    return db.execute("INSERT INTO t VALUES (?, ?)", (x, data)).rowcount


def inserting(x: int, data: bytes = b"") -> Callable[[sqlite3.Connection], int]:
    return lambda db: insert(db, x, data)


def found(db: sqlite3.Connection) -> list[int]:
    return [x for (x,) in db.execute("SELECT x FROM t ORDER BY x")]


@pytest.fixture(params=["memory", "file"])
async def database(request: pytest.FixtureRequest, data_folder: Path) -> AsyncIterator[Database]:
    database = Database(":memory:" if request.param == "memory" else str(data_folder / "x.db"))
    await database.open(make_table)
    yield database
    await database.close()


@pytest.fixture
async def file(data_folder: Path) -> AsyncIterator[Database]:
    database = Database(str(data_folder / "x.db"))
    await database.open(make_table)
    yield database
    await database.close()


async def traced(database: Database) -> list[str]:
    """Return a list that every statement of the writer is added to."""
    statements: list[str] = []
    await database.peek(lambda db: db.set_trace_callback(statements.append))
    return statements


async def test_concurrent_writes_share_few_commits(database: Database) -> None:
    statements = await traced(database)
    go = threading.Event()  # the first write takes its time, as one to a slow disk does
    first = asyncio.ensure_future(database.write(lambda db: go.wait(20)))
    jobs = [asyncio.ensure_future(database.write(inserting(i))) for i in range(200)]
    await asyncio.sleep(0)  # one step: all are accepted
    go.set()
    assert await asyncio.gather(first, *jobs) == [True] + [1] * 200
    assert statements.count("COMMIT") <= 5
    assert await database.read(found) == list(range(200))


async def test_a_lone_write_costs_one_transaction_and_no_savepoint(database: Database) -> None:
    statements = await traced(database)
    await database.write(lambda db: insert(db, 1))
    assert [text.split()[0] for text in statements] == ["BEGIN", "INSERT", "COMMIT"]


async def test_one_failing_job_leaves_its_group_alone(database: Database) -> None:
    await database.write(lambda db: insert(db, 50))

    def half_done(x: int) -> Callable[[sqlite3.Connection], int]:
        def job(db: sqlite3.Connection) -> int:
            insert(db, x)
            if x == 10:
                raise KeyError(x)
            return insert(db, 50) if x == 20 else 0

        return job

    go = threading.Event()
    first = asyncio.ensure_future(database.write(lambda db: go.wait(20)))
    jobs = [asyncio.ensure_future(database.write(half_done(i))) for i in range(40)]
    await asyncio.sleep(0)  # one step: all are accepted
    go.set()
    results = await asyncio.gather(*jobs, return_exceptions=True)
    assert await first
    assert [i for i, r in enumerate(results) if r != 0] == [10, 20]
    assert isinstance(results[10], KeyError)
    assert isinstance(results[20], StoreError)
    assert isinstance(results[20].__cause__, sqlite3.IntegrityError)
    assert await database.read(found) == [i for i in range(40) if i not in {10, 20}] + [50]


async def test_a_lone_failing_job_leaves_nothing(database: Database) -> None:
    def half_done(db: sqlite3.Connection) -> None:
        insert(db, 1)
        raise KeyError("x")

    with pytest.raises(KeyError):
        await database.write(half_done)
    assert await database.read(found) == []


async def test_a_full_disk_is_told_and_later_writes_work_again(database: Database) -> None:
    async def allow(more: int) -> None:
        def job(db: sqlite3.Connection) -> None:
            (pages,) = db.execute("PRAGMA page_count").fetchone()
            db.execute(f"PRAGMA max_page_count = {pages + more}").fetchall()

        await database.peek(job)

    await allow(2)
    big = bytes(100_000)
    with pytest.raises(StoreFull, match="free some space"):
        await database.write(lambda db: insert(db, -1, big))
    jobs = [database.write(inserting(i, big * (i % 2))) for i in range(8)]
    results = await asyncio.gather(*jobs, return_exceptions=True)
    assert all(r == 1 or isinstance(r, StoreFull) for r in results)
    assert any(isinstance(r, StoreFull) for r in results)
    acknowledged = [i for i, r in enumerate(results) if r == 1]
    assert await database.read(found) == acknowledged
    await allow(1_000)
    assert await database.write(lambda db: insert(db, 100, big)) == 1
    assert await database.read(found) == [*acknowledged, 100]


async def test_a_lock_held_for_too_long_is_told_and_later_writes_work(file: Database) -> None:
    await file.peek(lambda db: db.execute("PRAGMA busy_timeout = 20").fetchall())
    other = await asyncio.to_thread(
        sqlite3.connect, file.path, isolation_level=None, check_same_thread=False
    )
    await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy) as caught:
        await file.write(lambda db: insert(db, 1))
    assert caught.value.retryable
    await asyncio.to_thread(other.execute, "ROLLBACK")
    assert await file.write(lambda db: insert(db, 1)) == 1
    await asyncio.to_thread(other.close)


async def test_reading_goes_on_while_another_process_writes(file: Database) -> None:
    await file.write(lambda db: insert(db, 1))
    other = await asyncio.to_thread(
        sqlite3.connect, file.path, isolation_level=None, check_same_thread=False
    )
    await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
    await asyncio.to_thread(other.execute, "INSERT INTO t VALUES (2, '')")
    assert await file.read(found) == [1]
    await asyncio.to_thread(other.execute, "COMMIT")
    assert await file.read(found) == [1, 2]
    await asyncio.to_thread(other.close)


async def test_a_job_that_should_only_read_cannot_write(file: Database) -> None:
    with pytest.raises(StoreUnusable, match="readonly"):
        await file.read(lambda db: insert(db, 1))
    assert await file.read(found) == []


async def test_a_file_is_written_through_to_the_disk(file: Database) -> None:
    def settings(db: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous")
        return [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await file.peek(settings) == ["wal", 2]


async def test_a_caller_whose_loop_is_gone_does_not_harm_the_others(database: Database) -> None:
    go = threading.Event()

    def leave_early() -> None:
        async def ask() -> None:
            asking = asyncio.ensure_future(database.write(lambda db: go.wait(20) and insert(db, 1)))
            await asyncio.sleep(0)  # one step: the job is accepted
            assert not asking.done()

        asyncio.run(ask())

    await asyncio.to_thread(leave_early)
    go.set()
    assert await database.write(lambda db: insert(db, 2)) == 1
    assert await database.read(found) == [1, 2]


async def test_opening_twice_is_refused_and_opening_again_is_not(file: Database) -> None:
    with pytest.raises(StoreError, match="is open already"):
        await file.open(make_table)
    await file.write(lambda db: insert(db, 1))
    await file.close()
    await file.open(make_table)
    assert await file.read(found) == [1]
