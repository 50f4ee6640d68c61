"""The SQLite run store: one host, any number of processes."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.journal import EffectMark, Entry, Reserve, Verdict
from agents.usage import Budget, Usage
from orchestrator.commit import Batch, Commit
from orchestrator.facts import Ended, Fact, Submitted
from orchestrator.state import Event
from orchestrator.store import attempt_rows, ledger_rows, sweep_rows
from orchestrator.store.base import AttemptId, Due, RunRow, RunStore, Scope
from orchestrator.store.database import Database
from orchestrator.store.errors import RunUnknown, StoreNewer, StoreUnusable
from orchestrator.store.schema import SCHEMA_VERSION, TABLES, UPGRADES


class SqliteRunStore(RunStore):
    """A run store in one SQLite file (WAL, ``synchronous=FULL``, group commit).

    Args:
        path: File path; its folder is created. ``:memory:`` ends with this object.
    """

    def __init__(self, path: str) -> None:
        self.uuid = ""
        self._db = Database(path)

    @property
    def path(self) -> str:
        """Where the store is."""
        return self._db.path

    async def open(self) -> None:
        await self._db.open(self._prepare)

    def _prepare(self, db: sqlite3.Connection) -> None:
        names = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        if not names:
            _execute(db, TABLES)
            rows = (("version", str(SCHEMA_VERSION)), ("uuid", str(uuid.uuid4())))
            db.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        elif not {"meta", "ledger", "attempts"} <= names:
            raise StoreUnusable(
                f"{self.path!r} is a database, but not a run store of Cadenza; name another file"
            )
        meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
        if int(meta["version"]) > SCHEMA_VERSION:
            raise StoreNewer(
                f"the run store {self.path!r} has version {meta['version']}, this Cadenza knows"
                f" {SCHEMA_VERSION}; upgrade Cadenza or use another store"
            )
        for version in range(int(meta["version"]), SCHEMA_VERSION):
            _execute(db, UPGRADES[version])
            db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (str(version + 1),))
        self.uuid = meta["uuid"]

    async def close(self) -> None:
        await self._db.close()

    async def submit(
        self,
        fact: Submitted,
        *,
        pipeline: str,
        pipeline_hash: str,
        pipeline_body: Mapping[str, Any],
        mode: str,
        budget: Budget,
    ) -> None:
        await self._db.write(
            lambda db: ledger_rows.submit(
                db,
                fact,
                pipeline=pipeline,
                pipeline_hash=pipeline_hash,
                body=pipeline_body,
                mode=mode,
                budget=budget,
            )
        )

    async def put(self, run: str, fact: Fact, *, key: str | None = None) -> bool:
        return await self._db.write(lambda db: ledger_rows.put(db, run, fact, key))

    async def take(self, run: str) -> Batch:
        return await self._db.read(lambda db: ledger_rows.take(db, run))

    async def commit(self, commit: Commit) -> bool:
        try:
            await self._db.write(lambda db: ledger_rows.commit(db, commit))
        except ledger_rows.CommitVoidError:
            return False
        return True

    async def ledger(self, run: str, *, after: int = 0) -> list[Event]:
        return await self._db.read(lambda db: ledger_rows.ledger(db, run, after))

    async def published(self, run: str) -> int:
        sql = "SELECT published FROM runs WHERE run = ?"
        row = await self._db.read(lambda db: db.execute(sql, (run,)).fetchone())
        if row is None:
            raise RunUnknown(f"there is no run {run!r}")
        return int(row[0])

    async def mark_published(self, run: str, *, start: int, end: int) -> None:
        sql = "UPDATE runs SET published = ? WHERE run = ? AND published = ?"
        await self._db.write(lambda db: db.execute(sql, (end, run, start)).rowcount)

    async def run(self, run: str) -> RunRow:
        return await self._db.read(lambda db: ledger_rows.run_row(db, run))

    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        return await self._db.read(lambda db: ledger_rows.run_rows(db, limit, status))

    async def pipeline(self, pipeline_hash: str) -> dict[str, Any]:
        body = await self._scalar("SELECT body FROM pipelines WHERE hash = ?", pipeline_hash)
        return dict(json.loads(body))

    async def usage(self, run: str) -> Usage:
        return await self._db.read(lambda db: attempt_rows.usage(db, run))

    async def claim(self, attempt: AttemptId, *, lease_s: float) -> bool:
        return await self._db.write(lambda db: attempt_rows.claim(db, attempt, lease_s))

    async def beat(
        self, worker: str, scope: Scope, *, attempts: Sequence[AttemptId], lease_s: float
    ) -> list[Verdict]:
        return await self._db.write(
            lambda db: attempt_rows.beat(db, worker, scope, attempts, lease_s)
        )

    async def present(self, scope: Scope, *, within_s: float) -> frozenset[str]:
        return await self._db.read(lambda db: attempt_rows.present(db, scope, within_s))

    async def leave(self, worker: str) -> None:
        await self._db.write(lambda db: attempt_rows.leave(db, worker))

    async def record(
        self,
        attempt: AttemptId,
        n: int,
        entries: Sequence[Entry],
        *,
        lease_s: float,
        settle: Usage | None = None,
        reserve: Reserve | None = None,
        effects: Sequence[EffectMark] = (),
    ) -> Verdict:
        return await self._db.write(
            lambda db: attempt_rows.record(
                db,
                attempt,
                n,
                entries,
                lease_s=lease_s,
                settle=settle,
                reserve=reserve,
                effects=effects,
            )
        )

    async def finish(
        self, attempt: AttemptId, fact: Ended, *, blobs: Mapping[str, bytes]
    ) -> Verdict:
        return await self._db.write(lambda db: attempt_rows.finish(db, attempt, fact, blobs))

    async def journal(
        self, run: str, subtask: str, *, generation: int | None = None
    ) -> list[Entry]:
        return await self._db.read(lambda db: attempt_rows.journal(db, run, subtask, generation))

    async def effects(self, run: str, subtask: str) -> dict[str, EffectMark]:
        return await self._db.read(lambda db: attempt_rows.effects(db, run, subtask))

    async def due(self, scope: Scope) -> Due:
        due = await self._db.read(lambda db: sweep_rows.due(db, scope))
        if due.resend:
            # Only now under the lock: most sweeps find nothing.
            taken = await self._db.write(lambda db: sweep_rows.resends(db, scope))
            due = replace(due, resend=taken)
        return due

    async def root_exported(self, run: str) -> bool:
        sql = "UPDATE runs SET root = 'exported' WHERE run = ? AND root = 'pending'"
        return await self._db.write(lambda db: db.execute(sql, (run,)).rowcount == 1)

    async def put_blob(self, data: bytes, media_type: str) -> str:
        return await self._db.write(lambda db: attempt_rows.put_blob(db, "", data, media_type))

    async def blob(self, sha256: str) -> bytes:
        return bytes(await self._scalar("SELECT data FROM blobs WHERE sha256 = ?", sha256))

    async def version(self) -> int:
        # The writer's own connection: only what others commit changes its number.
        sql = "PRAGMA data_version"
        return await self._db.peek(lambda db: int(db.execute(sql).fetchone()[0]))

    async def _scalar(self, sql: str, key: str) -> Any:
        row = await self._db.read(lambda db: db.execute(sql, (key,)).fetchone())
        if row is None:
            raise KeyError(key)
        return row[0]


def _execute(db: sqlite3.Connection, statements: str) -> None:
    # Not executescript: that commits what has begun.
    for statement in statements.split(";\n"):
        db.execute(statement)
