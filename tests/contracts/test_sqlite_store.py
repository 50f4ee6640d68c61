"""The run store contract for SQLite: in memory, in a file, and seen from two processes."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.store.base import RunStore
from orchestrator.store.sqlite import SqliteRunStore
from tests.contracts.run_store_contract import RunStoreContract
from tests.contracts.run_store_gear import Age, new_run
from tests.contracts.shared_run_store_contract import SharedRunStoreContract

_TIMES = {
    "attempts": ("lease_until", "since", "sent_at"),
    "timers": ("at",),
    "workers": ("seen",),
    "runs": ("created",),
}


def _age(db: sqlite3.Connection, seconds: float) -> None:
    for table, columns in _TIMES.items():
        older = ", ".join(f"{column} = {column} - {seconds}" for column in columns)
        db.execute(f"UPDATE {table} SET {older}")


async def _opened(path: str) -> AsyncIterator[SqliteRunStore]:
    async with SqliteRunStore(path) as store:
        yield store


async def test_a_store_of_the_first_version_is_brought_up_to_date(data_folder: Path) -> None:
    path = str(data_folder / "runs.db")
    async with SqliteRunStore(path) as store:
        gear = await new_run(store)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "DROP TABLE workers; UPDATE meta SET value = '1' WHERE key = 'version';"
            "CREATE TABLE workers (worker TEXT, pipeline_hash TEXT, agent TEXT, seen REAL)"
        )
    async with SqliteRunStore(path) as store:
        await store.beat("w", gear.scope("a"), attempts=[], lease_s=30.0)
        assert await store.present(gear.scope(), within_s=30.0) == {"a"}
        assert (await store.run(gear.run)).run == gear.run
    async with SqliteRunStore(path):  # once is enough
        pass


class SqliteFixtures:
    @pytest.fixture
    def age(self, store: SqliteRunStore) -> Age:
        async def age(seconds: float) -> None:
            await store._db.write(lambda db: _age(db, seconds))

        return age


class TestSqliteInMemory(SqliteFixtures, RunStoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[RunStore]:
        async for store in _opened(":memory:"):
            yield store


class TestSqliteFile(SqliteFixtures, RunStoreContract, SharedRunStoreContract):
    @pytest.fixture
    async def store(self, data_folder: Path) -> AsyncIterator[RunStore]:
        async for store in _opened(str(data_folder / "runs.db")):
            yield store

    @pytest.fixture
    async def second(self, store: SqliteRunStore) -> AsyncIterator[RunStore]:
        async for second in _opened(store.path):
            yield second
