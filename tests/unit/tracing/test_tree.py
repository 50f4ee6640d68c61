"""The tree of a trace as text."""

from __future__ import annotations

from tests.unit.tracing.records import record
from tracing.tree import draw


def test_children_stand_under_their_parent_in_the_order_they_started() -> None:
    spans = [
        record("c", "a", "execute_tool sql", at=3, lasts=0.25),
        record("b", "a", "chat m", at=2, lasts=0.5),
        record("root", "", "invoke_workflow stock", lasts=5),
        record("d", "root", "invoke_agent writer", service="writer", at=4),
        record("a", "root", "invoke_agent analyst", service="analyst", at=1, lasts=2.5),
    ]
    assert draw(spans) == [
        "invoke_workflow stock  [stock]  5.00 s",
        "├─ invoke_agent analyst  [analyst]  2.50 s",
        "│  ├─ chat m  [stock]  500.0 ms",
        "│  └─ execute_tool sql  [stock]  250.0 ms",
        "└─ invoke_agent writer  [writer]  1.00 s",
    ]


def test_a_line_tells_tokens_cost_attempt_stop_reason_and_error() -> None:
    about = {
        "gen_ai.operation.name": "invoke_agent",
        "cadenza.total.input_tokens": 12_345,
        "cadenza.total.output_tokens": 67,
        "cadenza.total.cost_usd": 0.0123,
        "cadenza.attempt": 2,
        "cadenza.stop_reason": "budget",
        "error.type": "over_budget",
    }
    [line] = draw([record("a", name="invoke_agent a", attributes=about, error="no money left")])
    for part in ("12,345→67 tokens", "$0.0123", "attempt 2", "(budget)"):
        assert part in line
    assert line.endswith("ERROR over_budget: no money left")


def test_what_is_unknown_is_not_told() -> None:
    [line] = draw([record("a", name="chat m")])
    assert "tokens" not in line
    assert "$" not in line


def test_no_sibling_is_hidden() -> None:
    spans = [record("root"), *(record(f"s{n}", "root", at=n) for n in range(500))]
    assert len(draw(spans)) == 501


def test_a_span_without_its_parent_stands_at_the_top_and_says_so() -> None:
    lines = draw([record("root"), record("lost", "gone", "chat m", at=1)])
    assert lines[1] == "chat m  [stock]  1.00 s (its parent is missing)"


def test_a_span_that_never_ended_says_so() -> None:
    assert draw([record("a", lasts=None)]) == ["a  [stock]  never ended"]


def test_text_from_outside_cannot_break_a_line_or_steer_the_terminal() -> None:
    # An error's text comes from servers and tools; an escape sequence would run in the terminal.
    [line] = draw([record("a", name="chat m", error="no\nanswer \x1b[2J\x9b31m 東京")])
    assert line.isprintable()
    assert "no answer" in line
    assert "東京" in line
