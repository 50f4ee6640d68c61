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
from dataclasses import dataclass, replace
from typing import Any

from agents.assignment import Assignment
from agents.base import Agent
from agents.events import AgentEvent
from bus.base import Bus, Delivery, Route, Subscription
from bus.envelope import Envelope
from bus.errors import BusError
from bus.topics import Topics
from orchestrator.advance import UNKNOWN, Advancer, RunView
from orchestrator.brief import assignment
from orchestrator.cause import Cause
from orchestrator.commit import Timer
from orchestrator.facts import Dispatched
from orchestrator.intake import Intake
from orchestrator.rules import ready
from orchestrator.run_spans import Spans
from orchestrator.state import Event
from orchestrator.store.base import Due, Resend, RunStore, Scope
from orchestrator.store.errors import StoreError
from orchestrator.stream import Stream
from orchestrator.watchers import Watcher, Watchers
from orchestrator.work import pack, unpack
from orchestrator.worker import Worker
from tracing.spans import Span

log = logging.getLogger("cadenza.runtime")
SWEEP_S = 0.5
ORCHESTRATOR = "(orchestrator)"  # no agent can be called so
_LAST_SWEEP_S = 5.0
_OWN_TIMERS_S = 60.0


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
        grace_s: Seconds before an agent that no live worker serves is unroutable.
        shared: Whether other processes are on the bus.
        watches: Whether it is told from the beginning what agents of other processes tell.
        nested: Whether a step's span hangs from the step before, in choreography; else from the
            run.
    """

    name: str
    pipeline_hash: str
    mode: str
    conducts: bool
    team: Mapping[str, str]
    roles: tuple[str, ...] = ()
    slots: int = 4
    lease_s: float = 30.0
    grace_s: float = 60.0
    nested: bool = False
    shared: bool = False
    watches: bool = False


class Runtime:
    """Runs one process's part.

    Args:
        store: The run store, open.
        bus: The bus, open.
        agents: The agents that this process hosts.
        part: What this process does.
        spans: Traces attempts and roots.

    Attributes:
        intake: Tells which messages are ours.
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
        scope = Scope(part.pipeline_hash, part.mode)
        self._pin = scope.pin
        self._serves = (*agents, ORCHESTRATOR) if part.conducts else tuple(agents)
        self.worker = Worker(
            store,
            agents,
            scope=replace(scope, agents=self._serves),
            slots=part.slots,
            lease_s=part.lease_s,
            grace_s=part.grace_s,
            spans=spans,
            on_event=self._told,
            on_outcome=self.wake,
        )
        hosted = (*part.team, *part.roles) if part.conducts else self.worker.agents
        self._scope = replace(scope, agents=hosted)
        name = f"{self.advancer.source}/{self.worker.name}"
        stream = Stream(bus, self._topics, source=name, store=store.uuid)
        self.intake = Intake(scope.pin, store.uuid)
        self._watchers = Watchers(stream if part.shared else None)
        self._subscriptions: list[Subscription] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._roots = asyncio.Lock()
        self._sweeper: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    # --- opening and closing

    async def open(self) -> None:
        """Subscribe, say that the agents live, and begin to sweep."""
        members: list[tuple[str, list[Route]]] = []
        for agent in self.worker.agents:
            work = self._topics.work(agent)
            routes = [Route(work, self.intake.ours(self._work_arrived), self._part.slots)]
            if self._choreographed:
                routes.append(Route(self._topics.events, self.intake.ours(self._hear(agent))))
            members.append((agent, routes))
        if self._part.conducts:
            facts = Route(self._topics.facts, self.intake.ours(self._fact_arrived))
            members.append(("orchestrator", [facts]))
        await asyncio.gather(*(self._subscribe(routes, name) for name, routes in members))
        if self._part.watches:
            await self._watchers.listen()
        if self._serves:
            await self.worker.open()
        self._sweeper = asyncio.create_task(self._keep_sweeping(), name="sweeper")

    def _group(self, name: str) -> str:
        # One for each pipeline and mode: what one leaves aside is meant for another.
        return f"{self._part.name}.{name}.{self._pin}"

    async def _subscribe(self, routes: Sequence[Route], name: str) -> None:
        self._subscriptions.append(await self._bus.subscribe(routes, group=self._group(name)))

    async def close(self, *, drain_s: float = 0.0) -> None:
        """Stop taking work, let running attempts end or give them back, and stop.

        Args:
            drain_s: Seconds for running attempts to end by themselves.
        """
        if self._sweeper is not None:
            self._closing.set()  # what a sweep has committed it also publishes
            if (await asyncio.wait({self._sweeper}, timeout=_LAST_SWEEP_S))[1]:
                self._sweeper.cancel()
                await asyncio.wait({self._sweeper})
        await self.worker.stop(drain_s=drain_s)
        await asyncio.gather(*(subscription.close() for subscription in self._subscriptions))
        await self.worker.close()
        for timer in self._timers:
            timer.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._watchers.close()

    # --- following runs

    def watch(self, run: str, watcher: Watcher) -> Callable[[], None]:
        """Tell a watcher what is seen of a run from here; returns how to stop."""
        return self._watchers.add(run, watcher)

    def _told(self, event: AgentEvent) -> None:
        self._watchers.told(event)

    def _committed(self, view: RunView, events: Sequence[Event], timers: Sequence[Timer]) -> None:
        run = view.state.run
        self._watchers.tell(run, events)
        for event in events:
            if event.type == "subtask.cancel_requested":
                self.worker.cancel(run, event.data["subtask"], event.data["attempt"])
        for timer in timers:
            self._wake_at(run, timer.at)

    def _wake_at(self, run: str, at: float) -> None:
        pause = at - time.time()
        if pause > _OWN_TIMERS_S:  # later ones are the sweeper's
            return

        def fire() -> None:
            self._timers.discard(timer)
            self._spawn(self._advance(run), name=f"timer {run}")

        timer = asyncio.get_running_loop().call_later(max(0.0, pause) + 0.001, fire)
        self._timers.add(timer)

    def _spawn(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> None:
        task = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- advancing

    async def wake(self, run: str, cause: Cause = UNKNOWN) -> None:
        """Have a run advanced: by the orchestrator, or in choreography by ourselves.

        What asks for it is in the run store already, so a failure now is left to a sweep.
        """
        try:
            if self._choreographed:
                await self.advancer.advance(run, cause=cause)
                return
            envelope = Envelope(
                id=f"{run}/wake/{time.time_ns()}",
                type="cadenza.wake",
                source=self.advancer.source,
                run=run,
                store=self._store.uuid,
                traceparent=cause.parent,
                hop=cause.hop,
                extra={"pin": self._pin},
            )
            await self._bus.publish(self._topics.facts, envelope, key=run)
        except (StoreError, BusError):
            log.warning("could not tell of %s; a sweep will", run, exc_info=True)

    async def _advance(self, run: str) -> None:
        """Advance on our own account; what fails now is left to the next sweep."""
        if not (self._choreographed or self._part.conducts):
            return
        try:
            await self.advancer.advance(run)
        except (StoreError, BusError):
            log.warning("could not advance %s; the next sweep will", run, exc_info=True)

    async def _fact_arrived(self, delivery: Delivery) -> None:
        await self.advancer.advance(delivery.envelope.run, cause=Cause.of(delivery))
        await delivery.acknowledge()

    async def _published(
        self, view: RunView, events: Sequence[Event], cause: Cause, since_s: float
    ) -> None:
        sent: list[Span] = []
        for event in events:
            if self._part.conducts and event.type == "subtask.dispatched":
                sent += await self._send_work(view, event.data["subtask"], event.data["attempt"])
        topic = self._topics.events
        await self._spans.published(view, events, topic, cause=cause, since_s=since_s, sent=sent)

    # --- giving and taking work

    async def _work_for(self, view: RunView, subtask: str, attempt: int) -> Assignment | None:
        """Return an attempt's assignment, or None when it is no longer the current one."""
        sub = view.state.subtasks.get(subtask)
        if sub is None or sub.status != "open" or sub.attempt != attempt:
            return None
        team = dict(self._part.team)
        return await assignment(self._store, view.state, view.brief, subtask=subtask, team=team)

    async def _send(self, work: Assignment, cause: Cause) -> list[Span]:
        source, topic = self.advancer.source, self._topics.work(work.agent)
        envelope = await pack(self._store, work, source=source, pin=self._pin, cause=cause)
        since_s = time.time()
        await self._bus.publish(topic, envelope, key=work.subtask)
        return self._spans.sent(envelope, topic, since_s)

    async def _send_work(self, view: RunView, subtask: str, attempt: int) -> list[Span]:
        work = await self._work_for(view, subtask, attempt)
        if work is None:
            return []
        place = self._spans.delegation(view.brief.root, work.run, subtask, attempt)
        return await self._send(work, Cause(place))

    async def _work_arrived(self, delivery: Delivery) -> None:
        work = await unpack(self._store, delivery.envelope)
        cause = Cause.of(delivery, self._group(work.agent))
        await self.worker.take(work, cause, acknowledge=delivery.acknowledge)

    def _hear(self, agent: str) -> Callable[[Delivery], Coroutine[Any, Any, None]]:
        async def hear(delivery: Delivery) -> None:
            envelope = delivery.envelope
            if envelope.type == "subtask.ready" and envelope.extra.get("agent") == agent:
                seq = int(envelope.extra.get("seq", "0"))
                view = await self.advancer.refresh(envelope.run, seq=seq)
                await self._take_ready(agent, view, Cause.of(delivery, self._group(agent)))
            await delivery.acknowledge()

        return hear

    async def _take_ready(self, agent: str, view: RunView, heard: Cause) -> None:
        run = view.state.run
        cause = heard.under(view.brief.root, nested=self._part.nested)
        told = Cause(cause.parent, cause.hop, agent)
        for subtask, attempt in ready(view.state, agent):
            taken = Dispatched(time.time(), subtask, attempt)
            events = await self.advancer.advance(run, proposals=[taken], cause=told)
            if not any(_dispatches(event, subtask, attempt) for event in events):
                continue  # a fellow was faster
            work = await self._work_for(view, subtask, attempt)
            if work is None:
                continue
            joined = self._spans.joined(view, subtask, cause.parent)
            because = replace(cause, links=(*cause.links, *joined))
            if self.worker.has_slot(agent):
                await self.worker.take(work, because)
            else:
                await self._spans.tracing.emit(await self._send(work, because))

    # --- sweeping

    async def _keep_sweeping(self) -> None:
        while not self._closing.is_set():
            try:
                await self.sweep()
            except StoreError:
                log.warning("a sweep failed; the next comes in %s s", SWEEP_S, exc_info=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_S):
                    await self._closing.wait()

    async def sweep(self) -> None:
        """Do once what nobody else may have done: see ``RunStore.due``.

        Raises:
            StoreError: The store does not say what is due.
        """
        if not (self._choreographed or self._part.conducts):
            return
        # What this process has no slot for is left to fellows: their bus may not be ours.
        free = [a for a in self._scope.agents if not self.worker.is_full(a)]
        due: Due = await self._store.due(replace(self._scope, agents=tuple(free)))
        for run in due.advance:
            await self._tried(run, self.advancer.advance(run))
        for run in due.publish:
            await self._tried(run, self.advancer.publish(run))
        for item in due.resend:
            await self._tried(item.run, self._resend(item))
        for run in due.roots:
            await self._tried(run, self.export_root(run))

    async def _tried(self, run: str, step: Coroutine[Any, Any, object]) -> None:
        try:
            await step
        except Exception:
            # One run that cannot be helped must not keep the sweeper from the others.
            log.exception("sweeping run %s failed; it is tried again", run)

    async def _resend(self, item: Resend) -> None:
        view = await self.advancer.refresh(item.run)
        if item.state == "sent":
            sent = await self._send_work(view, item.subtask, item.attempt)
            await self._spans.tracing.emit(sent)
        elif self._choreographed:
            told = ("subtask.ready", item.subtask)
            ledger = await self._store.ledger(item.run)
            again = [e for e in ledger if (e.type, e.data.get("subtask")) == told]
            await self.advancer.announce(item.run, again[-1])

    async def export_root(self, run: str) -> None:
        """Export the root span of an ended run that is ours to look after, if nobody has."""
        async with self._roots:
            if run not in (await self._store.due(replace(self._scope, agents=()))).roots:
                return
            # First the span, then the mark: a process that dies between leaves it twice, under
            # one id, rather than not at all.
            await self._spans.root(await self._store.run(run), await self._store.usage(run))
            await self._store.root_exported(run)


def _dispatches(event: Event, subtask: str, attempt: int) -> bool:
    about = (event.data.get("subtask"), event.data.get("attempt"))
    return event.type == "subtask.dispatched" and about == (subtask, attempt)
