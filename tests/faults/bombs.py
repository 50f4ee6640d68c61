"""A store and a bus whose process kills itself at a named point, before or after a call."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.journal import EffectMark, Entry, Reserve, Verdict
from agents.usage import Usage
from bus.envelope import Envelope
from bus.faulty import FaultyBus
from bus.memory import MemoryBus
from orchestrator.commit import Commit
from orchestrator.facts import Ended
from orchestrator.store.base import AttemptId
from orchestrator.store.sqlite import SqliteRunStore

CALLS = ("commit", "publish", "mark", "acknowledge", "claim", "gate", "outcome", "effect")
POINTS = tuple(f"{call} {side}" for call in CALLS for side in ("before", "after"))


class Bomb:
    """Kills its process at the n-th passage of a point, and leaves a marker first.

    Args:
        folder: Where the marker is left.
        point: One of ``POINTS``, or empty to count passages only.
        n: Which passage, from 1.
    """

    def __init__(self, folder: Path, point: str, n: int) -> None:
        self._folder = folder
        self._point = point
        self._n = n
        self.passed: Counter[str] = Counter()

    def at(self, point: str) -> None:
        """Pass a point."""
        self.passed[point] += 1
        if point == self._point and self.passed[point] == self._n:
            fd = os.open(self._folder / "marker", os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(fd, json.dumps([point, self._n]).encode())
            os.fsync(fd)
            os.kill(os.getpid(), signal.SIGKILL)


class BombStore(SqliteRunStore):
    """A run store with a bomb in it."""

    def __init__(self, path: str, bomb: Bomb) -> None:
        super().__init__(path)
        self._bomb = bomb

    async def commit(self, commit: Commit) -> bool:
        self._bomb.at("commit before")
        done = await super().commit(commit)
        self._bomb.at("commit after")
        return done

    async def mark_published(self, run: str, *, start: int, end: int) -> None:
        self._bomb.at("mark before")
        await super().mark_published(run, start=start, end=end)
        self._bomb.at("mark after")

    async def claim(self, attempt: AttemptId, *, lease_s: float) -> bool:
        self._bomb.at("claim before")
        done = await super().claim(attempt, lease_s=lease_s)
        self._bomb.at("claim after")
        return done

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
        options: dict[str, Any] = {"settle": settle, "reserve": reserve, "effects": effects}
        self._bomb.at("gate before")
        verdict = await super().record(attempt, n, entries, lease_s=lease_s, **options)
        self._bomb.at("gate after")
        return verdict

    async def finish(
        self, attempt: AttemptId, fact: Ended, *, blobs: Mapping[str, bytes]
    ) -> Verdict:
        self._bomb.at("outcome before")
        verdict = await super().finish(attempt, fact, blobs=blobs)
        self._bomb.at("outcome after")
        return verdict


def bomb_bus(bomb: Bomb) -> FaultyBus:
    """Return a memory bus with a bomb in it."""
    names = {
        "before publish": "publish before",
        "after publish": "publish after",
        "before acknowledge": "acknowledge before",
        "after acknowledge": "acknowledge after",
    }

    def crash(point: str, topic: str, envelope: Envelope) -> None:
        if point in names:
            bomb.at(names[point])

    return FaultyBus(MemoryBus(), 0, crash=crash)
