"""What tests of run stores share: a run with an attempt, in a few words."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from agents.journal import Entry
from agents.outcome import Completed
from agents.usage import Budget
from orchestrator.commit import Commit, OpenAttempt, Timer
from orchestrator.facts import Ended, Submitted
from orchestrator.shape import Limits, RunShape
from orchestrator.state import Event
from orchestrator.store.base import AttemptId, RunStore, Scope

LEASE_S = 30.0
LAPSED_S = -1.0  # a lease that is past when it starts

Age = Callable[[float], Awaitable[None]]
"""Makes all that a store has written so many seconds older."""


@dataclass(frozen=True)
class RunGear:
    """A run in a store, and what may happen to it."""

    store: RunStore
    run: str
    pipeline_hash: str
    mode: str = "orchestration"

    def seen_by(self, store: RunStore) -> RunGear:
        """Return the same run through another store object."""
        return RunGear(store, self.run, self.pipeline_hash, self.mode)

    def scope(self, *agents: str) -> Scope:
        return Scope(self.pipeline_hash, self.mode, agents)

    async def seq(self) -> int:
        return (await self.store.run(self.run)).seq

    async def commit(self, *events: Event, **what: Any) -> bool:
        """Commit onto the ledger's end."""
        seq = await self.seq()
        commit = Commit(self.run, what.pop("expected_seq", seq), what.pop("time", time.time()))
        commit.events = list(events)
        for name, value in what.items():
            setattr(commit, name, value)
        return await self.store.commit(commit)

    async def take_all(self) -> None:
        """Empty the inbox."""
        batch = await self.store.take(self.run)
        assert await self.commit(said("inbox.taken"), inbox=[row for row, _ in batch.inbox])

    async def ready(self, subtask: str = "s", *, agent: str = "a", since: float = 0.0) -> None:
        """Announce attempt 1 of a subtask, so many seconds ago."""
        news = said("subtask.ready", subtask=subtask)
        row = (subtask, 1, agent)
        assert await self.commit(news, announced=[row], time=time.time() - since)

    async def send(self, subtask: str = "s", *, agent: str = "a", since: float = 0.0) -> None:
        """Announce and dispatch attempt 1 of a subtask, so many seconds ago."""
        news = said("subtask.dispatched", subtask=subtask)
        rows: dict[str, Any] = {"announced": [(subtask, 1, agent)], "sent": [(subtask, 1)]}
        assert await self.commit(news, **rows, time=time.time() - since)

    async def claim(
        self, subtask: str = "s", *, worker: str = "w", lease_s: float = LEASE_S
    ) -> AttemptId:
        """Dispatch a subtask and claim it."""
        await self.send(subtask)
        attempt = AttemptId(self.run, subtask, 1, worker)
        assert await self.store.claim(attempt, lease_s=lease_s)
        return attempt

    async def close(self, attempt: AttemptId) -> None:
        where = (attempt.subtask, attempt.attempt)
        assert await self.commit(said("subtask.failed"), closed=[where])

    async def cancel(self, attempt: AttemptId) -> None:
        where = (attempt.subtask, attempt.attempt)
        assert await self.commit(said("subtask.cancel_requested"), cancelled=[where])

    async def open_attempts(self) -> Sequence[OpenAttempt]:
        return (await self.store.take(self.run)).attempts

    async def snapshot(self) -> tuple[Any, ...]:
        """Return all that a refused commit must leave as it was."""
        batch = await self.store.take(self.run)
        row = await self.store.run(self.run)
        ledger = await self.store.ledger(self.run)
        rows = [number for number, _ in batch.inbox]
        return row, ledger, rows, batch.timers, batch.attempts


async def new_run(
    store: RunStore,
    *,
    run: str | None = None,
    mode: str = "orchestration",
    grace_s: float = 60.0,
    budget: Budget | None = None,
    pipeline_hash: str | None = None,
    **data: Any,
) -> RunGear:
    """Submit a run of a pipeline that no other test knows."""
    run = run or uuid4().hex
    pipeline_hash = pipeline_hash or f"hash-{run}"
    shape = RunShape({"a": ()}, limits=Limits(grace_s=grace_s))
    await store.submit(
        Submitted(time.time(), run, shape, "Count the stock.", data),
        pipeline="stock",
        pipeline_hash=pipeline_hash,
        pipeline_body={"agents": {"a": {}}},
        mode=mode,
        budget=budget or Budget(),
    )
    return RunGear(store, run, pipeline_hash, mode)


def said(kind: str, **data: Any) -> Event:
    """Return an event that is not in a ledger yet."""
    return Event(kind, data)


def entry(text: str) -> Entry:
    return Entry("notes", {"text": text})


def past(kind: Any = "retry", key: str = "s", attempt: int = 1) -> Timer:
    """Return a timer that is due."""
    return Timer(kind, key, attempt, 1.0)


def ended(attempt: AttemptId, output: Any = None) -> Ended:
    """Return an attempt's outcome."""
    outcome = Completed(output, warnings=("ok",))
    return Ended(time.time(), attempt.subtask, attempt.attempt, outcome, "hash", attempt.worker)
