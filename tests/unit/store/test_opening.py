"""Opening a run store: clear errors, foreign files left alone, and two processes at once."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from agents.journal import Reserve
from agents.usage import Usage
from orchestrator.store.errors import StoreBusy, StoreClosed, StoreNewer, StoreUnusable
from orchestrator.store.schema import SCHEMA_VERSION
from orchestrator.store.sqlite import SqliteRunStore
from tests.contracts.run_store_gear import LEASE_S, entry, new_run


def run_sql(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def content(path: Path) -> bytes | list[Path] | None:
    if path.is_dir():
        return list(path.iterdir())
    return path.read_bytes() if path.is_file() else None


async def refused(path: Path, error: type[Exception]) -> str:
    """Return what opening says; what is there stays as it is."""
    before = content(path)
    store = SqliteRunStore(str(path))
    with pytest.raises(error) as caught:
        await store.open()
    assert content(path) == before
    with pytest.raises(StoreClosed):
        await store.runs()
    await store.close()
    assert str(path) in str(caught.value)
    return str(caught.value)


async def test_a_missing_folder_is_created(data_folder: Path) -> None:
    path = data_folder / "new" / "deep" / "runs.db"
    async with SqliteRunStore(str(path)) as store:
        assert store.path == str(path)
        assert await store.runs() == []
    assert path.is_file()


async def test_a_folder_is_no_run_store(data_folder: Path) -> None:
    assert "is a folder; give" in await refused(data_folder, StoreUnusable)


async def test_a_path_under_a_file_is_told(data_folder: Path) -> None:
    (data_folder / "file").write_text("x")
    told = await refused(data_folder / "file" / "runs.db", StoreUnusable)
    assert "check the path and its rights" in told


async def test_a_file_that_is_no_database_is_told(data_folder: Path) -> None:
    path = data_folder / "runs.db"
    path.write_bytes(b"a letter to my aunt, and more of it\n" * 100)
    assert "file is not a database" in await refused(path, StoreUnusable)


@pytest.mark.parametrize("table", ["songs (title)", "meta (key, value)"])
async def test_another_programs_database_is_told_and_left_alone(
    data_folder: Path, table: str
) -> None:
    path = data_folder / "runs.db"
    run_sql(path, f"CREATE TABLE {table}")
    assert "not a run store of Cadenza" in await refused(path, StoreUnusable)


async def test_a_newer_versions_store_is_told_and_left_alone(data_folder: Path) -> None:
    path = data_folder / "runs.db"
    async with SqliteRunStore(str(path)):
        pass
    run_sql(path, f"UPDATE meta SET value = '{SCHEMA_VERSION + 1}' WHERE key = 'version'")
    assert "upgrade Cadenza" in await refused(path, StoreNewer)


async def test_a_store_is_not_used_before_it_is_opened(data_folder: Path) -> None:
    with pytest.raises(StoreClosed):
        await SqliteRunStore(str(data_folder / "runs.db")).runs()
    assert content(data_folder) == []


async def test_a_locked_file_is_told(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = data_folder / "runs.db"
    monkeypatch.setattr("orchestrator.store.database._BUSY_S", 0.02)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreBusy):
        await SqliteRunStore(str(path)).open()
    other.close()
    async with SqliteRunStore(str(path)) as store:
        assert await store.runs() == []


async def test_stores_opened_at_the_same_moment_are_one(data_folder: Path) -> None:
    for i in range(10):
        stores = [SqliteRunStore(str(data_folder / f"{i}.db")) for _ in range(6)]
        await asyncio.gather(*(store.open() for store in stores))
        assert len({store.uuid for store in stores}) == 1
        gear = await new_run(stores[0])
        assert [row.run for row in await stores[-1].runs()] == [gear.run]
        await asyncio.gather(*(store.close() for store in stores))


async def test_memory_stores_share_nothing() -> None:
    async with SqliteRunStore(":memory:") as one, SqliteRunStore(":memory:") as other:
        assert one.uuid != other.uuid
        await new_run(one)
        assert await other.runs() == []


async def test_the_gate_costs_few_statements() -> None:
    async with SqliteRunStore(":memory:") as store:
        gear = await new_run(store)
        attempt = await gear.claim()
        statements: list[str] = []
        await store._db.peek(lambda db: db.set_trace_callback(statements.append))
        call = Reserve(llm_calls=1, tokens=100)
        await store.record(attempt, 0, [entry("a")], lease_s=LEASE_S, reserve=call)
        await store.record(
            attempt, 1, [entry("b")], lease_s=LEASE_S, settle=Usage(1, 0, 9, 9), reserve=call
        )
    verbs = [text.split()[0] for text in statements]
    assert verbs == [
        *("BEGIN", "UPDATE", "INSERT", "UPDATE", "UPDATE", "COMMIT"),
        *("BEGIN", "UPDATE", "INSERT", "UPDATE", "UPDATE", "COMMIT"),
    ]  # the fence, the journal, the budget; and what the attempt holds, when that has changed
