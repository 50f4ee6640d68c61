"""Setting tracing up: the one file that knows the OpenTelemetry SDK.

The standard ``OTEL_*`` variables win. With an endpoint spans go there by OTLP over HTTP; without
one they go to a file of OTLP JSON lines, which Jaeger's page can open. No global provider is set.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import IO, cast

from opentelemetry import trace
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace.status import Status, StatusCode

from tracing.jaeger import collector
from tracing.spans import Span, TraceContext, new_trace_context

log = logging.getLogger("cadenza.tracing")
CLOSE_S = 3.0
FLUSH_S = 1.0
QUEUE = 16_384
_SCOPE = InstrumentationScope("cadenza")
_KINDS = {kind.name.lower(): kind for kind in trace.SpanKind}
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Tracing:
    """Exports spans of several services through one exporter.

    Args:
        namespace: ``service.namespace`` of all services, for example the pipeline's name.
        exporter: Takes groups that are written at once, or None.
        processor: Takes single spans that are sent later, or None.
        sampler: Decides about new traces.
        captures_content: Whether spans may carry messages, arguments and results.
        where: What people are told of the destination.
    """

    def __init__(
        self,
        namespace: str,
        *,
        exporter: SpanExporter | None = None,
        processor: SpanProcessor | None = None,
        sampler: Sampler = ALWAYS_ON,
        captures_content: bool = False,
        where: str = "nowhere",
    ) -> None:
        self.captures_content = captures_content
        self.where = where
        self._exporter = exporter
        self._processor = processor
        self._sampler = sampler
        self._resources: dict[str, Resource] = {}
        self._base = _base(namespace) if exporter or processor else Resource({})
        # One thread: lines are written whole and in order, and never on the event loop.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cadenza-spans")
        self._closed = False
        self._flushing = asyncio.Lock()
        self._queued = self._flushed = 0
        self._silent: threading.Thread | None = None

    @property
    def on(self) -> bool:
        """Whether spans go anywhere."""
        return not self._closed and (self._exporter is not None or self._processor is not None)

    def new_trace(self, name: str) -> TraceContext:
        """Return the context of a new root, sampled as the environment says."""
        if not self.on:
            return new_trace_context(sampled=False)
        place = new_trace_context()
        result = self._sampler.should_sample(None, int(place.trace_id, 16), name)
        sampled = result.decision is Decision.RECORD_AND_SAMPLE
        return TraceContext(place.trace_id, place.span_id, sampled)

    async def emit(self, spans: Sequence[Span], *, now: bool = False) -> None:
        """Export ended spans that belong together, as one line or into one queue; see SpanSink."""
        wanted = [span for span in spans if span.context.sampled]
        if not wanted or not self.on:
            return
        if self._processor is not None:
            for span in wanted:
                self._processor.on_end(self._readable(span))
            self._queued += len(wanted)
            if now:
                await self._flush(self._processor, self._queued)
        if self._exporter is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._write, wanted)

    async def _flush(self, processor: SpanProcessor, upto: int) -> None:
        async with self._flushing:
            if self._flushed >= upto:
                return  # those who waited together are served by one request
            if self._silent is not None and self._silent.is_alive():
                return  # a collector that does not answer holds up one caller, not each
            queued = self._queued
            flushing = threading.Thread(
                target=processor.force_flush, name="cadenza-flush", daemon=True
            )
            flushing.start()
            await asyncio.to_thread(flushing.join, FLUSH_S)
            self._flushed, self._silent = queued, flushing

    def _write(self, spans: Sequence[Span]) -> None:
        if self._exporter is not None:
            self._exporter.export([self._readable(span) for span in spans])

    def _resource(self, service: str) -> Resource:
        if service not in self._resources:
            self._resources[service] = self._base.merge(Resource({"service.name": service}))
        return self._resources[service]

    def _readable(self, span: Span) -> ReadableSpan:
        span.end()
        status = Status(StatusCode.UNSET)
        attributes = dict(span.attributes)
        if span.error is not None:
            attributes["error.type"] = span.error[0]
            status = Status(StatusCode.ERROR, span.error[1][:1_000])
        start_ns = int(span.start_s * 1e9)
        return ReadableSpan(
            name=span.name,
            context=_context(span.context),
            parent=None if span.parent is None else _context(span.parent, remote=True),
            resource=self._resource(span.service),
            attributes=attributes,
            links=[
                trace.Link(_context(place, remote=True), {"cadenza.link": why})
                for place, why in span.links
            ],
            kind=_KINDS[span.kind],
            status=status,
            start_time=start_ns,
            # Begun on one host and ended on another whose clock is behind: never negative.
            end_time=max(start_ns, int((span.end_s or span.start_s) * 1e9)),
            instrumentation_scope=_SCOPE,
        )

    async def close(self) -> None:
        """Send what is queued and stop, within three seconds; may be called twice."""
        if self._closed:
            return
        self._closed = True
        # A daemon: asyncio.run and the interpreter wait for the threads of a pool.
        closing = threading.Thread(target=self._shutdown, name="cadenza-close", daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, CLOSE_S)
        if closing.is_alive():
            log.warning("spans for %s could not be sent within %s s", self.where, CLOSE_S)

    def _shutdown(self) -> None:
        self._thread.shutdown(wait=True)
        for part in (self._processor, self._exporter):
            if part is not None:
                part.shutdown()


def _base(namespace: str) -> Resource:
    """Return what all services share; ``Resource.create`` brings OTEL_RESOURCE_ATTRIBUTES."""
    # Services are the agents, so a service name of the environment names what they belong to.
    own = {
        "service.namespace": os.environ.get("OTEL_SERVICE_NAME") or namespace,
        "host.name": socket.gethostname(),
    }
    return Resource(own).merge(Resource.create())


def _context(place: TraceContext, *, remote: bool = False) -> trace.SpanContext:
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if place.sampled else 0)
    ids = (int(place.trace_id, 16), int(place.span_id, 16))
    return trace.SpanContext(*ids, is_remote=remote, trace_flags=flags)


def open_tracing(*, namespace: str, file: Path | None, capture_content: bool = False) -> Tracing:
    """Set tracing up as the environment says, else as the arguments do.

    It reads the environment and opens a file: call it off the event loop.

    Args:
        namespace: ``service.namespace`` of all services.
        file: Where OTLP JSON lines go when no endpoint is configured; None for nowhere.
        capture_content: Whether spans may carry content, where the environment does not say.
    """
    said = os.environ.get(_CAPTURE, "").lower()
    captures = said in ("true", "1", "span_only", "span_and_event") if said else capture_content
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if disabled or os.environ.get("OTEL_TRACES_EXPORTER", "").lower() == "none":
        return Tracing(namespace)
    sampler = TracerProvider(shutdown_on_exit=False).sampler  # it knows OTEL_TRACES_SAMPLER
    endpoint = collector()
    if endpoint is not None:
        return Tracing(
            namespace,
            processor=_otlp(endpoint),
            sampler=sampler,
            captures_content=captures,
            where=endpoint,
        )
    if file is None:
        return Tracing(namespace)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = cast("IO[str]", _WholeLines(file))
        exporter = _Told(FileSpanExporter(stream=stream), str(file))
    except OSError as exc:
        log.warning("no trace is written: %s", exc)
        return Tracing(namespace)
    return Tracing(
        namespace,
        exporter=exporter,
        sampler=sampler,
        captures_content=captures,
        where=str(file),
    )


def _otlp(endpoint: str) -> SpanProcessor:
    # Needs requests, which costs 0.1 s: only those who have a collector pay.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    queue = None if "OTEL_BSP_MAX_QUEUE_SIZE" in os.environ else QUEUE
    return BatchSpanProcessor(_Told(OTLPSpanExporter(), endpoint), max_queue_size=queue)


class _Told(SpanExporter, logging.Filter):
    """Wraps an exporter so that an outage is told once, not with every batch."""

    def __init__(self, exporter: SpanExporter, where: str) -> None:
        logging.Filter.__init__(self)
        self._exporter = exporter
        self._where = where
        self._failing = False
        self._thread: int | None = None
        self._reason = ""
        self._logger = logging.getLogger(type(exporter).__module__)
        self._logger.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep what the exporter says of our spans; what it says of others' passes."""
        if record.thread != self._thread:
            return True
        self._reason = record.getMessage()
        return False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._thread = threading.get_ident()
        try:
            result = self._exporter.export(spans)
        finally:
            self._thread = None
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failing:
            log.warning("spans do not reach %s and are dropped: %s", self._where, self._reason)
        self._failing = failed
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
        self._logger.removeFilter(self)


class _WholeLines(io.TextIOBase):
    """Appends whole lines to a file that other processes append to as well.

    Raises:
        OSError: The file cannot be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        os.close(self._open())

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, text: str) -> int:
        fd = self._open()  # for each line: the file may have been moved away
        try:
            flock(fd, LOCK_EX)  # closing lets go
            size = os.fstat(fd).st_size
            data = text.encode()
            # A process that was killed while it wrote must cost its own line only.
            if size and os.pread(fd, 1, size - 1) != b"\n":
                data = b"\n" + data
            while data:
                data = data[os.write(fd, data) :]
        finally:
            os.close(fd)
        return len(text)
