"""A cause survives its message, and chains do not nest without end."""

from __future__ import annotations

import pytest

from bus.base import Delivery
from bus.envelope import Envelope
from orchestrator.cause import MAX_NESTED_HOPS, Cause

ROOT, STEP = "00-a-root-01", "00-a-step-01"


async def _acknowledge() -> None:
    pass


def test_a_message_carries_parent_hop_and_links() -> None:
    cause = Cause(STEP, 3, "analyst", (("join", "00-a-one-01"), ("producer", "00-a-two-01")))
    envelope = Envelope(
        "m1", "cadenza.work", "/x", traceparent=cause.parent, hop=cause.hop, extra=cause.header
    )
    heard = Cause.of(Delivery("x.work.a", envelope, _acknowledge), "x.a")
    assert (heard.parent, heard.hop, heard.links) == (STEP, 3, cause.links)
    assert (heard.topic, heard.message, heard.group) == ("x.work.a", "m1", "x.a")
    assert heard.heard_s > 0


def test_a_cause_without_links_has_no_header() -> None:
    assert Cause(STEP).header == {}
    bare = Envelope("m1", "cadenza.work", "/x")
    assert Cause.of(Delivery("x.work.a", bare, _acknowledge)).links == ()


@pytest.mark.parametrize(
    ("hop", "nested", "parent"),
    [
        (0, True, STEP),
        (MAX_NESTED_HOPS, True, STEP),
        (MAX_NESTED_HOPS + 1, True, ROOT),
        (0, False, ROOT),
    ],
)
def test_a_step_hangs_from_the_step_before_or_links_to_it(
    hop: int, nested: bool, parent: str
) -> None:
    cause = Cause(STEP, hop).under(ROOT, nested=nested)
    assert cause.parent == parent
    assert cause.links == (() if parent == STEP else (("producer", STEP),))


def test_the_run_is_not_linked_as_its_own_producer() -> None:
    assert Cause(ROOT, 99).under(ROOT, nested=True).links == ()
