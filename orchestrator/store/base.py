"""The run store: where ledgers live; one abstract class and what it promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from agents.journal import EffectMark, Entry, Reserve, Verdict
from agents.usage import Budget, Usage
from orchestrator.commit import Batch, Commit
from orchestrator.facts import Ended, Fact, Submitted
from orchestrator.state import Event


@dataclass(frozen=True, slots=True)
class AttemptId:
    """Which attempt, and who claims to do it; the key of the fence."""

    run: str
    subtask: str
    attempt: int
    worker: str
    generation: int = 0


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run, seen from outside.

    Attributes:
        run: Run id.
        pipeline: Pipeline name.
        pipeline_hash: Hash of the pinned pipeline.
        mode: orchestration or choreography.
        status: running, or the final event's kind.
        task: The task's text.
        created: Store time.
        ended: Store time, or None.
        seq: Last seq of its ledger.
        session: Session id, or None.
        trace: ``traceparent`` of the root span, or empty.
        data: What was pinned at submission.
    """

    run: str
    pipeline: str
    pipeline_hash: str
    mode: str
    status: str
    task: str
    created: float
    ended: float | None
    seq: int
    session: str | None
    trace: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resend:
    """An unclaimed attempt whose message is to be sent again."""

    run: str
    subtask: str
    attempt: int
    agent: str
    state: str


@dataclass(frozen=True, slots=True)
class Due:
    """What a sweep found.

    Attributes:
        advance: Runs whose inbox, timers, leases or grace ask for a decision.
        publish: Runs with committed events that were not published.
        resend: Unclaimed attempts; their next resend is set at twice the interval.
        roots: Ended runs whose root span is not exported yet.
    """

    advance: tuple[str, ...] = ()
    publish: tuple[str, ...] = ()
    resend: tuple[Resend, ...] = ()
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Which runs a process looks after: one pipeline's, in one mode, for the agents it hosts."""

    pipeline_hash: str
    mode: str
    agents: tuple[str, ...] = ()

    @property
    def pin(self) -> str:
        """Return what tells messages of one pipeline and mode from those of another."""
        return f"{self.mode}.{self.pipeline_hash[:12]}"


class RunStore(ABC):
    """Ledgers, attempts, journals and blobs, for any number of processes.

    Promises:
        * ``commit`` appends to one run's ledger with compare-and-set and checks its guards in the
          same transaction; nothing of a refused commit remains.
        * ``record`` and ``finish`` check the fence, settle, reserve and append in one transaction.
        * What a call has returned from is on disk, unless the store is in memory.
    Every method raises ``StoreError`` or its kin, and nothing else of its own.
    """

    uuid: str

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @abstractmethod
    async def open(self) -> None:
        """Open, and create what is missing.

        Raises:
            StoreUnusable: The message says which path, and what to do.
            StoreNewer: Written by a newer version.
        """

    @abstractmethod
    async def close(self) -> None:
        """Finish what was accepted and close; may be called twice."""

    # --- runs and their ledgers

    @abstractmethod
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
        """Create a run with its first inbox row, and keep the pinned pipeline.

        Raises:
            StoreError: There is a run of this id.
        """

    @abstractmethod
    async def put(self, run: str, fact: Fact, *, key: str | None = None) -> bool:
        """Lay a fact into a run's inbox.

        Args:
            run: Run id.
            fact: A cancel or an answer.
            key: At most one fact of a key is ever taken.

        Returns:
            False when a fact of this key was there before.

        Raises:
            RunUnknown: No such run.
        """

    @abstractmethod
    async def take(self, run: str) -> Batch:
        """Read what a run has to decide; nothing is changed."""

    @abstractmethod
    async def commit(self, commit: Commit) -> bool:
        """Write one decision, or nothing: False when its seq or a guard no longer holds."""

    @abstractmethod
    async def ledger(self, run: str, *, after: int = 0) -> list[Event]:
        """Return a run's events with ``seq`` above ``after``, in order."""

    @abstractmethod
    async def published(self, run: str) -> int:
        """Return the contiguous watermark: events up to it were published.

        Raises:
            RunUnknown: No such run.
        """

    @abstractmethod
    async def mark_published(self, run: str, *, start: int, end: int) -> None:
        """Move the watermark from ``start`` to ``end``; does nothing when it is elsewhere."""

    @abstractmethod
    async def run(self, run: str) -> RunRow:
        """Return one run.

        Raises:
            RunUnknown: No such run, or several begin like this; the message lists near ones.
        """

    @abstractmethod
    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        """Return runs, the newest first."""

    @abstractmethod
    async def pipeline(self, pipeline_hash: str) -> dict[str, Any]:
        """Return a pinned pipeline.

        Raises:
            KeyError: No run pinned it.
        """

    @abstractmethod
    async def usage(self, run: str) -> Usage:
        """Return what a run has spent, all attempts, the lost ones too.

        Raises:
            RunUnknown: No such run.
        """

    # --- attempts

    @abstractmethod
    async def claim(self, attempt: AttemptId, *, lease_s: float) -> bool:
        """Claim a sent attempt; the lease starts now. True again for one's own claim.

        False when it is another's, closed, or to be cancelled.
        """

    @abstractmethod
    async def beat(
        self, worker: str, scope: Scope, *, attempts: Sequence[AttemptId], lease_s: float
    ) -> list[Verdict]:
        """Say that a worker serves what is in scope, and prolong its leases.

        Returns:
            One verdict an attempt.
        """

    @abstractmethod
    async def present(self, scope: Scope, *, within_s: float) -> frozenset[str]:
        """Return which agents of the scope's pipeline and mode live workers serve.

        A worker lives when it was heard of within ``within_s`` seconds and has not left.
        """

    @abstractmethod
    async def leave(self, worker: str) -> None:
        """Say that a worker ends; its agents are no longer served by it."""

    @abstractmethod
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
        """Pass the gate; see ``agents.journal.Journal.record``.

        The same call again, after its answer was lost, writes and counts nothing twice (a call
        without entries cannot be told from a new one).

        Args:
            attempt: Who asks.
            n: Position of the first entry in the subtask's journal generation, from 0.
            entries: Lines to append.
            lease_s: The lease is prolonged to this many seconds from now.
            settle: What the call reserved last did cost; counted even when fenced.
            reserve: What the next call may cost.
            effects: Effect steps.
        """

    @abstractmethod
    async def finish(
        self, attempt: AttemptId, fact: Ended, *, blobs: Mapping[str, bytes]
    ) -> Verdict:
        """Write an attempt's outcome as an inbox row, once, with the blobs that it names.

        Returns:
            ``fenced``, or ``ok``, also for an attempt that is to be cancelled.
        """

    @abstractmethod
    async def journal(
        self, run: str, subtask: str, *, generation: int | None = None
    ) -> list[Entry]:
        """Return a subtask's journal in order; all generations when None."""

    @abstractmethod
    async def effects(self, run: str, subtask: str) -> dict[str, EffectMark]:
        """Return the effects of a subtask by key."""

    # --- sweeping and blobs

    @abstractmethod
    async def due(self, scope: Scope) -> Due:
        """Find what is left to do for the runs in scope."""

    @abstractmethod
    async def root_exported(self, run: str) -> bool:
        """Mark a root span as exported; False when another process did."""

    @abstractmethod
    async def put_blob(self, data: bytes, media_type: str) -> str:
        """Keep bytes and return their SHA-256."""

    @abstractmethod
    async def blob(self, sha256: str) -> bytes:
        """Return kept bytes.

        Raises:
            KeyError: The store has no such blob.
        """

    @abstractmethod
    async def version(self) -> int:
        """Return a number that changes whenever another process has written."""
