"""Spans as the rest of the code makes them: contexts, live spans, and where ended ones go.

Identifiers are ours to choose, so that a span can be ended by another process than the one that
began its work: the root of a run, and the attempt of a worker that died.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace

Value = str | bool | int | float | Sequence[str]
Kind = Literal["internal", "client", "server", "producer", "consumer"]


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Where a span stands (W3C Trace Context, https://www.w3.org/TR/trace-context/).

    Attributes:
        trace_id: 32 hex digits.
        span_id: 16 hex digits.
        sampled: Whether spans of this trace are exported.
    """

    trace_id: str
    span_id: str
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        """The header's value."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"

    def child(self, seed: str = "") -> TraceContext:
        """Return a context in the same trace.

        Args:
            seed: The same seed gives the same span id; empty gives a random one.
        """
        if seed:
            span_id = sha256(f"{self.trace_id}/{seed}".encode()).hexdigest()[:16]
        else:
            span_id = os.urandom(8).hex()
        return TraceContext(self.trace_id, span_id, self.sampled)


def new_trace_context(*, sampled: bool = True) -> TraceContext:
    """Return the context of a new trace's root."""
    return TraceContext(os.urandom(16).hex(), os.urandom(8).hex(), sampled)


def parse_traceparent(text: str) -> TraceContext | None:
    """Read a ``traceparent``; None when it is empty or malformed, as the specification asks."""
    parts = text.strip().split("-")
    if len(parts) < 4 or [len(part) for part in parts[:4]] != [2, 32, 16, 2]:
        return None
    _, trace_id, span_id, flags = parts[:4]
    try:
        known = int(trace_id, 16) and int(span_id, 16)
        sampled = bool(int(flags, 16) & 1)
    except ValueError:
        return None
    return TraceContext(trace_id, span_id, sampled) if known else None


@dataclass(slots=True)
class Span:
    """A span; complete once ``end_s`` is set.

    Attributes:
        name: For example ``chat gpt-6``.
        service: Who did it: each agent is a service.
        context: Its own place.
        parent: Its parent, or None for a root.
        kind: OpenTelemetry span kind.
        attributes: By name.
        links: Other spans, each with what the link means.
        start_s: Seconds since the epoch.
        end_s: Seconds since the epoch, or None.
        error: Error class and message, or None.
    """

    name: str
    service: str
    context: TraceContext
    parent: TraceContext | None
    kind: Kind = "internal"
    attributes: dict[str, Value] = field(default_factory=dict)
    links: list[tuple[TraceContext, str]] = field(default_factory=list)
    start_s: float = field(default_factory=time.time)
    end_s: float | None = None
    error: tuple[str, str] | None = None

    def set(self, attributes: Mapping[str, Value | None]) -> None:
        """Set attributes; those that are None are left out."""
        self.attributes.update((k, v) for k, v in attributes.items() if v is not None)

    def fail(self, error_class: str, message: str) -> None:
        """Mark as failed."""
        self.error = (error_class, message)

    def end(self) -> None:
        """End now; ending again changes nothing."""
        if self.end_s is None:
            self.end_s = time.time()


class SpanSink(Protocol):
    """Where ended spans go."""

    async def emit(self, spans: Sequence[Span]) -> None:
        """Export spans that belong together; never raises for a failing exporter."""


@contextmanager
def current(place: TraceContext) -> Iterator[None]:
    """Make a span the current one, so that instrumentation of user code nests under it."""
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if place.sampled else 0)
    inner = trace.SpanContext(
        int(place.trace_id, 16), int(place.span_id, 16), is_remote=False, trace_flags=flags
    )
    token = otel_context.attach(trace.set_span_in_context(trace.NonRecordingSpan(inner)))
    mine = otel_context.get_current()
    try:
        yield
    finally:
        # Closed from another task the context is not ours to restore.
        if otel_context.get_current() is mine:
            otel_context.detach(token)
