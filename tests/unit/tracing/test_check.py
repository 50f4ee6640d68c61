"""A whole trace has no findings; each planted fault is found, and alone."""

from __future__ import annotations

import pytest

from tests.unit.tracing.records import record
from tracing.check import check
from tracing.reader import SpanRecord


def whole() -> list[SpanRecord]:
    return [
        record("root", name="invoke_workflow stock", lasts=5.0),
        record("att1", "root", "invoke_agent analyst", service="analyst", lasts=3.0),
        record("chat", "att1", "chat m", service="analyst", lasts=2.0),
        record("att2", "root", "invoke_agent writer", service="writer", links=("att1",)),
    ]


def test_a_whole_trace_has_no_findings() -> None:
    assert check(whole(), run="r1", services=["analyst", "writer"]) == []


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (record("more", lasts=1.0), "2 roots"),
        (record("lost", "gone"), "no parent gone"),
        (record("join", "root", links=("gone",)), "links to gone"),
        (record("late", "root", lasts=-1.0), "ends before it starts"),
        (record("open", "root", lasts=None), "never ended"),
        (record("other", "root", attributes={"cadenza.run": "r2"}), "of run 'r2', not 'r1'"),
        (record("none", "root", attributes={"cadenza.run": None}), "of run None"),
        (record("far", "root", trace_id="f" * 32), "2 traces"),
    ],
)
def test_each_planted_fault_is_the_one_finding(fault: SpanRecord, says: str) -> None:
    [finding] = check([*whole(), fault], run="r1")
    assert says in finding


def test_a_trace_without_its_root_says_so() -> None:
    findings = check(whole()[1:], run="r1")
    assert any("0 roots" in finding for finding in findings)


def test_a_trace_without_spans_says_so() -> None:
    assert check([], run="r1") == ["the trace has no spans"]


def test_an_agent_without_a_span_is_named() -> None:
    [finding] = check(whole(), run="r1", services=["analyst", "judge"])
    assert "judge" in finding
    assert "analyst" not in finding


def test_a_root_that_never_ended_is_found() -> None:
    spans = [record("root", lasts=None), *whole()[1:]]
    [finding] = check(spans, run="r1")
    assert "never ended" in finding
