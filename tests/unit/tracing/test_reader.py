"""Reading a trace back from a file and from Jaeger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tracing.records import TRACE
from tracing.reader import read_file, spans_of

SPAN = "b7ad6b7169203331"


def resource_spans(**changes: Any) -> list[dict[str, Any]]:
    """Return what Jaeger's ``/api/v3/traces`` has under ``result.resourceSpans``."""
    span = {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "chat m",
        "startTimeUnixNano": "1000",
        "endTimeUnixNano": "2000",
    }
    about = [{"key": "service.name", "value": {"stringValue": "analyst"}}]
    return [
        {
            "resource": {"attributes": about},
            "scopeSpans": [{"scope": {}, "spans": [span | changes]}],
        }
    ]


def line(**changes: Any) -> str:
    return json.dumps({"resourceSpans": resource_spans(**changes)}) + "\n"


def test_what_jaeger_answers_is_read() -> None:
    pairs = [
        {"key": "n", "value": {"intValue": "7"}},
        {"key": "share", "value": {"doubleValue": 0.5}},
        {"key": "yes", "value": {"boolValue": False}},
        {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "x"}]}}},
        {"key": "empty", "value": {"arrayValue": {}}},
    ]
    [span] = spans_of(
        resource_spans(
            attributes=pairs,
            parentSpanId="00F067AA0BA902B7",
            links=[{"traceId": TRACE, "spanId": "00F067AA0BA902B7"}],
            status={"code": "STATUS_CODE_ERROR", "message": "no answer"},
        )
    )
    assert span.attributes == {"n": 7, "share": 0.5, "yes": False, "list": ["x"], "empty": []}
    assert (span.service, span.start_ns, span.end_ns) == ("analyst", 1000, 2000)
    assert span.parent_id == span.links[0] == "00f067aa0ba902b7"
    assert span.error == "no answer"


@pytest.mark.parametrize(("code", "error"), [(2, ""), (1, None), (0, None)])
def test_only_an_error_is_an_error(code: int, error: str | None) -> None:
    [span] = spans_of(resource_spans(status={"code": code}))
    assert span.error == error


def test_other_traces_in_the_file_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    linked = line(traceId="f" * 32, links=[{"traceId": TRACE, "spanId": SPAN}])
    file.write_text(line() + line(traceId="e" * 32) + linked)
    assert [span.span_id for span in read_file(file, TRACE)] == [SPAN]


def test_lines_that_are_not_whole_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    whole = line()
    file.write_bytes(
        whole[:60].encode()
        + b"\n"
        + f'"{TRACE}"\n[{{"traceId":"{TRACE}"}}]\n'.encode()
        + whole.encode()
        + whole[:-20].encode()
        + b"\xe6"
    )
    assert len(read_file(file, TRACE)) == 1


def test_a_span_exported_twice_counts_once_and_the_last_word_counts(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(line(name="lost") + line(name="found"))
    assert [span.name for span in read_file(file, TRACE)] == ["found"]


def test_fields_that_are_empty_may_be_absent() -> None:
    # OTLP JSON leaves defaults out, and so does Jaeger.
    bare: list[dict[str, Any]] = [
        {"scopeSpans": [{"spans": [{"traceId": TRACE, "spanId": SPAN}]}]},
        {"resource": {}},
    ]
    [span] = spans_of(bare)
    assert (span.name, span.service, span.parent_id, span.end_ns) == ("", "", "", 0)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none.jsonl", TRACE)


@pytest.mark.parametrize(
    ("said", "kind"),
    [(3, "client"), ("SPAN_KIND_CONSUMER", "consumer"), (0, "internal"), (9, "internal")],
)
def test_kinds_are_read_as_numbers_and_as_names(said: object, kind: str) -> None:
    [span] = spans_of(resource_spans(kind=said))
    assert span.kind == kind
