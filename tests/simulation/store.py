"""A run store in memory with a simulated clock: the semantics of a real one, and ways to break it.

One store holds one run. ``switches`` names what is wrong with it on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from math import inf

from agents.journal import Entry, Verdict
from orchestrator.commit import AttemptState, Batch, Commit, OpenAttempt, Timer
from orchestrator.facts import Ended, Fact
from orchestrator.shape import Limits
from orchestrator.state import Event

_MAX_RESEND_S = 60.0


@dataclass(slots=True)
class Row:
    """An attempt row."""

    subtask: str
    attempt: int
    agent: str
    state: AttemptState
    since: float
    resend_at: float
    resend_s: float = 1.0
    worker: str = ""
    lease_until: float = inf
    cancel: bool = False
    claims: int = 0


class SimStore:
    """Ledger, attempts, inbox, timers, journals, effects and the budget of one run.

    Args:
        limits: Lease and grace.
        llm_calls: The budget, or None.
        clock: Returns the time, seconds.
        last_seen: Returns when a live worker that serves an agent was last heard of.
        switches: Faults planted here.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        llm_calls: int | None,
        clock: Callable[[], float],
        last_seen: Callable[[str], float],
        switches: Container[str] = (),
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._last_seen = last_seen
        self._switches = switches
        self.events: list[Event] = []
        self.commits: list[tuple[Commit, int]] = []
        self.on_commit: Callable[[Commit], None] = lambda commit: None
        self.published = 0
        self.rows: dict[tuple[str, int], Row] = {}
        self.open: dict[tuple[str, int], Row] = {}
        self.inbox: dict[int, Fact] = {}
        self.keys: set[str] = set()
        self.timers: dict[tuple[str, str, int], Timer] = {}
        self.journals: dict[tuple[str, int], list[tuple[Entry, str]]] = {}
        self.effects: dict[str, str] = {}
        self.llm_limit = llm_calls
        self.llm_calls = 0
        self.final = False
        self.refused = 0
        self._inbox_id = 0

    # --- the ledger

    def put(self, fact: Fact, key: str | None = None) -> bool:
        """Lay a fact into the inbox; at most one of a key."""
        if key is not None and key in self.keys:
            return False
        if key is not None:
            self.keys.add(key)
        self._inbox_id += 1
        self.inbox[self._inbox_id] = fact
        return True

    def take(self) -> Batch:
        """Read what there is to decide."""
        now = self._clock()
        inbox = [(row, replace(fact, time=now)) for row, fact in self.inbox.items()]
        timers = sorted(
            (t for t in self.timers.values() if t.at <= now), key=lambda t: (t.at, t.key)
        )
        attempts = [
            OpenAttempt(
                row.subtask,
                row.attempt,
                row.agent,
                row.state,
                lapsed=self._lapsed(row, now),
                unserved=self._unserved(row, now),
            )
            for row in sorted(self.open.values(), key=lambda row: row.subtask)
        ]
        return Batch(now, inbox, timers, attempts)

    def _lapsed(self, row: Row, now: float) -> bool:
        leased = row.state == "claimed" or "lease from dispatch" in self._switches
        return leased and row.lease_until < now

    def _unserved(self, row: Row, now: float) -> bool:
        waited = row.state != "claimed" and now - row.since > self._limits.grace_s
        return waited and not self.served(row.agent)

    def served(self, agent: str) -> bool:
        """Return whether a worker that serves the agent was heard of within the grace."""
        return self._last_seen(agent) >= self._clock() - self._limits.grace_s

    def commit(self, commit: Commit) -> bool:
        """Write one decision, or nothing."""
        if not self._holds(commit):
            self.refused += 1
            return False
        first = len(self.events) + 1
        self.events += [
            Event(event.type, event.data, first + i, commit.time)
            for i, event in enumerate(commit.events)
        ]
        for row in commit.inbox:
            self.inbox.pop(row, None)
        self.on_commit(commit)
        self._write_attempts(commit)
        for timer in commit.fired:
            self.timers.pop((timer.kind, timer.key, timer.attempt), None)
        for timer in commit.timers:
            self.timers[timer.kind, timer.key, timer.attempt] = timer
        if commit.final is not None:
            self.final = True
            self.timers.clear()
        return True

    def _holds(self, commit: Commit) -> bool:
        if "fork" not in self._switches and (
            commit.expected_seq != len(self.events)
            or any(r not in self.inbox for r in commit.inbox)
        ):
            return False
        if "expiry not in commit" in self._switches:
            return True
        now = self._clock()
        lapsed = all(self._lapsed(self.rows[where], now) for where in commit.still_lapsed)
        unclaimed = all(self.rows[where].state == "sent" for where in commit.still_unclaimed)
        return lapsed and unclaimed and not any(self.served(a) for a in commit.still_unserved)

    def _write_attempts(self, commit: Commit) -> None:
        for where in commit.closed:
            self._close(where)
        closed, sent = set(commit.closed), set(commit.sent)
        for subtask, attempt, agent in commit.announced:
            where = (subtask, attempt)
            if where in self.rows:
                continue
            state: AttemptState = "closed" if where in closed else "ready"
            row = Row(subtask, attempt, agent, state, commit.time, commit.time + 1.0)
            self.rows[where] = row
            if state != "closed":
                self.open[where] = row
        for where in sent - closed:
            self._send(self.rows[where], commit.time)
        for where in commit.cancelled:
            self.rows[where].cancel = True

    def _send(self, row: Row, now: float) -> None:
        if row.state == "ready":
            row.state = "sent"
            row.resend_at, row.resend_s = now + 1.0, 1.0
            if "lease from dispatch" in self._switches:
                row.lease_until = now + self._limits.lease_s

    def _close(self, where: tuple[str, int]) -> None:
        if where in self.rows:
            self.rows[where].state = "closed"
        self.open.pop(where, None)

    def mark_published(self, start: int, end: int) -> None:
        """Move the contiguous watermark; does nothing when it is elsewhere."""
        if "watermark maximum" in self._switches:
            self.published = max(self.published, end)
        elif self.published == start:
            self.published = end

    # --- attempts and the gate

    def claim(self, subtask: str, attempt: int, worker: str) -> bool:
        """Claim a sent attempt; the lease starts now."""
        row = self.rows.get((subtask, attempt))
        if row is None or not (
            row.state == "sent" or (row.state == "claimed" and row.worker == worker)
        ):
            return False
        row.claims += row.state == "sent"
        row.state, row.worker = "claimed", worker
        row.lease_until = self._clock() + self._limits.lease_s
        return True

    def beat(self, subtask: str, attempt: int, worker: str) -> Verdict:
        """Prolong the lease; one that is to stop keeps its lease as it is."""
        row = self.rows[subtask, attempt]
        if row.state != "claimed" or row.worker != worker:
            return "fenced"
        if row.cancel:
            return "cancelled"
        row.lease_until = self._clock() + self._limits.lease_s
        return "ok"

    def record(
        self,
        where: tuple[str, int],
        worker: str,
        *,
        generation: int,
        n: int,
        entries: Sequence[Entry],
        llm_calls: int = 0,
        effects: Sequence[tuple[str, str]] = (),
    ) -> Verdict:
        """Pass the gate: the fence, then the budget, then the journal, in one transaction."""
        verdict: Verdict = "ok"
        if "no fence" not in self._switches:
            verdict = self.beat(*where, worker)
        if verdict != "ok":
            return verdict
        journal = self.journals.setdefault((where[0], generation), [])
        if n != len(journal):
            return "fenced"
        journal += [(entry, worker) for entry in entries]
        self.effects.update(effects)
        over = self.llm_limit is not None and self.llm_calls + llm_calls > self.llm_limit
        if llm_calls and over and "no budget" not in self._switches:
            return "over_budget"
        self.llm_calls += llm_calls
        return "ok"

    def finish(self, fact: Ended) -> Verdict:
        """Write an outcome as an inbox row; refused when fenced, welcome when cancelled."""
        row = self.rows[fact.subtask, fact.attempt]
        if row.state != "claimed" or row.worker != fact.worker:
            return "fenced"
        self.put(fact)
        return "ok"

    # --- sweeping

    def must_advance(self, *, orchestration: bool) -> bool:
        """Return whether the inbox, a timer, a lease or the grace asks for a decision."""
        if self.inbox and "inbox left" not in self._switches:
            return True
        now = self._clock()
        if any(timer.at <= now for timer in self.timers.values()):
            return True
        return not self.final and any(
            self._lapsed(row, now)
            or self._unserved(row, now)
            or (orchestration and row.state == "ready")
            for row in self.open.values()
        )

    def resends(self, agents: Container[str]) -> list[Row]:
        """Return unclaimed attempts that are to be sent again, and set their next resend."""
        if self.final:
            return []
        now = self._clock()
        found = []
        for row in self.open.values():
            if row.state == "claimed" or row.resend_at > now or row.agent not in agents:
                continue
            row.resend_s = min(row.resend_s * 2, _MAX_RESEND_S)
            row.resend_at = now + row.resend_s
            found.append(row)
        return found

    def next_due(self) -> float:
        """Return when a sweep may find something; the past when it would now."""
        if self.inbox or self.published < len(self.events):
            return 0.0
        at = min((timer.at for timer in self.timers.values()), default=inf)
        for row in self.open.values():
            at = min(at, self._row_due(row))
        return at

    def _row_due(self, row: Row) -> float:
        if row.state == "claimed":
            return row.lease_until
        if self._clock() - row.since > self._limits.grace_s:
            return 0.0
        return min(row.resend_at, row.since + self._limits.grace_s, row.lease_until)
