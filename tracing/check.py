"""Whether a trace is whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tracing import attributes as names
from tracing.reader import SpanRecord


def check(spans: Sequence[SpanRecord], *, run: str, services: Iterable[str] = ()) -> list[str]:
    """Return what is wrong with the trace of a run; empty when it is whole.

    Args:
        spans: The trace.
        run: Run id that every span must carry.
        services: Services that must appear: the agents that did something.
    """
    if not spans:
        return ["the trace has no spans"]
    return [*_roots(spans), *_parents(spans), *_each(spans, run), *_services(spans, services)]


def _roots(spans: Sequence[SpanRecord]) -> Iterator[str]:
    traces = {span.trace_id for span in spans}
    if len(traces) > 1:
        yield f"there are {len(traces)} traces: {', '.join(sorted(traces))}"
    roots = [span for span in spans if not span.parent_id]
    if len(roots) != 1:
        yield f"there are {len(roots)} roots: {', '.join(span.name for span in roots) or 'none'}"


def _parents(spans: Sequence[SpanRecord]) -> Iterator[str]:
    known = {span.span_id for span in spans}
    for span in spans:
        if span.parent_id and span.parent_id not in known:
            yield f"{span.name} ({span.span_id}) has no parent {span.parent_id}"
        for link in span.links:
            if link not in known:
                yield f"{span.name} ({span.span_id}) links to {link}, which is not there"


def _each(spans: Sequence[SpanRecord], run: str) -> Iterator[str]:
    for span in spans:
        if span.attributes.get(names.RUN) != run:
            found = span.attributes.get(names.RUN)
            yield f"{span.name} ({span.span_id}) is of run {found!r}, not {run!r}"
        if not span.end_ns:
            yield f"{span.name} ({span.span_id}) was never ended"
        elif span.end_ns < span.start_ns:
            yield f"{span.name} ({span.span_id}) ends before it starts"


def _services(spans: Sequence[SpanRecord], wanted: Iterable[str]) -> Iterator[str]:
    missing = sorted(set(wanted) - {span.service for span in spans})
    if missing:
        yield f"services without a span: {', '.join(missing)}"
