"""Faults planted in the rules, the store and the drivers are found, each within some seeds."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator import endings, joins, rules, spawning, waits
from orchestrator.decision import Decision
from orchestrator.state import TERMINAL, RunState, Subtask
from tests.simulation.play import MODES, play
from tests.simulation.world import Mode

SEEDS = 600
STEP = 20


def violations(
    like: str, *, switches: tuple[str, ...] = (), in_mode: Mode | None = None
) -> list[str]:
    """Play seeds until a violation is found that reads like this; return what was found."""
    found: list[str] = []
    for first in range(0, SEEDS, STEP):
        found += play(range(first, first + STEP), switches=switches, in_mode=in_mode).violations
        if any(like in line for line in found):
            return []
    return found[:5] or ["nothing"]


@pytest.mark.parametrize(
    ("switch", "like"),
    [
        ("lease from dispatch", "expired though nobody had claimed it"),
        ("expiry not in commit", "expired though its lease was not past"),
        ("watermark maximum", "events never published"),
        ("inbox left", "0 final events"),
        ("no announcement", "stood still"),
        ("stale view", "stood still"),
        ("no fence", "times"),
        ("no budget", "model calls of"),
    ],
)
def test_a_fault_planted_in_the_store_or_the_sweeper_is_found(switch: str, like: str) -> None:
    assert not violations(like, switches=(switch,))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("switch", ["lost acknowledgement", "double dispatch", "dropped spawn"])
def test_a_fault_planted_in_one_driver_makes_the_canonical_ledgers_differ(
    switch: str, mode: Mode
) -> None:
    assert not violations(f"{mode}: another canonical ledger", switches=(switch,), in_mode=mode)


def _any_attempt(d: Decision, subtask_id: str, attempt: int) -> Subtask | None:
    sub: Subtask | None = d.state.subtasks.get(subtask_id)
    return sub if sub is not None and sub.status not in TERMINAL else None


def _react_with_attempt(d: Decision, origin_id: str, finding: Any, **data: Any) -> None:
    origin = data["origin"]
    attempt = "" if origin is None else f"@{origin.attempt}"
    _react(d, origin_id + attempt, finding, **data)


_react = spawning.react
_can_run = joins.can_run


def _all_must_run(d: Decision, sub: Subtask) -> bool:
    dead = [d.state.subtasks[dep].status for dep in sub.after]
    return not any(status in TERMINAL and status != "completed" for status in dead)


def _nothing(*args: Any) -> None:
    """Do nothing."""


def _roots(state: RunState) -> list[str]:
    subs = state.subtasks.values()
    return sorted(s.id for s in subs if s.parent is None and s.status not in TERMINAL)


@pytest.mark.parametrize(
    ("module", "name", "planted", "like"),
    [
        (rules, "current", _any_attempt, "outcome of"),
        (spawning, "react", _react_with_attempt, "another canonical ledger"),
        (waits, "met", lambda status: status == "completed", "stood still"),
        (endings, "parent_waits", lambda sub: False, "replans though its parent waits"),
        (spawning, "may_trigger", lambda sub: True, "triggered after the synthesis began"),
        (spawning, "may_hand_off", lambda sub: True, "handed off, but writes the answer"),
        (endings, "living", _roots, "though the run is ending"),
        (endings, "cancel_children", _nothing, "does not wait"),
        (joins, "can_run", _all_must_run, "superseded while it could run"),
        (joins, "drop_if_unneeded", _nothing, "runs on though nobody needs it"),
        (endings, "supersede", _nothing, "can never run"),
    ],
)
def test_a_rule_planted_the_wrong_way_is_found(
    module: Any, name: str, planted: Any, like: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, planted)
    assert not violations(like)
