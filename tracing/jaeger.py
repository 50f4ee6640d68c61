"""Jaeger: where its pages and its query API are, and reading a trace from it."""

from __future__ import annotations

import json
import os
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from tracing.reader import SpanRecord, spans_of

HERE = "http://127.0.0.1:16686"
TIMEOUT_S = 5.0
_URL = "CADENZA_JAEGER_URL"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PAGES = "give the address of Jaeger's pages, not of its OTLP receiver"


class JaegerUnusable(Exception):
    """Jaeger cannot be asked."""


def collector() -> str | None:
    """Return where spans are sent by OTLP, or None when they go to a file."""
    return next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)


def jaeger_url() -> str | None:
    """Return where Jaeger is: as the environment says, or here if the collector is here too."""
    if os.environ.get(_URL):
        return os.environ[_URL]
    host = urlsplit(collector() or "").hostname or ""
    return HERE if host in ("localhost", "::1") or host.startswith("127.") else None


def page(url: str, trace_id: str) -> str:
    """Return the address of a trace's page."""
    return f"{url.rstrip('/')}/trace/{trace_id}"


def read_jaeger(url: str, trace_id: str) -> list[SpanRecord]:
    """Return the spans of a trace that Jaeger has so far; none when it does not know the trace.

    It asks over the network: call it off the event loop.

    Args:
        url: Where Jaeger's pages and query API are, for example ``http://127.0.0.1:16686``.
        trace_id: 32 hex digits.

    Raises:
        JaegerUnusable: Nobody answers there, or it is not Jaeger.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise JaegerUnusable(f"{url!r} is no address of Jaeger; give one like {HERE}")
    place = f"{url.rstrip('/')}/api/v3/traces/{trace_id}"
    try:
        with urlopen(place, timeout=TIMEOUT_S) as answer:  # noqa: S310  # the scheme was looked at
            spans = list(spans_of(json.load(answer)["result"]["resourceSpans"]))
    except HTTPError as exc:
        with exc:
            said = exc.read()
        if exc.code == 404 and said.startswith(b"{"):  # others than Jaeger answer with words
            return []
        raise JaegerUnusable(f"{exc.code} {exc.reason} was answered at {place}; {_PAGES}") from exc
    except (OSError, HTTPException) as exc:
        why = getattr(exc, "reason", None) or exc
        hint = f"start it, or name another address with --jaeger or {_URL}"
        raise JaegerUnusable(f"no Jaeger answers at {url}: {why}; {hint}") from exc
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise JaegerUnusable(f"what answers at {place} is not Jaeger; {_PAGES}") from exc
    return list({span.span_id: span for span in spans}.values())
