"""The journal of one attempt, kept in the run store."""

from __future__ import annotations

from collections.abc import Sequence

from agents.journal import EffectMark, Entry, Reserve, Verdict
from agents.usage import Usage
from orchestrator.store.base import AttemptId, RunStore


class StoreJournal:
    """Implements ``agents.journal.Journal`` over a run store.

    Args:
        store: Where the journal lies.
        attempt: Whose journal it is.
        lease_s: Seconds that each record prolongs the lease to.
    """

    def __init__(self, store: RunStore, attempt: AttemptId, *, lease_s: float) -> None:
        self._store = store
        self._attempt = attempt
        self._lease_s = lease_s
        self._next = 0

    async def entries(self) -> Sequence[Entry]:
        """Return what earlier attempts of this generation wrote."""
        a = self._attempt
        found = await self._store.journal(a.run, a.subtask, generation=a.generation)
        self._next = len(found)
        return found

    async def effects(self) -> dict[str, EffectMark]:
        """Return the subtask's effects."""
        return await self._store.effects(self._attempt.run, self._attempt.subtask)

    async def record(
        self,
        entries: Sequence[Entry],
        *,
        settle: Usage | None = None,
        reserve: Reserve | None = None,
        effects: Sequence[EffectMark] = (),
    ) -> Verdict:
        """Pass the gate; the position goes on only with what was written."""
        verdict = await self._store.record(
            self._attempt,
            self._next,
            entries,
            lease_s=self._lease_s,
            settle=settle,
            reserve=reserve,
            effects=effects,
        )
        if verdict in ("ok", "over_budget"):
            self._next += len(entries)
        return verdict

    async def save_blob(self, data: bytes, media_type: str) -> str:
        """Keep bytes in the run store."""
        return await self._store.put_blob(data, media_type)

    async def load_blob(self, sha256: str) -> bytes:
        """Return kept bytes."""
        return await self._store.blob(sha256)
