"""Whether a trace is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tracing import attributes as names
from tracing.reader import SpanRecord

Attempt = tuple[str, int]  # subtask and attempt number


@dataclass(frozen=True, slots=True)
class Expected:
    """What the trace of a run must hold, as its ledger and journals say.

    Attributes:
        run: Run id that every span carries.
        services: Services with a span: the run's own, and the agents that worked.
        attempts: Attempts that were begun, each with one span of its agent.
        delegations: Attempts with one span of the orchestrator.
        open: Attempts that have not ended: they may have spans and need none.
        calls: How many calls of a kind (a value of ``gen_ai.operation.name``) the journal of a
            subtask has, and whether the trace may have more.
    """

    run: str
    services: frozenset[str] = frozenset()
    attempts: frozenset[Attempt] | None = None
    delegations: frozenset[Attempt] = frozenset()
    open: frozenset[Attempt] = frozenset()
    calls: Mapping[tuple[str, str], tuple[int, bool]] = field(default_factory=dict)


def check(spans: Sequence[SpanRecord], expected: Expected) -> list[str]:
    """Return what is wrong with the trace of a run, one line a fault; empty when it is whole."""
    if not spans:
        return ["the trace has no spans"]
    return [
        *_roots(spans),
        *_parents(spans),
        *_each(spans, expected.run),
        *_services(spans, expected.services),
        *_attempts(spans, expected),
        *_calls(spans, expected.calls),
    ]


def _roots(spans: Sequence[SpanRecord]) -> Iterator[str]:
    traces = {span.trace_id for span in spans}
    if len(traces) > 1:
        yield f"there are {len(traces)} traces: {', '.join(sorted(traces))}"
    roots = [span for span in spans if not span.parent_id]
    if len(roots) != 1:
        yield f"there are {len(roots)} roots: {', '.join(map(_named, roots)) or 'none'}"


def _parents(spans: Sequence[SpanRecord]) -> Iterator[str]:
    known = {span.span_id for span in spans}
    for span in spans:
        if span.parent_id and span.parent_id not in known:
            yield f"{_named(span)} has no parent {span.parent_id}"
        for link in span.links:
            if link not in known:
                yield f"{_named(span)} links to {link}, which is not there"


def _each(spans: Sequence[SpanRecord], run: str) -> Iterator[str]:
    for span in spans:
        if span.attributes.get(names.RUN) != run:
            found = span.attributes.get(names.RUN)
            yield f"{_named(span)} is of run {found!r}, not {run!r}"
        if not span.end_ns:
            yield f"{_named(span)} was never ended"
        elif span.end_ns < span.start_ns:
            yield f"{_named(span)} ends before it starts"


def _services(spans: Sequence[SpanRecord], wanted: frozenset[str]) -> Iterator[str]:
    missing = sorted(wanted - {span.service for span in spans})
    if missing:
        yield f"services without a span: {', '.join(missing)}"


def _attempts(spans: Sequence[SpanRecord], expected: Expected) -> Iterator[str]:
    if expected.attempts is None:
        return
    invoked = (names.INVOKE_AGENT, names.PLAN)
    found = [span for span in spans if span.attributes.get(names.OPERATION) in invoked]
    yield from _one_each(
        "attempt", [s for s in found if s.kind != "client"], expected.attempts, expected.open
    )
    yield from _one_each(
        "delegation", [s for s in found if s.kind == "client"], expected.delegations, frozenset()
    )


def _one_each(
    what: str, spans: Sequence[SpanRecord], wanted: frozenset[Attempt], may: frozenset[Attempt]
) -> Iterator[str]:
    found = Counter(
        (s.attributes.get(names.SUBTASK), s.attributes.get(names.ATTEMPT)) for s in spans
    )
    for subtask, attempt in sorted(wanted - found.keys()):
        yield f"{what} {attempt} of {subtask!r} has no span"
    for where, n in found.items():
        if where not in wanted | may:
            yield f"{what} {where[1]} of {where[0]!r} has a span, and is not in the ledger"
        elif n > 1:
            yield f"{what} {where[1]} of {where[0]!r} has {n} spans"


def _calls(
    spans: Sequence[SpanRecord], wanted: Mapping[tuple[str, str], tuple[int, bool]]
) -> Iterator[str]:
    # A model call that failed is not in the journal; a tool call that failed is.
    found = Counter(
        (span.attributes.get(names.SUBTASK), span.attributes.get(names.OPERATION))
        for span in spans
        if span.error is None or span.attributes.get(names.OPERATION) != names.CHAT
    )
    for (subtask, operation), (n, more) in wanted.items():
        there = found[subtask, operation]
        if there < n or (there > n and not more):
            yield f"{subtask!r} has {there} spans of {operation}, and {n} in its journal"


def _named(span: SpanRecord) -> str:
    return f"{span.name} ({span.span_id})"
