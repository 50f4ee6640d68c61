"""The run store contract for SQLite: in memory, in a file, and seen from two processes."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchestrator.store.base import RunStore
from orchestrator.store.sqlite import SqliteRunStore
from tests.contracts.run_store_contract import RunStoreContract
from tests.contracts.run_store_gear import Age
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
