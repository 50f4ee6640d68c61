"""The journal an agent writes: what it declares it needs, not who implements it.

Every model reply and every tool result is on disk before the next call, so that a new attempt
resumes inside the loop. ``record`` is the one gate: it carries the result of the last call and
the intent of the next in one transaction, reserves budget, and tells a fenced attempt to stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, Protocol

from agents.usage import Usage

Verdict = Literal["ok", "fenced", "cancelled", "over_budget"]
EffectState = Literal["intent", "done", "unknown"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a journal.

    Attributes:
        kind: ``model_reply`` (data: turn, message, usage, model, finish_reason), ``tool_intent``
            and ``tool_result`` (data: turn, position, …), ``event`` (an agent event),
            ``spawn``, ``input`` or ``notes`` of the loop.
        data: JSON object.
    """

    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reserve:
    """What the next call may cost at most; settled later with what it did cost."""

    llm_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class EffectMark:
    """A step of an effect: ``intent`` before the call, ``done`` or ``unknown`` after.

    Attributes:
        key: Hash of run, subtask, tool, arguments and the k-th equal call; no attempt number.
        state: The new state.
        result: The ``ToolResult`` in JSON, with ``done``.
    """

    key: str
    state: EffectState
    result: dict[str, Any] | None = None


class Journal(Protocol):
    """Durable memory of one attempt, and its gate."""

    async def entries(self) -> Sequence[Entry]:
        """Return what earlier attempts of this generation wrote, in order."""

    async def effects(self) -> dict[str, EffectMark]:
        """Return the effects of this subtask, all generations, by key."""

    async def record(
        self,
        entries: Sequence[Entry],
        *,
        settle: Usage | None = None,
        reserve: Reserve | None = None,
        effects: Sequence[EffectMark] = (),
    ) -> Verdict:
        """Append entries, settle the last reservation, reserve the next, in one transaction.

        Args:
            entries: Lines to append.
            settle: What the call reserved last did cost; unknown parts stay spent.
            reserve: What the next call may cost.
            effects: Effect steps that belong to these entries.

        Returns:
            ``ok``, or why the attempt must stop. Nothing is written unless ``ok`` or
            ``over_budget`` (then the entries are written and the reservation is not).
        """

    async def save_blob(self, data: bytes, media_type: str) -> str:
        """Keep bytes in the run store and return their SHA-256."""

    async def load_blob(self, sha256: str) -> bytes:
        """Return kept bytes.

        Raises:
            KeyError: The store has no such blob.
        """


class VolatileJournal:
    """A journal that lasts as long as the process: for tests and for agents used alone."""

    def __init__(self) -> None:
        self.lines: list[Entry] = []
        self.marks: dict[str, EffectMark] = {}
        self.blobs: dict[str, bytes] = {}
        self.verdict: Verdict = "ok"

    async def entries(self) -> Sequence[Entry]:
        """Return what was recorded."""
        return tuple(self.lines)

    async def effects(self) -> dict[str, EffectMark]:
        """Return the effects marked so far."""
        return dict(self.marks)

    async def record(
        self,
        entries: Sequence[Entry],
        *,
        settle: Usage | None = None,
        reserve: Reserve | None = None,
        effects: Sequence[EffectMark] = (),
    ) -> Verdict:
        """Append, and answer with ``self.verdict``."""
        if self.verdict in ("ok", "over_budget"):
            self.lines.extend(entries)
            self.marks.update((m.key, m) for m in effects)
        return self.verdict

    async def save_blob(self, data: bytes, media_type: str) -> str:
        """Keep bytes in memory."""
        from_bytes = sha256(data).hexdigest()
        self.blobs[from_bytes] = data
        return from_bytes

    async def load_blob(self, sha256: str) -> bytes:
        """Return bytes kept in memory."""
        return self.blobs[sha256]
