"""Places in a trace, live spans, and what is current."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace

from tracing.spans import Span, TraceContext, current, new_trace_context, parse_traceparent

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def test_a_traceparent_reads_back() -> None:
    place = new_trace_context()
    assert parse_traceparent(place.traceparent) == place


def test_the_sampled_flag_travels() -> None:
    place = new_trace_context(sampled=False)
    assert place.traceparent.endswith("-00")
    assert parse_traceparent(place.traceparent) == place
    assert place.child("x").sampled is False


def test_a_later_version_may_append_fields() -> None:
    place = parse_traceparent(f"cc-{TRACE}-{SPAN}-01-what-the-future-brings")
    assert place == TraceContext(TRACE, SPAN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        f"00-{TRACE}-{SPAN}",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-extra",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"00-+{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE[:10]}_{TRACE[11:]}-{SPAN}-01",
        f"zz-{TRACE}-{SPAN}-01",
    ],
)
def test_a_malformed_traceparent_counts_as_absent(text: str) -> None:
    assert parse_traceparent(text) is None


def test_a_child_of_a_seed_is_the_same_everywhere() -> None:
    place = new_trace_context()
    assert place.child("r/s/1") == place.child("r/s/1")
    assert place.child("r/s/1") != place.child("r/s/2")
    assert place.child() != place.child()


def test_what_is_unknown_is_left_out() -> None:
    span = Span("chat m", "a", new_trace_context(), None)
    span.set({"cost": None, "tokens": 0})
    assert span.attributes == {"tokens": 0}


def test_ending_again_changes_nothing() -> None:
    span = Span("chat m", "a", new_trace_context(), None)
    span.end()
    first = span.end_s
    span.end()
    assert span.end_s == first


def test_a_current_span_is_the_parent_of_the_users_own_and_is_then_restored() -> None:
    outer, inner = new_trace_context(), new_trace_context()
    with current(outer):
        with current(inner):
            assert trace.get_current_span().get_span_context().span_id == int(inner.span_id, 16)
        assert trace.get_current_span().get_span_context().span_id == int(outer.span_id, 16)
    assert not trace.get_current_span().get_span_context().is_valid


async def _stream(place: TraceContext) -> AsyncIterator[int]:
    with current(place):
        yield 1
        yield 2


@pytest.mark.parametrize("inherits", [True, False])
async def test_a_stream_closed_by_another_task_logs_no_error(
    caplog: pytest.LogCaptureFixture, inherits: bool
) -> None:
    # OpenTelemetry logs "was created in a different Context" when a token is reset elsewhere. A
    # task made while the block is open inherits its context, yet the token is not its own.
    before = otel_context.get_current()
    stream = _stream(new_trace_context())

    async def first() -> int:
        return await anext(stream)

    assert await (first() if inherits else asyncio.create_task(first())) == 1
    with caplog.at_level(logging.DEBUG):
        await asyncio.create_task(stream.aclose())  # type: ignore[attr-defined] # a generator
    assert [record.getMessage() for record in caplog.records if record.name != "asyncio"] == []
    otel_context.attach(before)
