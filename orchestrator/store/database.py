"""One SQLite file, one writing thread a process, and group commit.

Jobs that wait for the writer share one transaction and one ``fsync``; each runs in a savepoint of
its own, so that one job's failure leaves the others alone (https://www.sqlite.org/lang_savepoint.html).
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.store.errors import StoreBusy, StoreClosed, StoreError, StoreUnusable

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]
_GROUP = 64
_BUSY_MS = 10_000


class Database:
    """A SQLite file, written by one thread and read by another.

    Args:
        path: File path, or ``:memory:`` for a database that ends with this object.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._writer: _Thread | None = None
        self._reader: _Thread | None = None

    @property
    def path(self) -> str:
        """Where the database is."""
        return self._path

    async def open(self, prepare: Job[None]) -> None:
        """Open the file and let ``prepare`` create or check its tables.

        Raises:
            StoreUnusable: The path cannot be used; the message says why.
        """
        writer = _Thread(self._path, group=_GROUP)
        await asyncio.wrap_future(writer.start())
        try:
            await asyncio.wrap_future(writer.submit(prepare))
        except BaseException:
            await asyncio.to_thread(writer.stop)
            raise
        self._writer = self._reader = writer
        if self._path != ":memory:":
            self._reader = _Thread(self._path, group=0)
            await asyncio.wrap_future(self._reader.start())

    async def write(self, job: Job[T]) -> T:
        """Run a job inside a transaction; it is on disk when this returns."""
        return await self._run(self._writer, job)

    async def read(self, job: Job[T]) -> T:
        """Run a job that only reads."""
        return await self._run(self._reader, job)

    async def _run(self, thread: _Thread | None, job: Job[T]) -> T:
        if thread is None:
            raise StoreClosed
        # Shielded: an accepted write happens whether or not its caller still waits.
        return await asyncio.shield(asyncio.wrap_future(thread.submit(job)))

    async def close(self) -> None:
        """Finish accepted jobs and close; may be called twice."""
        threads = {t for t in (self._reader, self._writer) if t is not None}
        self._reader = self._writer = None
        for thread in threads:
            await asyncio.to_thread(thread.stop)


class _Thread:
    def __init__(self, path: str, *, group: int) -> None:
        self._path = path
        self._group = group
        self._jobs: queue.SimpleQueue[tuple[Job[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._opened: Future[None] = Future()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="cadenza-store", daemon=True)

    def start(self) -> Future[None]:
        self._thread.start()
        return self._opened

    def submit(self, job: Job[T]) -> Future[T]:
        if self._closed:
            raise StoreClosed
        future: Future[T] = Future()
        self._jobs.put((job, future))
        return future

    def stop(self) -> None:
        self._closed = True
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        try:
            db = _connect(self._path)
        except BaseException as exc:  # noqa: BLE001 - handed to whoever opens
            self._opened.set_exception(exc)
            return
        self._opened.set_result(None)
        try:
            while (batch := self._next()) is not None:
                if self._group:
                    _write(db, batch)
                else:
                    _read(db, batch)
        finally:
            db.close()

    def _next(self) -> list[tuple[Job[Any], Future[Any]]] | None:
        first = self._jobs.get()
        if first is None:
            return None
        batch = [first]
        while len(batch) < self._group and not self._jobs.empty():
            item = self._jobs.get()
            if item is None:
                self._jobs.put(None)
                break
            batch.append(item)
        return batch


def _connect(path: str) -> sqlite3.Connection:
    try:
        if path != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_MS / 1000)
        db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
    except (OSError, sqlite3.Error) as exc:
        raise StoreUnusable(f"cannot open the run store {path!r}: {exc}") from exc
    return db


def _read(db: sqlite3.Connection, batch: list[tuple[Job[Any], Future[Any]]]) -> None:
    for job, future in batch:
        try:
            db.execute("BEGIN")
            try:
                result = job(db)
            finally:
                db.execute("ROLLBACK")
        except BaseException as exc:  # noqa: BLE001 - handed to whoever asked
            future.set_exception(_translate(exc))
        else:
            future.set_result(result)


def _write(db: sqlite3.Connection, batch: list[tuple[Job[Any], Future[Any]]]) -> None:
    done: list[tuple[Future[Any], Any, BaseException | None]] = []
    try:
        db.execute("BEGIN IMMEDIATE")
        for job, future in batch:
            done.append((future, *_savepoint(db, job)))
        db.execute("COMMIT")
    except BaseException as exc:  # noqa: BLE001 - handed to whoever asked
        if db.in_transaction:
            db.execute("ROLLBACK")
        for _, future in batch:
            future.set_exception(_translate(exc))
        return
    for future, result, error in done:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(_translate(error))


def _savepoint(db: sqlite3.Connection, job: Job[T]) -> tuple[T | None, BaseException | None]:
    db.execute("SAVEPOINT job")
    try:
        result = job(db)
    except BaseException as exc:  # noqa: BLE001 - handed to whoever asked
        if not db.in_transaction:  # SQLite itself rolled back all of it, for example on a full disk
            raise
        db.execute("ROLLBACK TO job")
        db.execute("RELEASE job")
        return None, exc
    db.execute("RELEASE job")
    return result, None


def _translate(exc: BaseException) -> BaseException:
    if not isinstance(exc, sqlite3.Error):
        return exc
    busy = isinstance(exc, sqlite3.OperationalError) and "locked" in str(exc)
    error: StoreError = StoreBusy() if busy else StoreUnusable(f"the run store failed: {exc}")
    error.__cause__ = exc
    return error
