"""Spans as the rest of the code makes them: contexts, live spans, and where ended ones go.

Identifiers are ours to choose, so that a span can be ended by another process than the one that
began its work: the root of a run, and the attempt of a worker that died.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace

# Versions after 00 may append fields; ff is forbidden, and so are ids of zeros.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)

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
    found = _TRACEPARENT.fullmatch(text.strip())
    if found is None or (text.strip().startswith("00") and found["more"]):
        return None
    return TraceContext(found["trace"], found["span"], bool(int(found["flags"], 16) & 1))


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
    """Where ended spans go.

    Attributes:
        captures_content: Whether spans may carry messages, arguments and results.
    """

    captures_content: bool

    def new_trace(self, name: str) -> TraceContext:
        """Return the context of a new root."""

    async def close(self) -> None:
        """Send what is queued and stop."""

    async def emit(self, spans: Sequence[Span], *, now: bool = False) -> None:
        """Export spans that belong together; never raises for a failing exporter.

        Args:
            spans: Ended spans, parents first.
            now: Whether others will hang from them: then they have left this process on return,
                unless the collector does not answer.
        """


@contextmanager
def current(place: TraceContext) -> Iterator[None]:
    """Make a span the current one, so that instrumentation of user code nests under it."""
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if place.sampled else 0)
    inner = trace.SpanContext(
        int(place.trace_id, 16), int(place.span_id, 16), is_remote=False, trace_flags=flags
    )
    before = otel_context.get_current()
    mine = trace.set_span_in_context(trace.NonRecordingSpan(inner))
    otel_context.attach(mine)
    try:
        yield
    finally:
        # Restored by setting it: another task that closes this may have inherited the context,
        # where the token would be refused and OpenTelemetry would log an error.
        if otel_context.get_current() is mine:
            otel_context.attach(before)
