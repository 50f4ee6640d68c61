"""A worker: hosts agents, claims attempts, does them, and writes their outcomes."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from agents.assignment import Assignment
from agents.base import Agent
from agents.errors import AgentError, Fenced, Halt, OverBudget
from agents.events import AgentEvent, OnEvent
from agents.journal import Verdict
from agents.outcome import AttemptCancelled, Completed, Failed, Outcome
from orchestrator.attempt_span import AttemptSpan
from orchestrator.cause import Cause
from orchestrator.codec import canonical_json, outcome_to_json
from orchestrator.facts import Ended
from orchestrator.run_spans import Spans
from orchestrator.store.base import AttemptId, RunStore, Scope
from orchestrator.store.errors import StoreError
from orchestrator.store_journal import StoreJournal

log = logging.getLogger("cadenza.worker")
HEARTBEATS_PER_LEASE = 3.0
_REMEMBERED = 10_000


class Worker:
    """Hosts agents in this process.

    Args:
        store: Where attempts are claimed.
        agents: Agents by name.
        scope: The pipeline and mode whose agents these are, and what it says that it serves.
        slots: Attempts of one agent that may run at once.
        lease_s: Seconds a claim lasts without a heartbeat.
        grace_s: Seconds without a heartbeat after which nobody counts on the agents.
        spans: Traces each attempt.
        on_event: Told every agent event.
        on_outcome: Called with the run, and the attempt as the cause of what follows, once an
            outcome is written.
    """

    def __init__(
        self,
        store: RunStore,
        agents: Mapping[str, Agent],
        *,
        scope: Scope,
        slots: int,
        lease_s: float,
        grace_s: float,
        spans: Spans,
        on_event: OnEvent,
        on_outcome: Callable[[str, Cause], Awaitable[None]],
    ) -> None:
        # New at each process start: a revived process must not pass for its former self.
        self.name = uuid.uuid4().hex[:12]
        self._store = store
        self._agents = dict(agents)
        self._scope = scope
        self._slots = {name: asyncio.Semaphore(slots) for name in agents}
        self._lease_s = lease_s
        self._beat_s = min(lease_s, grace_s) / HEARTBEATS_PER_LEASE
        self._spans = spans
        self._on_event = on_event
        self._on_outcome = on_outcome
        self._running: dict[AttemptId, asyncio.Task[None]] = {}
        self._taken: dict[AttemptId, None] = {}
        self._finishing: set[asyncio.Task[None]] = set()
        self._heart: asyncio.Task[None] | None = None
        self._draining = False

    @property
    def running(self) -> int:
        """How many attempts run."""
        return len(self._running)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents hosted here."""
        return tuple(self._agents)

    async def open(self) -> None:
        """Say that we live, and keep saying it."""
        await self._beat()
        self._heart = asyncio.create_task(self._keep_beating(), name=f"heartbeat {self.name}")

    async def stop(self, *, drain_s: float = 0.0) -> None:
        """Take nothing more; wait for attempts up to ``drain_s`` seconds, then give them back."""
        self._draining = True
        if self._running and drain_s:
            await asyncio.wait(self._running.values(), timeout=drain_s)
        while busy := {*self._running.values(), *self._finishing}:
            for task in self._running.values():
                task.cancel()
            await asyncio.wait(busy)

    async def close(self) -> None:
        """Stop, give back what was claimed meanwhile, and say that we are gone."""
        await self.stop()
        if self._heart is None:
            return
        self._heart.cancel()
        await asyncio.wait({self._heart})
        self._heart = None
        try:
            await self._store.leave(self.name)
        except StoreError:
            log.warning("worker %s could not say that it leaves", self.name, exc_info=True)

    def has_slot(self, agent: str) -> bool:
        """Return whether an attempt of this agent would start at once."""
        slots = self._slots.get(agent)
        return slots is not None and not slots.locked() and not self._draining

    def is_full(self, agent: str) -> bool:
        """Return whether the agent is hosted here and has no free slot."""
        return agent in self._slots and not self.has_slot(agent)

    async def take(
        self,
        work: Assignment,
        cause: Cause,
        *,
        acknowledge: Callable[[], Awaitable[None]] | None = None,
    ) -> bool:
        """Wait for a slot, claim an attempt, acknowledge its message, and start it.

        Returns:
            Whether the attempt is ours; False when it was claimed or closed before.
        """
        slots = self._slots[work.agent]
        await slots.acquire()
        attempt = AttemptId(work.run, work.subtask, work.attempt, self.name, work.generation)
        try:
            ours = not self._draining and await self._claim(attempt)
        except BaseException:
            slots.release()
            raise
        if ours:
            name = f"{work.agent} {work.subtask} #{work.attempt}"
            task = asyncio.create_task(self._do(attempt, work, cause), name=name)
            self._running[attempt] = task
            task.add_done_callback(lambda _: self._done(attempt, slots))
            await asyncio.sleep(0)  # a task cancelled before its first step could not report
        else:
            slots.release()
        if acknowledge is not None and (ours or not self._draining):
            await acknowledge()
        return ours

    async def _claim(self, attempt: AttemptId) -> bool:
        # The store grants a worker's own claim again, so a duplicate is refused here.
        if attempt in self._taken:
            return False
        self._taken[attempt] = None
        if len(self._taken) > _REMEMBERED:
            del self._taken[next(iter(self._taken))]
        try:
            return await self._store.claim(attempt, lease_s=self._lease_s)
        except BaseException:
            self._taken.pop(attempt, None)
            raise

    def _done(self, attempt: AttemptId, slots: asyncio.Semaphore) -> None:
        self._running.pop(attempt, None)
        slots.release()

    def cancel(self, run: str, subtask: str, attempt: int) -> None:
        """Stop an attempt that runs here, if it does."""
        for key, task in list(self._running.items()):
            if (key.run, key.subtask, key.attempt) == (run, subtask, attempt):
                task.cancel()

    async def _do(self, attempt: AttemptId, work: Assignment, cause: Cause) -> None:
        span = self._spans.start(work, cause)
        try:
            outcome = await self._attempt(attempt, work, span)
        except asyncio.CancelledError:
            outcome = AttemptCancelled()
        except Fenced:
            log.info("%s of %s is fenced", work.subtask, work.run)
            return
        except Halt:
            outcome = AttemptCancelled()
        except StoreError:
            # Nothing can be written: the lease runs out and another attempt goes on from there.
            log.exception("%s of %s lost the run store", work.subtask, work.run)
            return
        # A task of its own: whoever cancels the attempt must not cut off its report.
        finishing = asyncio.create_task(
            self._finish(attempt, outcome, span, cause.hop + 1), name=f"report {work.subtask}"
        )
        self._finishing.add(finishing)
        finishing.add_done_callback(self._finishing.discard)
        await asyncio.shield(finishing)

    async def _attempt(self, attempt: AttemptId, work: Assignment, span: AttemptSpan) -> Outcome:
        journal = StoreJournal(self._store, attempt, lease_s=self._lease_s)
        agent = self._agents[work.agent]

        def tell(event: AgentEvent) -> None:
            span.told(event)
            self._on_event(event)

        try:
            with span.current():
                return await agent.attempt(work, journal, tell)
        except OverBudget as exc:
            return Failed(exc.error_class, str(exc))
        except (Halt, StoreError):
            raise
        except AgentError as exc:
            return Failed(exc.error_class, str(exc), retryable=exc.retryable)
        except Exception as exc:
            # A bug of an agent or a user's function: it costs its attempt, not the worker.
            log.exception("agent %r raised in %s", work.agent, work.subtask)
            return Failed("agent_raised", f"{type(exc).__name__}: {exc}")

    async def _finish(
        self, attempt: AttemptId, outcome: Outcome, span: AttemptSpan, hop: int
    ) -> None:
        blobs: dict[str, bytes] = {}
        output_hash = None
        try:
            if isinstance(outcome, Completed):
                raw = canonical_json(outcome.output)
                output_hash = sha256(raw).hexdigest()
                blobs[output_hash] = raw
                outcome = replace(outcome, output=None)
            canonical_json(outcome_to_json(outcome))
        except ValueError as exc:
            # Whoever reads the ledger must be able to; findings and partial results too.
            blobs, output_hash = {}, None
            message = f"the output or a finding is not JSON: {exc}"
            outcome = Failed("invalid_output", message, usage=outcome.usage)
        fact = Ended(time.time(), attempt.subtask, attempt.attempt, outcome, output_hash, self.name)
        await self._spans.finish(span, outcome)
        try:
            verdict = await self._store.finish(attempt, fact, blobs=blobs)
        except StoreError:
            log.exception("the outcome of %s of %s is lost", attempt.subtask, attempt.run)
            return
        if verdict == "ok":
            await self._on_outcome(attempt.run, Cause(span.traceparent, hop, span.span.service))

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._beat_s)
            try:
                await self._beat()
            except StoreError:
                log.warning("worker %s could not reach the run store", self.name, exc_info=True)

    async def _beat(self) -> None:
        attempts: Sequence[AttemptId] = tuple(self._running)
        verdicts: list[Verdict] = await self._store.beat(
            self.name, self._scope, attempts=attempts, lease_s=self._lease_s
        )
        for attempt, verdict in zip(attempts, verdicts, strict=True):
            task = self._running.get(attempt)
            if verdict != "ok" and task is not None:
                task.cancel()
