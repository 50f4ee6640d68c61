"""Random runs under faults, in both modes, keep every rule."""

from __future__ import annotations

import pytest

from tests.simulation.play import play

SEEDS = 1_000
CHUNK = 50
LONG_SEEDS = 10_000


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_schedule_breaks_a_rule_and_all_modes_give_the_same_ledger(first: int) -> None:
    report = play(range(first, first + CHUNK))
    assert not report.violations, report
    assert report.count["runs"] == 2 * CHUNK
    assert report.count["comparisons"] == CHUNK


@pytest.mark.heavy
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + LONG_SEEDS, 2 * CHUNK))
def test_no_schedule_of_twenty_thousand_breaks_a_rule(first: int) -> None:
    report = play(range(first, first + 2 * CHUNK))
    assert not report.violations, report


def test_the_schedules_contain_what_can_go_wrong() -> None:
    count = play(range(120)).count
    for what in (
        "answers",
        "claims refused",
        "crashes",
        "crashes before publishing",
        "finish fenced",
        "freezes",
        "gate cancelled",
        "gate fenced",
        "gate over_budget",
        "lost compare-and-sets",
        "messages duplicated",
        "messages lost",
        "model calls replayed",
        "replans",
        "resends",
        "run.cancelled",
        "run.completed",
        "run.failed",
        "run.over_budget",
        "run.stalled",
    ):
        assert count[what] > 0, what


def test_a_seed_plays_the_same_again() -> None:
    assert play(range(20)).count == play(range(20)).count
