"""A whole trace has no findings; each planted fault is found, and alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.tracing.records import record
from tracing.attributes import ATTEMPT, OPERATION, SUBTASK
from tracing.check import Expected, check
from tracing.reader import SpanRecord


def whole() -> list[SpanRecord]:
    return [
        record("root", name="invoke_workflow stock", lasts=5.0),
        record("att1", "root", "invoke_agent analyst", service="analyst", lasts=3.0),
        record("chat", "att1", "chat m", service="analyst", lasts=2.0),
        record("att2", "root", "invoke_agent writer", service="writer", links=("att1",)),
    ]


def test_a_whole_trace_has_no_findings() -> None:
    assert check(whole(), Expected("r1", frozenset({"analyst", "writer"}))) == []


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
    [finding] = check([*whole(), fault], Expected("r1"))
    assert says in finding


def test_a_trace_without_its_root_says_so() -> None:
    findings = check(whole()[1:], Expected("r1"))
    assert any("0 roots" in finding for finding in findings)


def test_a_trace_without_spans_says_so() -> None:
    assert check([], Expected("r1")) == ["the trace has no spans"]


def test_an_agent_without_a_span_is_named() -> None:
    [finding] = check(whole(), Expected("r1", frozenset({"analyst", "judge"})))
    assert "judge" in finding
    assert "analyst" not in finding


def test_a_root_that_never_ended_is_found() -> None:
    spans = [record("root", lasts=None), *whole()[1:]]
    [finding] = check(spans, Expected("r1"))
    assert "never ended" in finding


def agent(span_id: str, subtask: str, attempt: int, **more: Any) -> SpanRecord:
    about = {OPERATION: "invoke_agent", SUBTASK: subtask, ATTEMPT: attempt}
    return record(span_id, "root", f"invoke_agent {subtask}", attributes=about, **more)


def call(span_id: str, operation: str, error: str | None = None) -> SpanRecord:
    about = {OPERATION: operation, SUBTASK: "a"}
    return record(span_id, "root", operation, attributes=about, error=error)


ROOT = record("root")
TOLD = Expected(
    "r1",
    attempts=frozenset({("a", 1), ("a", 2)}),
    delegations=frozenset({("a", 1), ("a", 2)}),
    open=frozenset({("b", 1)}),
    calls={("a", "chat"): (2, False), ("a", "execute_tool"): (1, True)},
)
COUNTED = [
    ROOT,
    agent("one", "a", 1),
    agent("two", "a", 2),
    agent("sent1", "a", 1, kind="client"),
    agent("sent2", "a", 2, kind="client"),
    call("chat1", "chat"),
    call("chat2", "chat"),
    call("tool1", "execute_tool", "failed"),
]


def test_as_many_spans_as_the_ledger_says_have_no_findings() -> None:
    assert check(COUNTED, TOLD) == []
    more = [agent("three", "b", 1), call("tool2", "execute_tool"), call("chat3", "chat", "no")]
    assert check([*COUNTED, *more], TOLD) == []


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        ("two", "attempt 2 of 'a' has no span"),
        ("sent1", "delegation 1 of 'a' has no span"),
        ("chat2", "'a' has 1 spans of chat, and 2 in its journal"),
        ("tool1", "'a' has 0 spans of execute_tool, and 1 in its journal"),
    ],
)
def test_a_span_too_few_is_the_one_finding(lost: str, says: str) -> None:
    assert check([span for span in COUNTED if span.span_id != lost], TOLD) == [says]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (agent("again", "a", 1), "attempt 1 of 'a' has 2 spans"),
        (agent("other", "a", 3), "attempt 3 of 'a' has a span, and is not in the ledger"),
        (agent("other", "b", 1, kind="client"), "delegation 1 of 'b' has a span, and is not"),
        (call("chat3", "chat"), "'a' has 3 spans of chat, and 2 in its journal"),
    ],
)
def test_a_span_too_many_is_the_one_finding(more: SpanRecord, says: str) -> None:
    [finding] = check([*COUNTED, more], TOLD)
    assert finding.startswith(says)
