"""``advance(run)``: the only writer of ledgers, and the publishing that follows it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from bus.base import Bus
from bus.envelope import MAX_PAYLOAD_BYTES, Envelope
from bus.topics import Topics
from orchestrator.brief import Brief
from orchestrator.cause import Cause
from orchestrator.codec import canonical_json
from orchestrator.commit import Batch, Timer, plan_commit
from orchestrator.facts import Fact
from orchestrator.rules import RULES_VERSION
from orchestrator.state import Event, RunState, evolve
from orchestrator.store.base import RunStore

log = logging.getLogger("cadenza.advance")
_CACHED_RUNS = 4_096
UNKNOWN = Cause()


@dataclass(slots=True)
class RunView:
    """A run as this process knows it: its state and its words, folded up to one seq.

    Attributes:
        newer: The ledger follows rules that are newer than ours: others advance it.
    """

    state: RunState
    brief: Brief = field(default_factory=Brief)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    publishing: asyncio.Lock = field(default_factory=asyncio.Lock)
    newer: bool = False

    def fold(self, events: Sequence[Event]) -> None:
        """Fold further events."""
        for event in events:
            if event.type == "run.submitted" and event.data["rules_version"] > RULES_VERSION:
                log.warning("run %s follows newer rules; this process leaves it", self.state.run)
                self.newer = True
            if self.newer:
                self.state.seq = event.seq
                continue
            self.brief.fold(event)
            evolve(self.state, event)


class Advancer:
    """Advances runs: take the inbox, decide, append, publish.

    Args:
        store: Where ledgers live.
        bus: Where news goes.
        topics: Topic names of the pipeline.
        source: Who we are, for envelopes.
        dispatch: Whether to dispatch all that is ready (the orchestrator does).
        on_commit: Told the run, its new events and new timers after each commit.
        on_published: Awaited after events were published, and before they count as such: told
            the run, the events, their cause, and when publishing began.
    """

    def __init__(
        self,
        store: RunStore,
        bus: Bus,
        topics: Topics,
        *,
        source: str,
        dispatch: bool,
        on_commit: Callable[[RunView, Sequence[Event], Sequence[Timer]], None],
        on_published: Callable[[RunView, Sequence[Event], Cause, float], Awaitable[None]],
    ) -> None:
        self._store = store
        self._bus = bus
        self._topics = topics
        self.source = source
        self._dispatch = dispatch
        self._on_commit = on_commit
        self._on_published = on_published
        self._views: OrderedDict[str, RunView] = OrderedDict()
        self._since = time.time()

    async def view(self, run: str) -> RunView:
        """Return a run as last folded here, reading its ledger when it is new to us."""
        view = self._views.get(run)
        if view is None:
            view = self._views[run] = RunView(RunState(run=run))
            while len(self._views) > _CACHED_RUNS:
                self._views.popitem(last=False)
            async with view.lock:
                await self._catch_up(view)
        self._views.move_to_end(run)
        return view

    async def refresh(self, run: str, *, seq: int = 0) -> RunView:
        """Return a run folded at least up to ``seq``, or up to the ledger's end when 0."""
        view = await self.view(run)
        if seq == 0 or view.state.seq < seq:
            async with view.lock:
                await self._catch_up(view)
        return view

    async def _catch_up(self, view: RunView) -> bool:
        events = await self._store.ledger(view.state.run, after=view.state.seq)
        view.fold(events)
        return bool(events)

    async def advance(
        self, run: str, *, proposals: Sequence[Fact] = (), cause: Cause = UNKNOWN
    ) -> list[Event]:
        """Decide what the run's inbox, timers and attempts ask for; append and publish.

        Args:
            run: Run id.
            proposals: Facts beside the inbox, for example a dispatch that an agent proposes.
            cause: What caused this, for whoever hears of it.

        Returns:
            The events of this call's commit; empty when there was nothing to decide.
        """
        view = await self.view(run)
        async with view.lock:
            events = await self._decide(view, proposals)
        if events:
            await self.publish(run, cause)
        return events

    async def _decide(self, view: RunView, proposals: Sequence[Fact]) -> list[Event]:
        while True:
            if view.newer:
                return []
            batch = self._lenient(view, await self._store.take(view.state.run))
            commit = plan_commit(view.state, batch, proposals=proposals, dispatch=self._dispatch)
            if commit.empty:
                # Compare-and-set does not tell whether that nothing follows is decided on old
                # news, for example that a lapsed attempt is not dispatched yet.
                if not await self._catch_up(view):
                    return []
            elif await self._store.commit(commit):
                break
            else:
                await self._catch_up(view)
        first = commit.expected_seq + 1
        events = [
            Event(event.type, event.data, first + i, commit.time)
            for i, event in enumerate(commit.events)
        ]
        view.fold(events)
        self._on_commit(view, events, commit.timers)
        return events

    def _lenient(self, view: RunView, batch: Batch) -> Batch:
        # After an outage all processes come back, in any order: the workers have the grace too.
        shape = view.state.shape
        if shape is None or time.time() - self._since > shape.limits.grace_s:
            return batch
        return replace(batch, attempts=[replace(a, unserved=False) for a in batch.attempts])

    async def publish(self, run: str, cause: Cause = UNKNOWN) -> None:
        """Publish what is committed beyond the contiguous watermark, and move it."""
        view = await self.view(run)
        async with view.publishing:
            start = await self._store.published(run)
            events = await self._store.ledger(run, after=start)
            if not events:
                return
            await self.refresh(run, seq=events[-1].seq)
            since_s = time.time()
            for event in events:
                envelope = await self._envelope(view, event, cause)
                await self._bus.publish(self._topics.events, envelope, key=run)
            await self._on_published(view, events, cause, since_s)
            await self._store.mark_published(run, start=start, end=events[-1].seq)
        if view.state.final is not None:
            self._views.pop(run, None)

    async def announce(self, run: str, event: Event) -> None:
        """Publish one event again, for those who may have missed it."""
        envelope = await self._envelope(await self.view(run), event, UNKNOWN)
        await self._bus.publish(self._topics.events, envelope, key=run)

    async def _envelope(self, view: RunView, event: Event, cause: Cause) -> Envelope:
        run = view.state.run
        data = canonical_json(event.to_json())
        extra = {"seq": str(event.seq), "pin": view.brief.pin}
        if agent := event.data.get("agent"):
            extra["agent"] = str(agent)
        if len(data) > MAX_PAYLOAD_BYTES:
            extra["ref"] = await self._store.put_blob(data, "application/json")
            data = b""
        return Envelope(
            id=f"{run}/{event.seq}",
            type=event.type,
            source=self.source,
            subject=str(event.data.get("subtask", "")),
            data=data,
            run=run,
            hop=cause.hop,
            store=self._store.uuid,
            traceparent=cause.parent or view.brief.root,
            extra=extra,
        )
