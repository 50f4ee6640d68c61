"""A run seen from the caller's side: submitted, followed, answered, cancelled."""

from __future__ import annotations

import asyncio
import mimetypes
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from agents.assignment import Answer
from agents.content import Blob
from agents.events import AgentEvent
from orchestrator.app import App
from orchestrator.cause import Cause
from orchestrator.codec import canonical_json
from orchestrator.errors import InputClosed, InputUnknown, UsageError
from orchestrator.facts import Answered, CancelAsked, Submitted
from orchestrator.result import RunResult, open_inputs, read_result, waits_for_people
from orchestrator.settings import to_json
from orchestrator.state import Event
from orchestrator.store.base import RunRow, RunStore

MAX_TASK_BYTES = 4 * 1024 * 1024
MAX_FILE_BYTES = 64 * 1024 * 1024
POLL_S = 0.5
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id() -> str:
    """Return a run id: 16 characters, sortable by time, 40 random bits."""
    number = (int(time.time() * 1000) << 40 | int.from_bytes(os.urandom(5), "big")) & (2**80 - 1)
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(75, -1, -5))


async def keep_files(store: RunStore, paths: Sequence[str | os.PathLike[str]]) -> list[Blob]:
    """Keep files in the run store.

    Raises:
        UsageError: A file is missing, cannot be read, is too large, or two have one name.
    """
    blobs: list[Blob] = []
    for path in map(Path, paths):
        if any(blob.name == path.name for blob in blobs):
            raise UsageError(f"two files are named {path.name!r}; rename one")
        data, media_type = await asyncio.to_thread(_read, path)
        sha = await store.put_blob(data, media_type)
        blobs.append(Blob(media_type, sha, path.name, len(data)))
    return blobs


def _read(path: Path) -> tuple[bytes, str]:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise UsageError(f"file {str(path)!r} has {size:,} bytes; 64 MiB is the most")
        # Guessing is here because it reads the system's tables when it is first asked.
        media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return path.read_bytes(), media_type
    except OSError as exc:
        raise UsageError(f"file {str(path)!r} cannot be read: {exc.strerror}") from exc


async def submit(
    app: App,
    task: str,
    *,
    session: str | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    values: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> str:
    """Submit a run and return its id.

    Raises:
        UsageError: The task is empty or too large, or a file cannot be used.
    """
    if not task.strip():
        raise UsageError("the task is empty; say what is to be done")
    if len(task.encode("utf-8", "replace")) > MAX_TASK_BYTES:
        raise UsageError("the task is longer than 4 MiB; pass the text as a file")
    settings = app.source.settings
    run = new_run_id()
    trace = app.tracing.new_trace(f"invoke_workflow {settings.name}")
    data = {
        "pipeline": settings.name,
        "pipeline_hash": app.source.hash,
        "mode": settings.mode,
        "session": session,
        "files": [asdict(blob) for blob in await keep_files(app.store, files)],
        "values": dict(values or {}),
        "tags": dict(tags or {}),
        "task_trust": settings.safety.task_trust,
        "traceparent": trace.traceparent,
    }
    fact = Submitted(time.time(), run, settings.shape(), task, data)
    await app.store.submit(
        fact,
        pipeline=settings.name,
        pipeline_hash=app.source.hash,
        pipeline_body={
            "settings": to_json(settings),
            "folder": str(app.source.folder),
            "file": None if app.source.file is None else str(app.source.file),
        },
        mode=settings.mode,
        budget=settings.budget.budget(),
    )
    await app.runtime.wake(run, Cause(trace.traceparent))
    return run


class Run:
    """A run that is being followed.

    Use it as an async context manager (leaving cancels the run unless it has ended or was
    detached) and as an async iterator over what happens: ledger events and agent events.
    """

    def __init__(self, app: App, run: str) -> None:
        self.id = run
        self._app = app
        self._detached = False
        self._listeners: dict[asyncio.Event, bool] = {}
        self._agent_events: deque[AgentEvent] = deque()
        self._seq = 0
        self._yielded = asyncio.Condition()
        self._stop = app.runtime.watch(run, self._told)

    def _told(self, event: AgentEvent | Event) -> None:
        if isinstance(event, AgentEvent):
            self._agent_events.append(event)
        for news, wants_all in self._listeners.items():
            if wants_all or isinstance(event, Event):
                news.set()

    @contextmanager
    def _listening(self, *, to_all: bool) -> Iterator[asyncio.Event]:
        # One for each who waits: clearing a shared one would take news from the others.
        news = asyncio.Event()
        self._listeners[news] = to_all
        try:
            yield news
        finally:
            del self._listeners[news]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *rest: object) -> None:
        try:
            if not self._detached and not (await self._row()).ended:
                await self.cancel("left by its caller")
                await self.result()
        finally:
            self._stop()

    def detach(self) -> str:
        """Let the run go on after leaving, as long as processes work on it; returns its id."""
        self._detached = True
        return self.id

    async def _row(self) -> RunRow:
        return await self._app.store.run(self.id)

    async def __aiter__(self) -> AsyncIterator[Event | AgentEvent]:
        """Yield events until the run ends; those of the ledger come complete and in order."""
        with self._listening(to_all=True) as news:
            while True:
                news.clear()
                ended = (await self._row()).ended is not None
                events = await self._app.store.ledger(self.id, after=self._seq)
                while self._agent_events:
                    yield self._agent_events.popleft()
                for event in events:
                    self._seq = event.seq
                    yield event
                async with self._yielded:
                    self._yielded.notify_all()
                if ended:
                    return
                if not events:
                    await _wait(news)

    async def caught_up(self) -> None:
        """Wait until an iteration that is under way has yielded all that the ledger holds."""
        last = (await self._row()).seq
        async with self._yielded:
            while any(self._listeners.values()) and (self._seq < last or self._agent_events):
                for news in self._listeners:
                    news.set()
                with suppress(TimeoutError):  # whoever iterated may have failed
                    async with asyncio.timeout(POLL_S):
                        await self._yielded.wait()

    async def result(self, *, wait_for_people: bool = True) -> RunResult:
        """Wait for the end.

        Args:
            wait_for_people: False returns with status ``waiting`` once only people can go on.
        """
        store = self._app.store
        with self._listening(to_all=False) as news:
            while True:
                news.clear()
                row = await self._row()
                if row.ended is not None:
                    await self._app.runtime.export_root(self.id)
                    break
                if not wait_for_people and await self._waits_for_people():
                    break
                await _wait(news)
        return await read_result(store, row, await store.ledger(self.id))

    async def _waits_for_people(self) -> bool:
        view = await self._app.runtime.advancer.refresh(self.id)
        if not waits_for_people(view.state):
            return False
        # An answer that lies in the inbox moves the run on, and a timer that is due.
        batch = await self._app.store.take(self.id)
        now = await self._app.runtime.advancer.refresh(self.id)
        return not (batch.inbox or batch.timers) and waits_for_people(now.state)

    async def provide(
        self,
        input_id: str,
        *,
        approve: bool | None = None,
        value: Any = None,
        reason: str = "",
        by: str = "",
    ) -> None:
        """Answer an input request of this run.

        Args:
            input_id: Its id, or an unambiguous beginning of it.
            approve: True, False, or None for a question.
            value: Edited arguments, an edited plan, or the answer to a question.
            reason: Given with a denial; the model sees it.
            by: Who answers, for the record.

        Raises:
            InputUnknown: The run has no open request of this id.
            InputClosed: It was answered already, or is no longer asked.
            UsageError: The value is not JSON.
        """
        try:
            canonical_json(value)
        except ValueError as exc:
            raise UsageError(f"the value of an answer must be JSON: {exc}") from exc
        answer = Answer(approved=approve, value=value, reason=reason)
        await provide(self._app.store, self.id, input_id, answer, by=by)
        await self._app.runtime.wake(self.id)

    async def cancel(self, reason: str = "asked by the caller") -> None:
        """Ask to cancel the run; ``result`` tells when it is done."""
        await self._app.store.put(self.id, CancelAsked(time.time(), reason), key="cancel")
        await self._app.runtime.wake(self.id)


async def _wait(news: asyncio.Event) -> None:
    with suppress(TimeoutError):  # another process may have written
        async with asyncio.timeout(POLL_S):
            await news.wait()


async def provide(
    store: RunStore, run: str, input_id: str, answer: Answer, *, by: str = ""
) -> None:
    """Lay an answer into a run's inbox; see ``Run.provide``."""
    events = await store.ledger(run)
    asked = [e.data["input"] for e in events if e.type == "input.requested"]
    found = [known for known in asked if input_id and known.startswith(input_id)]
    if len(found) != 1:
        still = ", ".join(data["input"] for data in open_inputs(events)) or "none"
        raise InputUnknown(f"run {run!r} has no input request {input_id!r}; open ones: {still}")
    still_open = found[0] in [data["input"] for data in open_inputs(events)]
    fact = Answered(time.time(), found[0], answer, by)
    if not still_open or not await store.put(run, fact, key=f"input/{found[0]}"):
        raise InputClosed(f"input request {found[0]!r} was answered, or is no longer asked")
