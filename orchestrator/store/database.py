"""One SQLite file, one writing thread a process, and group commit.

Jobs that wait for the writer share one transaction and one ``fsync``; each runs in a savepoint of
its own, so that one job's failure leaves the others alone (https://www.sqlite.org/lang_savepoint.html).
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.store.errors import StoreBusy, StoreClosed, StoreError, StoreFull, StoreUnusable

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]
_GROUP = 64
_BUSY_S = 10.0


class Database:
    """A SQLite file, written by one thread and read by another.

    Args:
        path: File path, or ``:memory:`` for a database that ends with this object.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._writer: _Thread | None = None
        self._reader: _Thread | None = None

    async def open(self, prepare: Job[None]) -> None:
        """Open the file and let ``prepare`` create or check its tables, under the write lock.

        Raises:
            StoreUnusable: The path cannot be used; the message says why.
            StoreBusy: Another process holds the lock.
        """
        if self._writer is not None:
            raise StoreError(f"the run store {self.path!r} is open already")
        await asyncio.to_thread(self._open, prepare)

    def _open(self, prepare: Job[None]) -> None:
        db = _connect(self.path, prepare)
        reader = None
        if self.path != ":memory:":
            try:
                reader = _connect(self.path, None)
            except BaseException:
                db.close()
                raise
        self._writer = _Thread(db, _write)
        self._reader = self._writer if reader is None else _Thread(reader, _read)

    async def write(self, job: Job[T]) -> T:
        """Run a job inside a transaction; it is on disk when this returns.

        An accepted job is done whether or not its caller still waits.
        """
        return await self._run(self._writer, job)

    async def read(self, job: Job[T]) -> T:
        """Run a job that only reads, all of it at one moment."""
        return await self._run(self._reader, job)

    async def peek(self, job: Job[T]) -> T:
        """Run a job on the writer's connection, outside a transaction."""
        return await self._run(self._writer, job, bare=True)

    async def _run(self, thread: _Thread | None, job: Job[T], *, bare: bool = False) -> T:
        if thread is None:
            raise StoreClosed
        call = _Call(job, bare=bare)
        thread.calls.put(call)
        result: T = await call.future
        return result

    async def close(self) -> None:
        """Finish accepted jobs and close; may be called twice."""
        threads = {t for t in (self._reader, self._writer) if t is not None}
        self._reader = self._writer = None
        for thread in threads:
            thread.calls.put(None)
        for thread in threads:
            await asyncio.to_thread(thread.join)


class _Call:
    """A job, and who waits for it."""

    __slots__ = ("bare", "error", "future", "job", "loop", "result")

    def __init__(self, job: Job[Any], *, bare: bool) -> None:
        self.job = job
        self.bare = bare
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Tell who waits; called on its loop."""
        if self.future.done():  # its caller was cancelled
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(_translate(self.error))


class _Thread(threading.Thread):
    def __init__(
        self, db: sqlite3.Connection, do: Callable[[sqlite3.Connection, list[_Call]], None]
    ) -> None:
        super().__init__(name="cadenza-store", daemon=True)
        self.calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._db = db
        self._do = do
        self.start()

    def run(self) -> None:
        last = False
        while not last:
            batch: list[_Call] = []
            call = self.calls.get()
            while call is not None:
                batch.append(call)
                if len(batch) == _GROUP or self.calls.empty():
                    break
                call = self.calls.get()
            last = call is None
            self._do(self._db, batch)
            _settle(batch)
        self._db.close()


def _settle(calls: list[_Call]) -> None:
    # One wake-up a loop and not one a job: waking writes to a socket.
    for loop in {call.loop for call in calls}:
        mine = [call for call in calls if call.loop is loop]
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle_all, mine)


def _settle_all(calls: list[_Call]) -> None:
    for call in calls:
        call.settle()


def _connect(path: str, prepare: Job[None] | None) -> sqlite3.Connection:
    """Open a connection for the writer, which prepares, or for the reader, which does not."""
    if Path(path).is_dir():
        raise StoreUnusable(f"{path!r} is a folder; give the run store the path of a file in it")
    db: sqlite3.Connection | None = None
    try:
        if path != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S, check_same_thread=False)
        if prepare is None:
            db.execute("PRAGMA query_only = ON")
            return db
        # Before anything is changed: the file may be another program's.
        db.execute("BEGIN IMMEDIATE")
        prepare(db)
        db.execute("COMMIT")
        _use_wal(db)
        db.execute("PRAGMA synchronous = FULL")
    except BaseException as exc:
        if db is not None:
            db.close()
        if not isinstance(exc, (OSError, sqlite3.Error)) or _code(exc) == sqlite3.SQLITE_BUSY:
            raise _translate(exc) from exc
        hint = "check the path and its rights, or name another file"
        raise StoreUnusable(f"cannot open the run store {path!r}: {exc}; {hint}") from exc
    return db


def _use_wal(db: sqlite3.Connection) -> None:
    # SQLite does not wait for this lock by itself when two processes open a new file at once.
    end = time.monotonic() + _BUSY_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as exc:
            if _code(exc) != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _do(db: sqlite3.Connection, call: _Call) -> None:
    try:
        call.result = call.job(db)
    except BaseException as exc:  # noqa: BLE001 - handed to whoever asked
        call.error = exc


def _read(db: sqlite3.Connection, calls: list[_Call]) -> None:
    for call in calls:
        try:
            db.execute("BEGIN")
            _do(db, call)
        except sqlite3.Error as exc:
            call.error = exc
        _roll_back(db)


def _write(db: sqlite3.Connection, calls: list[_Call]) -> None:
    for call in calls:
        if call.bare:
            _do(db, call)
    group = [call for call in calls if not call.bare]
    if not group:
        return
    try:
        db.execute("BEGIN IMMEDIATE")
        if len(group) == 1:
            group[0].result = group[0].job(db)
        else:
            for call in group:
                _savepoint(db, call)
        db.execute("COMMIT")
    except BaseException as exc:  # noqa: BLE001 - handed to whoever asked
        for call in group:
            call.error = exc
        _roll_back(db)


def _savepoint(db: sqlite3.Connection, call: _Call) -> None:
    db.execute("SAVEPOINT job")
    _do(db, call)
    if call.error is not None:
        if not db.in_transaction:  # SQLite itself rolled back all of it, for example on a full disk
            raise call.error
        db.execute("ROLLBACK TO job")
    db.execute("RELEASE job")


def _roll_back(db: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # what it fails for is told by the next statement
        if db.in_transaction:
            db.execute("ROLLBACK")


def _code(exc: BaseException) -> int:
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF  # the primary code


def _translate(exc: BaseException) -> BaseException:
    if not isinstance(exc, sqlite3.Error):
        return exc
    error: StoreError
    match _code(exc):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            error = StoreBusy()
        case sqlite3.SQLITE_FULL:
            error = StoreFull()
        case _:
            error = StoreUnusable(f"the run store failed: {exc}")
    error.__cause__ = exc
    return error
