"""Reading a trace back: from OTLP JSON lines, or from what Jaeger answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """A span that was exported.

    Attributes:
        trace_id: 32 hex digits.
        span_id: 16 hex digits.
        parent_id: 16 hex digits, or empty for a root.
        name: Its name.
        service: Its ``service.name``.
        start_ns: Nanoseconds since the epoch.
        end_ns: Nanoseconds since the epoch; 0 when it was never ended.
        attributes: By name.
        links: Span ids it links to.
        error: Its error message, or None.
        kind: Its OpenTelemetry span kind, for example ``client``.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    service: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    links: tuple[str, ...] = ()
    error: str | None = None
    kind: str = "internal"


_KINDS = ("internal", "internal", "server", "client", "producer", "consumer")


def read_file(path: Path, trace_id: str) -> list[SpanRecord]:
    """Return the spans of a trace from a file of OTLP JSON lines.

    A line that is not whole (a process was killed while it wrote) is passed over. A span that was
    exported twice, by a worker thought dead and by whoever found it so, counts once: the last.

    Raises:
        FileNotFoundError: There is no such file.
    """
    found: dict[str, SpanRecord] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if trace_id not in line:
                continue
            try:
                found_here = list(spans_of(json.loads(line)["resourceSpans"]))
            except (ValueError, TypeError, KeyError, AttributeError):
                continue  # torn: what is left of a line may even be JSON, of another shape
            found |= {span.span_id: span for span in found_here if span.trace_id == trace_id}
    return list(found.values())


def spans_of(resource_spans: Iterable[Mapping[str, Any]]) -> Iterator[SpanRecord]:
    """Yield the spans of ``resourceSpans`` (OTLP JSON encoding, opentelemetry-proto)."""
    for resource in resource_spans:
        about = _attributes(resource.get("resource", {}).get("attributes", ()))
        service = str(about.get("service.name", ""))
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                yield _record(span, service)


def _record(span: Mapping[str, Any], service: str) -> SpanRecord:
    status = span.get("status", {})
    failed = status.get("code") in (2, "STATUS_CODE_ERROR")
    return SpanRecord(
        trace_id=str(span["traceId"]).lower(),
        span_id=str(span["spanId"]).lower(),
        parent_id=str(span.get("parentSpanId", "")).lower(),
        name=str(span.get("name", "")),
        service=service,
        start_ns=int(span.get("startTimeUnixNano", 0)),
        end_ns=int(span.get("endTimeUnixNano", 0)),
        attributes=_attributes(span.get("attributes", ())),
        links=tuple(str(link["spanId"]).lower() for link in span.get("links", ())),
        error=status.get("message", "") if failed else None,
        kind=_kind(span.get("kind", 0)),
    )


def _kind(said: int | str) -> str:
    if isinstance(said, str):
        return said.removeprefix("SPAN_KIND_").lower()
    return _KINDS[said] if said < len(_KINDS) else _KINDS[0]


def _attributes(pairs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _value(pair.get("value", {})) for pair in pairs}


def _value(value: Mapping[str, Any]) -> Any:
    if "intValue" in value:
        return int(value["intValue"])
    if "arrayValue" in value:
        return [_value(item) for item in value["arrayValue"].get("values", ())]
    return next(iter(value.values()), None)
