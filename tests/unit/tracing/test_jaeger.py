"""Jaeger's address, and what goes wrong when it is asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.unit.tracing.records import TRACE
from tests.unit.tracing.test_collector import refusing
from tracing.jaeger import HERE, JaegerUnusable, jaeger_url, page, read_jaeger


@contextmanager
def answering(code: int, body: bytes) -> Iterator[str]:
    """Run a server that gives one answer to all."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_trace_that_is_not_there_has_no_spans() -> None:
    with answering(404, b"{}") as url:
        assert read_jaeger(f"{url}/", TRACE) == []


@pytest.mark.parametrize(
    ("code", "body", "says"),
    [
        (500, b"", "500 Internal Server Error was answered"),
        (404, b"404 page not found", "not of its OTLP receiver"),
        (200, b"<html>", "is not Jaeger"),
        (200, b"[1]", "is not Jaeger"),
        (200, b'{"result": null}', "is not Jaeger"),
    ],
)
def test_an_answer_that_is_no_trace_says_so(code: int, body: bytes, says: str) -> None:
    with answering(code, body) as url, pytest.raises(JaegerUnusable, match=says):
        read_jaeger(url, TRACE)


def test_nobody_there_says_what_to_do() -> None:
    with pytest.raises(JaegerUnusable, match=r"no Jaeger answers .*--jaeger or CADENZA"):
        read_jaeger(refusing(), TRACE)


@pytest.mark.parametrize("url", ["127.0.0.1:16686", "file:///etc/passwd", "jaeger"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(JaegerUnusable, match="is no address"):
        read_jaeger(url, TRACE)


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, HERE),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.2:4318/v1/traces"}, HERE),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.example"}, None),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.example",
                "CADENZA_JAEGER_URL": "https://jaeger.example",
            },
            "https://jaeger.example",
        ),
    ],
)
def test_jaeger_is_where_the_environment_says_or_beside_a_collector_here(
    environment: dict[str, str], url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("CADENZA_JAEGER_URL", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert jaeger_url() == url


def test_a_page_is_below_the_address() -> None:
    assert page("http://127.0.0.1:16686/", TRACE) == f"http://127.0.0.1:16686/trace/{TRACE}"
