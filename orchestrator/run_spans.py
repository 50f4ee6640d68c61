"""The spans of a run that outlive a process: its root, its delegations, its attempts, its messages.

An attempt's calls are exported together with the attempt, before its outcome is written, so that
no exported span ever waits for a parent. The ids of roots, delegations and attempts follow from
the run, and the ledger tells when they began and ended: when a process dies, whoever publishes
what is left exports them instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.assignment import Assignment
from agents.outcome import Outcome
from agents.usage import Usage
from bus.envelope import Envelope
from orchestrator.advance import RunView
from orchestrator.attempt_span import AgentSpans, AttemptSpan, totals
from orchestrator.brief import Dispatch
from orchestrator.cause import Cause
from orchestrator.state import Event
from orchestrator.store.base import RunRow
from tracing import attributes as names
from tracing.spans import Span, SpanSink, TraceContext, Value, new_trace_context, parse_traceparent

MAX_LINKS = 128  # as many as OpenTelemetry keeps by default


def orchestrator_of(pipeline: str) -> str:
    """Return the service that delegates; no agent's name has a dot."""
    return f"{pipeline}.orchestrator"


class Spans:
    """Makes the spans of a pipeline's runs.

    Args:
        tracing: Where they go.
        mode: orchestration or choreography.
        pipeline: Pipeline name.
        system: What carries messages: ``memory``, ``kafka`` or ``mqtt``.
    """

    def __init__(self, tracing: SpanSink, *, mode: str, pipeline: str, system: str) -> None:
        self.tracing = tracing
        self._mode = mode
        self._orchestrated = mode == "orchestration"
        self._pipeline = pipeline
        self._orchestrator = orchestrator_of(pipeline)
        self._system = system

    def of_agent(self, agent: str) -> AgentSpans:
        """Return where an agent reports its calls."""
        return AgentSpans(agent, content=self.tracing.captures_content)

    # --- what a worker does

    def start(self, work: Assignment, cause: Cause) -> AttemptSpan:
        """Begin the span of an attempt, under the message that brought it, under its cause."""
        parent = parse_traceparent(cause.parent) or new_trace_context(sampled=False)
        common = self._common(work.run, work.subtask, work.attempt)
        heard = None
        if cause.topic:
            about = self._message(names.PROCESS, cause.topic, cause.message, common)
            about[names.CONSUMER_GROUP] = cause.group
            name = f"process {cause.topic}"
            heard = Span(name, work.agent, parent.child(), parent, "consumer", about)
            heard.start_s = cause.heard_s
            parent = heard.context
        span = self._attempt(parent, common, agent=work.agent, kind=work.kind)
        for what, place in cause.links:
            if (linked := parse_traceparent(place)) is not None:
                span.links.append((linked, what))
        return AttemptSpan(span, common, heard)

    async def finish(self, attempt: AttemptSpan, outcome: Outcome) -> None:
        """Export an attempt with its calls."""
        await self.tracing.emit(attempt.end(outcome), now=True)

    def sent(self, envelope: Envelope, topic: str, since_s: float) -> list[Span]:
        """Return the span of sending a ``work`` message, if the run is traced."""
        place = parse_traceparent(envelope.traceparent)
        if place is None:
            return []
        common = self._common(envelope.run, envelope.subject, envelope.attempt)
        about = self._message(names.SEND, topic, envelope.id, common)
        who = self._orchestrator if self._orchestrated else envelope.extra["agent"]
        return [_send(about, topic, place, who, since_s)]

    # --- what the ledger tells

    def delegation(self, root: str, run: str, subtask: str, attempt: int) -> str:
        """Return the ``traceparent`` of an attempt's work, where an orchestrator delegates it."""
        place = parse_traceparent(root)
        if place is None or not self._orchestrated:
            return root
        return place.child(f"delegation/{_seed(run, subtask, attempt)}").traceparent

    def joined(self, view: RunView, subtask: str, parent: str = "") -> tuple[tuple[str, str], ...]:
        """Return links to the attempts that a subtask builds on, beside its parent."""
        root = parse_traceparent(view.brief.root)
        if root is None:
            return ()
        subs = view.state.subtasks
        sub, spawned = subs[subtask], view.brief.spawned[subtask]
        trigger = () if sub.trigger is None else (sub.trigger,)
        waited = [*(sub.used or sub.after), *spawned.get("inputs", ()), *trigger][:MAX_LINKS]
        done = (subs[name] for name in waited if subs[name].status == "completed")
        places = (root.child(_seed(view.state.run, sub.id, sub.attempt)) for sub in done)
        links = ((names.JOINED, place.traceparent) for place in places)
        return tuple(link for link in links if link[1] != parent)

    async def published(
        self,
        view: RunView,
        events: Sequence[Event],
        topic: str,
        *,
        cause: Cause,
        since_s: float,
        sent: Sequence[Span],
    ) -> None:
        """Export what events that were published now tell, and the work that they had sent.

        The orchestrator's delegations that ended, attempts whose worker is gone, and in
        choreography the news that causes a step. It is called again for events whose publisher
        died, so none is missed.
        """
        root = parse_traceparent(view.brief.root)
        if root is None:
            return
        lasting: list[Span] = []
        news = list(sent)
        for event in events:
            dispatch = view.brief.ended.get(event.seq)
            if dispatch is not None:
                lasting += self._ended(view, root, dispatch)
            elif event.type == "subtask.ready" and not self._orchestrated:
                place = parse_traceparent(cause.parent) or root
                about: dict[str, Value] = {names.SUBTASK: event.data["subtask"]}
                about |= {names.RUN: view.state.run, names.MODE: self._mode}
                about = self._message(names.SEND, topic, f"{view.state.run}/{event.seq}", about)
                news.append(_send(about, topic, place, cause.service or self._pipeline, since_s))
        if lasting or news:
            await self.tracing.emit([*lasting, *news], now=bool(lasting))

    def _ended(self, view: RunView, root: TraceContext, dispatch: Dispatch) -> list[Span]:
        run, sub = view.state.run, view.state.subtasks[dispatch.subtask]
        common = self._common(run, sub.id, dispatch.attempt)
        parent = self.delegation(view.brief.root, run, sub.id, dispatch.attempt)
        place = parse_traceparent(parent) or root
        spans: list[Span] = []
        if self._orchestrated:
            about = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: sub.agent, **common}
            name = f"invoke_agent {sub.agent}"
            span = Span(name, self._orchestrator, place, root, "client", about)
            for what, other in self.joined(view, sub.id):
                if (linked := parse_traceparent(other)) is not None:
                    span.links.append((linked, what))
            spans.append(span)
        if dispatch.status == "lost":
            span = self._attempt(place, common, agent=sub.agent, kind=sub.kind)
            span.set({names.STOP_REASON: "lost_worker"})
            spans.append(span)
        for span in spans:
            span.start_s, span.end_s = dispatch.at, dispatch.event.time
            span.set({names.STATUS: dispatch.status})
            if dispatch.error is not None:
                span.fail(*dispatch.error)
        return spans

    async def root(self, row: RunRow, usage: Usage) -> None:
        """Export the root span of an ended run."""
        place = parse_traceparent(row.trace)
        if place is None:
            return
        span = Span(f"invoke_workflow {row.pipeline}", row.pipeline, place, None)
        span.start_s, span.end_s = row.created, row.ended
        span.set(
            {
                names.OPERATION: names.INVOKE_WORKFLOW,
                names.WORKFLOW: row.pipeline,
                names.CONVERSATION: row.session,
                names.PIPELINE: row.pipeline,
                names.RUN: row.run,
                names.MODE: row.mode,
                names.STATUS: row.status,
                **totals(usage),
            }
        )
        if row.status not in ("completed", "cancelled"):
            span.fail(row.status, f"the run ended as {row.status}")
        await self.tracing.emit([span], now=True)

    # --- parts

    def _common(self, run: str, subtask: str, attempt: int) -> dict[str, Value]:
        return {
            names.RUN: run,
            names.MODE: self._mode,
            names.SUBTASK: subtask,
            names.ATTEMPT: attempt,
        }

    def _message(
        self, operation: str, topic: str, message: str, common: Mapping[str, Value]
    ) -> dict[str, Value]:
        return {
            names.SYSTEM: self._system,
            names.DESTINATION: topic,
            names.OPERATION_TYPE: operation,
            names.OPERATION_NAME: operation,
            names.MESSAGE_ID: message,
            **common,
        }

    def _attempt(
        self, parent: TraceContext, common: Mapping[str, Value], *, agent: str, kind: str
    ) -> Span:
        run, subtask, attempt = common[names.RUN], common[names.SUBTASK], common[names.ATTEMPT]
        operation = names.PLAN if kind == "plan" else names.INVOKE_AGENT
        about = {names.OPERATION: operation, names.AGENT: agent, **common}
        name = "plan" if kind == "plan" else f"invoke_agent {agent}"
        place = parent.child(_seed(run, subtask, attempt))
        span = Span(name, agent, place, parent, attributes=about)
        if isinstance(attempt, int) and attempt > 1:
            earlier = parent.child(_seed(run, subtask, attempt - 1))
            span.links.append((earlier, names.EARLIER))
        return span


def _seed(run: object, subtask: object, attempt: object) -> str:
    return f"{run}/{subtask}/{attempt}"


def _send(
    about: dict[str, Value], topic: str, place: TraceContext, service: str, since_s: float
) -> Span:
    span = Span(f"send {topic}", service, place.child(), place, "producer", about)
    span.start_s = since_s
    # The conventions ask for the link to what the message carries, be it the parent or not.
    span.links.append((place, names.CREATED))
    span.end()
    return span
