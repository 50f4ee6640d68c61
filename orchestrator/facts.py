"""Facts: what happened and was reported; the input of the rules.

A fact carries the run store's time, so that the rules need no clock. Who brings which fact:
submission, answer and cancel come through the run's inbox; outcomes come from workers; dispatches
are proposed by whoever takes the next step; time comes from timer and attempt rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from agents.assignment import Answer
from agents.outcome import Outcome
from orchestrator.shape import RunShape

TimerKind = Literal["retry", "join", "until", "input", "wall"]


@dataclass(frozen=True, slots=True)
class Submitted:
    """A run was submitted.

    Attributes:
        time: Store time, seconds since the epoch.
        run: Run id.
        shape: What the rules need of the pipeline.
        task: The task's text.
        data: What else is pinned: pipeline hash, mode, session, files, values, trace context.
    """

    time: float
    run: str
    shape: RunShape
    task: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dispatched:
    """Somebody takes the next step of a ready subtask."""

    time: float
    subtask: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt ended with an outcome.

    Attributes:
        outcome: How it ended; the output itself lies in the run store.
        output_hash: SHA-256 of the output's canonical JSON.
        worker: Who did it.
    """

    time: float
    subtask: str
    attempt: int
    outcome: Outcome
    output_hash: str | None = None
    worker: str = ""


@dataclass(frozen=True, slots=True)
class Expired:
    """A claimed attempt's lease ran out; void unless it is still past in the same commit."""

    time: float
    subtask: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Revoked:
    """An attempt that is to be cancelled was not claimed; void unless so in the same commit."""

    time: float
    subtask: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Unroutable:
    """No live worker served the agent for the grace; void unless so in the same commit."""

    time: float
    subtask: str
    attempt: int
    agent: str


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer is due.

    Attributes:
        kind: retry, join, until, input or wall.
        key: Subtask id, input id, or empty for the run.
        attempt: The attempt it was set for, or 0.
    """

    time: float
    kind: TimerKind
    key: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Somebody asked to cancel the run."""

    time: float
    reason: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A person answered an input request."""

    time: float
    input_id: str
    answer: Answer
    by: str = ""


Fact = (
    Submitted
    | Dispatched
    | Ended
    | Expired
    | Revoked
    | Unroutable
    | TimerFired
    | CancelAsked
    | Answered
)
