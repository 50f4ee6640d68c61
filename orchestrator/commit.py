"""From facts to one transaction: the pure half of ``advance``.

``plan_commit`` decides a batch of facts and says what the store must write, and what must still
be true when it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.facts import Dispatched, Expired, Fact, Revoked, TimerFired, TimerKind, Unroutable
from orchestrator.rules import decide, ready
from orchestrator.state import FINAL_EVENTS, Event, RunState, evolve

AttemptState = Literal["ready", "sent", "claimed", "closed"]


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt row that is not closed.

    Attributes:
        subtask: Subtask id.
        attempt: Attempt number.
        agent: Agent name.
        state: ready (undispatched), sent (unclaimed) or claimed.
        lapsed: Claimed, and its lease is past.
        unserved: Ready or sent for longer than the grace, and no live worker serves the agent.
    """

    subtask: str
    attempt: int
    agent: str
    state: AttemptState
    lapsed: bool = False
    unserved: bool = False


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer row; see ``TimerFired``."""

    kind: TimerKind
    key: str
    attempt: int
    at: float


@dataclass(frozen=True, slots=True)
class Batch:
    """What a run has to decide, read at one moment.

    Attributes:
        time: Store time, seconds since the epoch.
        inbox: Row id and fact, in order of arrival.
        timers: Timers that are due.
        attempts: Attempt rows that are not closed.
    """

    time: float
    inbox: Sequence[tuple[int, Fact]] = ()
    timers: Sequence[Timer] = ()
    attempts: Sequence[OpenAttempt] = ()


@dataclass(slots=True)
class Commit:
    """One transaction; void unless ``expected_seq`` and the guards hold in it.

    Attributes:
        run: Run id.
        expected_seq: The ledger's last seq that the decision saw (compare-and-set).
        time: Store time.
        events: To append, ``seq`` from ``expected_seq + 1``.
        inbox: Row ids taken.
        fired: Timers taken.
        timers: Timers to set.
        announced: Attempts that became ready: subtask, attempt, agent.
        sent: Attempts dispatched.
        closed: Attempts closed.
        cancelled: Claimed attempts that are to stop.
        still_lapsed: Attempts whose lease must still be past.
        still_unclaimed: Attempts that must still be unclaimed.
        still_unserved: Agents that must still have no live worker.
        final: The final event's kind, or None.
    """

    run: str
    expected_seq: int
    time: float
    events: list[Event] = field(default_factory=list)
    inbox: list[int] = field(default_factory=list)
    fired: list[Timer] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    announced: list[tuple[str, int, str]] = field(default_factory=list)
    sent: list[tuple[str, int]] = field(default_factory=list)
    closed: list[tuple[str, int]] = field(default_factory=list)
    cancelled: list[tuple[str, int]] = field(default_factory=list)
    still_lapsed: list[tuple[str, int]] = field(default_factory=list)
    still_unclaimed: list[tuple[str, int]] = field(default_factory=list)
    still_unserved: list[str] = field(default_factory=list)
    final: str | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.events or self.inbox or self.fired)


def plan_commit(
    state: RunState, batch: Batch, *, proposals: Sequence[Fact] = (), dispatch: bool
) -> Commit:
    """Decide a batch and say what to write.

    Args:
        state: The run, folded up to its last seq; not changed.
        batch: What the store holds for it.
        proposals: Further facts, for example a dispatch that an agent proposes.
        dispatch: Whether to dispatch all that is ready (the orchestrator does).
    """
    commit = Commit(state.run, state.seq, batch.time)
    work = state.draft()
    planner = _Planner(commit, work, batch)
    for row, fact in batch.inbox:
        commit.inbox.append(row)
        planner.take(fact)
    for timer in batch.timers:
        commit.fired.append(timer)
        planner.take(TimerFired(batch.time, timer.kind, timer.key, timer.attempt))
    for row_ in batch.attempts:
        planner.take_attempt(row_)
    for fact in proposals:
        planner.take(fact)
    if dispatch:
        for subtask, attempt in ready(work):
            planner.take(Dispatched(batch.time, subtask, attempt))
    planner.revoke()
    return commit


class _Planner:
    def __init__(self, commit: Commit, work: RunState, batch: Batch) -> None:
        self._commit = commit
        self._work = work
        self._time = batch.time
        self._unclaimed = {(a.subtask, a.attempt) for a in batch.attempts if a.state == "sent"}
        self._new: set[tuple[str, int]] = set()

    def take(self, fact: Fact) -> bool:
        """Decide one fact; return whether anything followed."""
        events = decide(self._work, fact)
        for event in events:
            self._project(event)
            evolve(self._work, event)
        self._commit.events.extend(events)
        return bool(events)

    def take_attempt(self, row: OpenAttempt) -> None:
        """Decide what time did to an attempt."""
        where = (row.subtask, row.attempt)
        if row.lapsed and self.take(Expired(self._time, *where)):
            self._commit.still_lapsed.append(where)
        elif row.unserved and self.take(Unroutable(self._time, *where, row.agent)):
            self._commit.still_unserved.append(row.agent)
            if row.state == "sent":
                self._commit.still_unclaimed.append(where)

    def revoke(self) -> None:
        """Cancel at once those attempts that are to stop and that nobody claimed."""
        asked = True
        while asked:
            asked = False
            for where in sorted(self._unclaimed | self._new):
                sub = self._work.subtasks.get(where[0])
                if sub is None or not sub.cancelling:
                    continue
                if self.take(Revoked(self._time, *where)):
                    asked = True
                    if where in self._unclaimed:
                        self._commit.still_unclaimed.append(where)

    def _project(self, event: Event) -> None:
        commit, data = self._commit, event.data
        match event.type:
            case "subtask.ready":
                sub = self._work.subtasks[data["subtask"]]
                self._close(sub.id)
                commit.announced.append((sub.id, sub.attempt + 1, sub.agent))
            case "subtask.dispatched":
                commit.sent.append((data["subtask"], data["attempt"]))
                self._new.add((data["subtask"], data["attempt"]))
            case "subtask.cancel_requested":
                commit.cancelled.append((data["subtask"], data["attempt"]))
            case "subtask.retry_scheduled" | "subtask.parked":
                self._close(data["subtask"])
            case (
                "subtask.completed" | "subtask.failed" | "subtask.cancelled" | "subtask.superseded"
            ):
                self._close(data["subtask"])
        commit.timers.extend(_timers(event))
        if event.type in FINAL_EVENTS:
            commit.final = event.type.removeprefix("run.")

    def _close(self, subtask_id: str) -> None:
        sub = self._work.subtasks[subtask_id]
        attempt = sub.attempt + (sub.status == "ready")
        if sub.status in ("open", "ready") and attempt:
            self._commit.closed.append((sub.id, attempt))


def _timers(event: Event) -> Iterable[Timer]:
    data: dict[str, Any] = event.data
    match event.type:
        case "run.submitted":
            yield Timer("wall", "", 0, data["wall_at"])
        case "subtask.spawned" if data.get("deadline_at") is not None:
            yield Timer("join", data["subtask"], 0, data["deadline_at"])
        case "subtask.retry_scheduled":
            yield Timer("retry", data["subtask"], data["attempt"], data["at"])
        case "subtask.parked" if data.get("until_at") is not None:
            yield Timer("until", data["subtask"], data["attempt"], data["until_at"])
        case "input.requested":
            yield Timer("input", data["input"], data["attempt"], data["expires_at"])
