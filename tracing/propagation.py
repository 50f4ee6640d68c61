"""Trace context in messages: into the two strings that an envelope carries, and out again."""

from __future__ import annotations

from typing import TypedDict

from tracing.spans import TraceContext


class Carrier(TypedDict):
    """The two fields of W3C Trace Context; both empty outside of any trace."""

    traceparent: str
    tracestate: str


def inject(context: TraceContext | None) -> Carrier:
    """Return the fields for a message: ``Envelope(..., **inject(span.context))``."""
    if context is None:
        return {"traceparent": "", "tracestate": ""}
    return {"traceparent": context.traceparent, "tracestate": context.tracestate}


def extract(traceparent: str, tracestate: str = "") -> TraceContext | None:
    """Return where a message came from; None when it does not say so, or not as the W3C asks.

    A guest may send anything here, so what is not valid counts as absent instead of failing.
    """
    return TraceContext.parse(traceparent, tracestate)
