"""A run without store, bus and time: facts in, events out."""

from __future__ import annotations

import copy
from typing import Any

from agents.outcome import Completed, Failed, Finding, Outcome, Parked, PlannedSubtask
from orchestrator.facts import (
    Answered,
    CancelAsked,
    Dispatched,
    Ended,
    Expired,
    Fact,
    Revoked,
    Submitted,
    TimerFired,
    TimerKind,
    Unroutable,
)
from orchestrator.rules import decide, ready
from orchestrator.shape import Limits, RunShape
from orchestrator.state import Event, RunState, evolve

NAMES = ("a", "b", "c", "planner", "writer")


def shape(
    *plan: PlannedSubtask,
    planner: bool = False,
    synthesizer: bool = False,
    reacts: dict[str, tuple[str, ...]] | None = None,
    **limits: Any,
) -> RunShape:
    """Return a pipeline of the agents ``a``, ``b`` and ``c``."""
    return RunShape(
        {name: (reacts or {}).get(name, ()) for name in NAMES},
        planner="planner" if planner else None,
        plan=plan,
        synthesizer="writer" if synthesizer else None,
        limits=Limits(**limits),
    )


def planned(name: str, *after: str, agent: str = "a", **data: Any) -> PlannedSubtask:
    """Return one subtask of a plan."""
    return PlannedSubtask(name, agent, f"do {name}", after, **data)


def done(*findings: str, spawns: tuple[PlannedSubtask, ...] = ()) -> Completed:
    """Return an answer that reports findings of these kinds."""
    return Completed(None, tuple(Finding(kind, None) for kind in findings), spawns)


BROKEN = Failed("broken", "it never works")
FLAKY = Failed("flaky", "try again", retryable=True)


class Ledger:
    """One run, driven by hand.

    Attributes:
        state: The run.
        events: All that was decided.
    """

    def __init__(self, shape: RunShape) -> None:
        self.state = RunState()
        self.events: list[Event] = []
        self.time = 0.0
        self.take(Submitted(0.0, "r", shape, "the task", {}))

    def take(self, fact: Fact) -> list[str]:
        """Decide one fact, append, and return the types of what followed."""
        before = copy.deepcopy(self.state)
        events = decide(self.state, fact)
        assert self.state == before, "decide changed the state"
        assert decide(self.state, fact) == events, "decide is not deterministic"
        for event in events:
            placed = Event(event.type, event.data, len(self.events) + 1, event.time)
            self.events.append(placed)
            evolve(self.state, placed)
        return [event.type for event in events]

    def status(self, subtask: str) -> str:
        """Return a subtask's status."""
        return self.state.subtasks[subtask].status

    def begin(self, *subtasks: str) -> None:
        """Dispatch ready subtasks."""
        attempts = dict(ready(self.state))
        for subtask in subtasks:
            self.take(Dispatched(self.time, subtask, attempts[subtask]))

    def end(self, subtask: str, outcome: Outcome | None = None) -> list[str]:
        """Dispatch a subtask unless it is open, and end its attempt."""
        if self.status(subtask) == "ready":
            self.begin(subtask)
        attempt = self.state.subtasks[subtask].attempt
        return self.ended(subtask, attempt, outcome)

    def ended(self, subtask: str, attempt: int, outcome: Outcome | None = None) -> list[str]:
        """Report the outcome of any attempt."""
        outcome = outcome or done()
        output = f"output of {subtask}" if isinstance(outcome, Completed) else None
        return self.take(Ended(self.time, subtask, attempt, outcome, output, "w"))

    def park(self, subtask: str, **data: Any) -> list[str]:
        """Park a subtask's attempt."""
        return self.end(subtask, Parked(**data))

    def expire(self, subtask: str) -> list[str]:
        """Let the lease of the open attempt run out."""
        return self.take(Expired(self.time, subtask, self.state.subtasks[subtask].attempt))

    def revoke(self, subtask: str) -> list[str]:
        """Say that the open attempt was not claimed."""
        return self.take(Revoked(self.time, subtask, self.state.subtasks[subtask].attempt))

    def unroutable(self, subtask: str) -> list[str]:
        """Say that nobody serves the agent."""
        sub = self.state.subtasks[subtask]
        attempt = sub.attempt + (sub.status == "ready")
        return self.take(Unroutable(self.time, subtask, attempt, sub.agent))

    def fire(self, kind: TimerKind, key: str = "", attempt: int = 0) -> list[str]:
        """Let a timer be due."""
        return self.take(TimerFired(self.time, kind, key, attempt))

    def retry(self, subtask: str) -> None:
        """Let the pause before a retry be over."""
        self.fire("retry", subtask, self.state.subtasks[subtask].attempt)

    def answer(self, answered: Answered) -> list[str]:
        """Bring a person's answer."""
        return self.take(answered)

    def cancel(self) -> list[str]:
        """Ask to cancel the run."""
        return self.take(CancelAsked(self.time, "changed my mind"))

    def data(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of all events of a type."""
        return [event.data for event in self.events if event.type == kind]
