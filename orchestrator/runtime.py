"""One process's part in a pipeline: it may advance runs, host agents, or both.

Orchestration and choreography differ here and nowhere else: in who calls ``advance`` and who takes
the next step of a ready subtask.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agents.base import Agent
from agents.events import AgentEvent
from bus.base import Bus, Delivery, Route, Subscription
from bus.envelope import Envelope
from bus.errors import BusError
from bus.topics import Topics
from orchestrator.advance import Advancer, RunView
from orchestrator.attempt_span import Spans
from orchestrator.brief import assignment
from orchestrator.commit import Timer
from orchestrator.facts import Dispatched
from orchestrator.rules import ready
from orchestrator.state import Event
from orchestrator.store.base import Due, Resend, RunStore, Scope
from orchestrator.store.errors import StoreError
from orchestrator.work import pack, unpack
from orchestrator.worker import Worker

log = logging.getLogger("cadenza.runtime")
SWEEP_S = 0.5
MAX_NESTED_HOPS = 15  # a longer chain would nest deeper than trace views show


@dataclass(frozen=True, slots=True)
class Part:
    """What a process does for a pipeline.

    Attributes:
        name: Pipeline name; also the default namespace of its topics.
        pipeline_hash: Hash of the pinned pipeline.
        mode: orchestration or choreography.
        conducts: Whether this process is the orchestrator (orchestration only).
        team: Name to description of the agents that plans and colleagues may name.
        roles: The other agents: planner and synthesizer.
        slots: Attempts of one agent that may run at once.
        lease_s: Seconds a claim lasts without a heartbeat.
    """

    name: str
    pipeline_hash: str
    mode: str
    conducts: bool
    team: Mapping[str, str]
    roles: tuple[str, ...] = ()
    slots: int = 4
    lease_s: float = 30.0


class Runtime:
    """Runs one process's part.

    Args:
        store: The run store, open.
        bus: The bus, open.
        agents: The agents that this process hosts.
        part: What this process does.
        spans: Traces attempts and roots.
    """

    def __init__(
        self, store: RunStore, bus: Bus, agents: Mapping[str, Agent], *, part: Part, spans: Spans
    ) -> None:
        self._store = store
        self._bus = bus
        self._part = part
        self._spans = spans
        self._topics = Topics(part.name)
        self._choreographed = part.mode == "choreography"
        self.advancer = Advancer(
            store,
            bus,
            self._topics,
            source=f"/{part.name}/{'orchestrator' if part.conducts else 'worker'}",
            dispatch=part.conducts,
            on_commit=self._committed,
            on_published=self._published,
        )
        self.worker = Worker(
            store,
            agents,
            pipeline_hash=part.pipeline_hash,
            slots=part.slots,
            lease_s=part.lease_s,
            spans=spans,
            on_event=self._tell,
            on_outcome=self._outcome_written,
        )
        hosted = (*part.team, *part.roles) if part.conducts else self.worker.agents
        self._scope = Scope(part.pipeline_hash, part.mode, hosted)
        self._subscriptions: list[Subscription] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._watchers: dict[str, list[Callable[[AgentEvent | Event], None]]] = {}

    # --- opening and closing

    async def open(self) -> None:
        """Subscribe, say that the agents live, and begin to sweep."""
        slots = self._part.slots
        for agent in self.worker.agents:
            routes = [Route(self._topics.work(agent), self._work_arrived, slots)]
            if self._choreographed:
                routes.append(Route(self._topics.events, self._hear(agent)))
            self._subscriptions.append(await self._bus.subscribe(routes, group=agent))
        if self._part.conducts:
            routes = [Route(self._topics.facts, self._fact_arrived)]
            self._subscriptions.append(await self._bus.subscribe(routes, group="orchestrator"))
        if self.worker.agents:
            await self.worker.open()
        self._sweeper = asyncio.create_task(self._keep_sweeping(), name="sweeper")

    async def close(self, *, drain_s: float = 0.0) -> None:
        """Stop taking work, let running attempts end or give them back, and stop."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        await self.worker.close(drain_s=drain_s)
        for subscription in self._subscriptions:
            await subscription.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- following runs

    def watch(self, run: str, watcher: Callable[[AgentEvent | Event], None]) -> Callable[[], None]:
        """Tell a watcher what this process sees of a run; returns how to stop."""
        self._watchers.setdefault(run, []).append(watcher)

        def stop() -> None:
            watchers = self._watchers.get(run, [])
            if watcher in watchers:
                watchers.remove(watcher)
            if not watchers:
                self._watchers.pop(run, None)

        return stop

    def _tell(self, event: AgentEvent) -> None:
        for watcher in tuple(self._watchers.get(event.run, ())):
            watcher(event)

    def _committed(self, view: RunView, events: Sequence[Event], timers: Sequence[Timer]) -> None:
        run = view.state.run
        for event in events:
            for watcher in tuple(self._watchers.get(run, ())):
                watcher(event)
            if event.type == "subtask.cancel_requested":
                self.worker.cancel(run, event.data["subtask"], event.data["attempt"])
            elif event.type == "attempt.expired":
                self._spawn(self._spans.lost(view, event), name=f"lost span {run}")
        for timer in timers:
            self._wake_at(run, timer.at)

    def _wake_at(self, run: str, at: float) -> None:
        pause = at - time.time()
        if pause < 60.0:  # later ones are the sweeper's
            self._spawn(self._wake_later(run, pause), name=f"timer {run}")

    async def _wake_later(self, run: str, pause: float) -> None:
        await asyncio.sleep(max(0.0, pause) + 0.001)
        await self._advance(run)

    def _spawn(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> None:
        task = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- advancing

    async def wake(self, run: str, *, traceparent: str = "", hop: int = 0) -> None:
        """Have a run advanced: by the orchestrator, or in choreography by ourselves."""
        if self._choreographed:
            await self.advancer.advance(run, traceparent=traceparent, hop=hop)
            return
        envelope = Envelope(
            id=f"{run}/wake/{time.time_ns()}",
            type="cadenza.wake",
            source=f"/{self._part.name}/worker",
            run=run,
            store=self._store.uuid,
            traceparent=traceparent,
            hop=hop,
        )
        await self._bus.publish(self._topics.facts, envelope, key=run)

    async def _advance(self, run: str) -> None:
        """Advance on our own account; what fails now is left to the next sweep."""
        try:
            if self._choreographed or self._part.conducts:
                await self.advancer.advance(run)
        except (StoreError, BusError):
            log.warning("could not advance %s; the next sweep will", run, exc_info=True)

    async def _outcome_written(self, run: str, traceparent: str, hop: int) -> None:
        try:
            await self.wake(run, traceparent=traceparent, hop=hop)
        except (StoreError, BusError):
            log.warning("could not tell of %s; a sweep will", run, exc_info=True)

    async def _fact_arrived(self, delivery: Delivery) -> None:
        envelope = delivery.envelope
        if self._ours(envelope):
            await self.advancer.advance(
                envelope.run, traceparent=envelope.traceparent, hop=envelope.hop
            )
        await delivery.acknowledge()

    def _ours(self, envelope: Envelope) -> bool:
        if envelope.store == self._store.uuid:
            return True
        log.error(
            "message %r speaks of run store %s, this process has %s; start it with that store",
            envelope.id,
            envelope.store,
            self._store.uuid,
        )
        return False

    async def _published(self, view: RunView, event: Event) -> None:
        if self._part.conducts and event.type == "subtask.dispatched":
            await self._send_work(view, event.data["subtask"], event.data["attempt"])

    # --- giving and taking work

    async def _send_work(
        self, view: RunView, subtask: str, attempt: int, traceparent: str = ""
    ) -> None:
        sub = view.state.subtasks.get(subtask)
        if sub is None or sub.status != "open" or sub.attempt != attempt:
            return
        work = await assignment(
            self._store, view.state, view.brief, subtask=subtask, team=dict(self._part.team)
        )
        envelope = await pack(
            self._store,
            work,
            source=self.advancer.source,
            traceparent=traceparent or str(view.brief.submitted.get("traceparent", "")),
        )
        await self._bus.publish(self._topics.work(work.agent), envelope, key=subtask)

    async def _work_arrived(self, delivery: Delivery) -> None:
        envelope = delivery.envelope
        if not self._ours(envelope):
            await delivery.acknowledge()
            return
        work = await unpack(self._store, envelope)
        await self.worker.take(
            work,
            acknowledge=delivery.acknowledge,
            traceparent=envelope.traceparent,
            hop=envelope.hop,
        )

    def _hear(self, agent: str) -> Callable[[Delivery], Coroutine[Any, Any, None]]:
        async def hear(delivery: Delivery) -> None:
            envelope = delivery.envelope
            mine = envelope.type == "subtask.ready" and envelope.extra.get("agent") == agent
            if mine and self._ours(envelope):
                await self._take_ready(agent, envelope)
            await delivery.acknowledge()

        return hear

    async def _take_ready(self, agent: str, envelope: Envelope) -> None:
        run = envelope.run
        view = await self.advancer.refresh(run, seq=int(envelope.extra.get("seq", "0")))
        cause = envelope.traceparent
        if not cause or envelope.hop > MAX_NESTED_HOPS:
            cause = str(view.brief.submitted.get("traceparent", ""))
        for subtask, attempt in ready(view.state, agent):
            proposal = Dispatched(time.time(), subtask, attempt)
            events = await self.advancer.advance(
                run,
                proposals=[proposal],
                traceparent=cause,
                hop=envelope.hop,
            )
            ours = any(
                e.type == "subtask.dispatched" and e.data["subtask"] == subtask for e in events
            )
            if not ours:
                continue
            if self.worker.has_slot(agent):
                work = await assignment(
                    self._store,
                    view.state,
                    view.brief,
                    subtask=subtask,
                    team=dict(self._part.team),
                )
                await self.worker.take(work, traceparent=cause, hop=envelope.hop)
            else:
                await self._send_work(view, subtask, attempt, cause)

    # --- sweeping

    async def _keep_sweeping(self) -> None:
        while True:
            try:
                await self.sweep()
            except (StoreError, BusError):
                log.warning("a sweep failed; the next comes in %s s", SWEEP_S, exc_info=True)
            await asyncio.sleep(SWEEP_S)

    async def sweep(self) -> None:
        """Do once what nobody else may have done: see ``RunStore.due``."""
        if not (self._choreographed or self._part.conducts):
            return
        due: Due = await self._store.due(self._scope)
        for run in due.advance:
            await self._advance(run)
        for run in due.publish:
            await self.advancer.publish(run)
        for item in due.resend:
            await self._resend(item)
        for run in due.roots:
            await self.export_root(run)

    async def _resend(self, item: Resend) -> None:
        view = await self.advancer.refresh(item.run)
        if item.state == "sent":
            await self._send_work(view, item.subtask, item.attempt)
        elif self._choreographed:
            data = {"subtask": item.subtask, "agent": item.agent}
            event = Event("subtask.ready", data, seq=view.state.seq, time=time.time())
            await self.advancer.announce(item.run, event)

    async def export_root(self, run: str) -> None:
        """Export the root span of an ended run, once among all processes."""
        if await self._store.root_exported(run):
            row = await self._store.run(run)
            await self._spans.root(row, await self._store.usage(run))
