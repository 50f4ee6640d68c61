"""What must be true of every ledger, whatever raced in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator.state import FINAL_EVENTS, TERMINAL, Event

_ENDS = frozenset(f"subtask.{status}" for status in TERMINAL)
_OUTCOMES = frozenset({"subtask.completed", "subtask.parked", "subtask.retry_scheduled"})
_AFTER_FINAL = frozenset({"attempt.ended_late"})


def broken_rules(ledger: Sequence[Event]) -> list[str]:
    """Return the invariants that do not hold of an ended run's ledger."""
    return [
        *_order(ledger),
        *_final(ledger),
        *_subtasks(ledger),
        *_attempts(ledger),
        *_inputs(ledger),
    ]


def _order(ledger: Sequence[Event]) -> Iterator[str]:
    if [event.seq for event in ledger] != list(range(1, len(ledger) + 1)):
        yield "the ledger has gaps"
    if not ledger or ledger[0].type != "run.submitted":
        yield "the ledger does not begin with run.submitted"


def _final(ledger: Sequence[Event]) -> Iterator[str]:
    finals = [i for i, event in enumerate(ledger) if event.type in FINAL_EVENTS]
    if len(finals) != 1:
        yield f"{len(finals)} final events"
        return
    late = {event.type for event in ledger[finals[0] + 1 :]} - _AFTER_FINAL
    if late:
        yield f"after the final event: {sorted(late)}"
    alive: set[str] = set()
    for event in ledger[: finals[0]]:
        if event.type == "subtask.spawned":
            alive.add(event.data["subtask"])
        elif event.type in _ENDS:
            alive.discard(event.data["subtask"])
    if alive:
        yield f"the run ended before {sorted(alive)}"


def _subtasks(ledger: Sequence[Event]) -> Iterator[str]:
    spawned = Counter(e.data["subtask"] for e in ledger if e.type == "subtask.spawned")
    ended = Counter(e.data["subtask"] for e in ledger if e.type in _ENDS)
    for name, n in spawned.items():
        if n > 1:
            yield f"{name} was spawned {n} times"
        if ended[name] != 1:
            yield f"{name} ended {ended[name]} times"
    for name in ended.keys() - spawned.keys():
        yield f"{name} ended and was never spawned"


def _attempts(ledger: Sequence[Event]) -> Iterator[str]:
    last: Counter[str] = Counter()
    for event in ledger:
        name, attempt = event.data.get("subtask", ""), event.data.get("attempt")
        if event.type == "subtask.dispatched":
            if attempt != last[name] + 1:
                yield f"{name} was dispatched as attempt {attempt} after {last[name]}"
            last[name] = attempt or 0
        elif event.type in _OUTCOMES and attempt != last[name]:
            yield f"{event.type} of {name} is of attempt {attempt}, not {last[name]}"


def _inputs(ledger: Sequence[Event]) -> Iterator[str]:
    asked = Counter(e.data["input"] for e in ledger if e.type == "input.requested")
    given = Counter(e.data["input"] for e in ledger if e.type == "input.provided")
    for name, n in (asked | given).items():
        if n > 1:
            yield f"input {name} was asked or answered {n} times"
    for name in given.keys() - asked.keys():
        yield f"input {name} was answered and never asked"
