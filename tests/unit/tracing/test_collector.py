"""A collector: spans reach it, and a dead one holds nothing up."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tracing.setup import FLUSH_S, Tracing, open_tracing
from tracing.spans import Span, new_trace_context

ROOT = Path(__file__).parents[3]


async def opened(*, namespace: str, file: Path | None, capture_content: bool = False) -> Tracing:
    """Open tracing as processes do: off the event loop."""
    return await asyncio.to_thread(
        open_tracing, namespace=namespace, file=file, capture_content=capture_content
    )


# Three seconds are promised; the rest is for imports on a busy machine.
GENEROUS_S = 9.0


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """Run a small OTLP server on loopback."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()
        thread.join()


@contextmanager
def silent() -> Iterator[str]:
    """Hold a port that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def refusing() -> str:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


async def test_the_endpoint_of_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "traces.jsonl"
    place = new_trace_context()
    with collector() as (endpoint, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        tracing = await opened(namespace="stock", file=file)
        await tracing.emit([Span("chat m", "analyst", place, None, end_s=time.time())])
        await tracing.close()
    [resource] = received[0].resource_spans
    [span] = resource.scope_spans[0].spans
    assert (span.name, span.trace_id.hex()) == ("chat m", place.trace_id)
    assert not file.exists()


async def test_spans_that_others_hang_from_have_left_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A process may be killed at any moment; the batch would leave five seconds later.
    with collector() as (endpoint, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        tracing = await opened(namespace="stock", file=None)
        spans = [Span("chat m", "a", new_trace_context(), None) for _ in range(8)]
        await asyncio.gather(*(tracing.emit([span], now=True) for span in spans))
        names = [
            span.name
            for request in received
            for resource in request.resource_spans
            for span in resource.scope_spans[0].spans
        ]
        await tracing.close()
    assert names == ["chat m"] * 8
    assert len(received) <= 2, "those who wait together are served together"


async def test_a_silent_collector_holds_up_one_caller_and_not_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with silent() as endpoint:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        tracing = await opened(namespace="stock", file=None)
        start = time.monotonic()
        for _ in range(20):
            await tracing.emit([Span("chat m", "a", new_trace_context(), None)], now=True)
        assert FLUSH_S <= time.monotonic() - start < 2 * FLUSH_S
    await tracing.close()


async def test_an_outage_is_logged_once_and_not_for_each_batch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.05")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    tracing = await opened(namespace="stock", file=None)
    with caplog.at_level(logging.WARNING):
        await tracing.emit([Span("chat m", "a", new_trace_context(), None) for _ in range(5)])
        await tracing.close()
    said = [r.getMessage() for r in caplog.records if r.name != "asyncio"]
    assert len(said) == 1, said


CLIENT = """
import asyncio
from tracing.setup import open_tracing
from tracing.spans import Span, new_trace_context

async def main():
    tracing = open_tracing(namespace="stock", file=None)
    await tracing.emit([Span("chat m", "a", new_trace_context(), None)])
    await tracing.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("dead", ["silent", "refusing"])
def test_a_process_with_a_dead_collector_ends_in_time(dead: str) -> None:
    # Closing in time is not enough: asyncio.run and the interpreter wait for pool threads.
    with silent() as quiet:
        endpoint = quiet if dead == "silent" else refusing()
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
        start = time.monotonic()
        subprocess.run(
            [sys.executable, "-c", CLIENT], cwd=ROOT, env=environment, check=True, timeout=50
        )
        assert time.monotonic() - start < GENEROUS_S
