"""Spans as they are read back, for the tests of tree and check."""

from __future__ import annotations

from typing import Any

from tracing.reader import SpanRecord

TRACE = "0af7651916cd43dd8448eb211c80319c"
SECOND = 1_000_000_000


def record(
    span_id: str,
    parent_id: str = "",
    name: str = "",
    *,
    service: str = "stock",
    at: float = 0.0,
    lasts: float | None = 1.0,
    links: tuple[str, ...] = (),
    error: str | None = None,
    trace_id: str = TRACE,
    attributes: dict[str, Any] | None = None,
    kind: str = "internal",
) -> SpanRecord:
    start = round((1_000 + at) * SECOND)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=name or span_id,
        service=service,
        start_ns=start,
        end_ns=0 if lasts is None else start + round(lasts * SECOND),
        attributes={"cadenza.run": "r1"} | (attributes or {}),
        links=links,
        error=error,
        kind=kind,
    )
