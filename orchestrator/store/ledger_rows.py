"""Runs, ledgers, inboxes and timers in SQLite: what happens inside the transactions."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from agents.usage import Budget
from orchestrator.codec import fact_from_json, fact_to_json
from orchestrator.commit import Batch, Commit, OpenAttempt, Timer
from orchestrator.facts import Fact, Submitted
from orchestrator.state import Event
from orchestrator.store.base import RunRow
from orchestrator.store.errors import RunUnknown, StoreError

_readable = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dumps(value: Any) -> str:
    """Return compact JSON text, readable where UTF-8 can hold it."""
    text = _readable(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which a cut reply of a model may end with
        return json.dumps(value)
    return text


def submit(
    db: sqlite3.Connection,
    fact: Submitted,
    *,
    pipeline: str,
    pipeline_hash: str,
    body: Mapping[str, Any],
    mode: str,
    budget: Budget,
) -> None:
    """Create a run, its budget and its first inbox row."""
    db.execute("INSERT OR IGNORE INTO pipelines VALUES (?, ?)", (pipeline_hash, dumps(body)))
    placed = db.execute(
        "INSERT OR IGNORE INTO runs (run, pipeline, pipeline_hash, mode, task, created, session,"
        " trace, grace_s, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            fact.run,
            pipeline,
            pipeline_hash,
            mode,
            fact.task.encode("utf-8", "replace").decode(),
            time.time(),
            fact.data.get("session"),
            fact.data.get("traceparent", ""),
            fact.shape.limits.grace_s,
            dumps(fact.data),
        ),
    )
    if placed.rowcount == 0:
        raise StoreError(f"run {fact.run!r} was submitted before; choose another id")
    db.execute(
        "INSERT INTO budgets (run, max_llm_calls, max_tool_calls, max_tokens, max_usd)"
        " VALUES (?, ?, ?, ?, ?)",
        (fact.run, budget.llm_calls, budget.tool_calls, budget.tokens, budget.usd),
    )
    put(db, fact.run, fact, None)


def put(db: sqlite3.Connection, run: str, fact: Fact, key: str | None) -> bool:
    """Lay a fact into an inbox; at most one of a key."""
    if db.execute("SELECT 1 FROM runs WHERE run = ?", (run,)).fetchone() is None:
        raise RunUnknown(f"there is no run {run!r}")
    if key is not None:
        taken = db.execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", (run, key))
        if taken.rowcount == 0:
            return False
    db.execute("INSERT INTO inbox (run, fact) VALUES (?, ?)", (run, dumps(fact_to_json(fact))))
    return True


def take(db: sqlite3.Connection, run: str) -> Batch:
    """Read what a run has to decide."""
    now = time.time()
    inbox = [
        (row, fact_from_json(json.loads(text), now))
        for row, text in db.execute("SELECT id, fact FROM inbox WHERE run = ? ORDER BY id", (run,))
    ]
    timers = [
        Timer(kind, key, attempt, at)
        for kind, key, attempt, at in db.execute(
            "SELECT kind, key, attempt, at FROM timers WHERE run = ? AND at <= ?"
            " ORDER BY at, kind, key, attempt",
            (run, now),
        )
    ]
    return Batch(now, inbox, timers, _open_attempts(db, run, now))


def _open_attempts(db: sqlite3.Connection, run: str, now: float) -> list[OpenAttempt]:
    rows = db.execute(
        "SELECT a.subtask, a.attempt, a.agent, a.state, a.lease_until, a.since, r.grace_s,"
        " r.pipeline_hash, r.mode FROM attempts a JOIN runs r USING (run)"
        " WHERE a.run = ? AND a.state <> 'closed' ORDER BY a.subtask",
        (run,),
    ).fetchall()
    found = []
    for subtask, attempt, agent, state, lease_until, since, grace_s, pinned, mode in rows:
        lapsed = state == "claimed" and lease_until < now
        waited = state != "claimed" and now - since > grace_s
        unserved = waited and not served(db, pinned, mode, agent, now - grace_s)
        found.append(OpenAttempt(subtask, attempt, agent, state, lapsed, unserved))
    return found


def served(db: sqlite3.Connection, pipeline_hash: str, mode: str, agent: str, since: float) -> bool:
    """Return whether a worker that serves the agent was heard of since then."""
    row = db.execute(
        "SELECT 1 FROM workers"
        " WHERE pipeline_hash = ? AND mode = ? AND agent = ? AND seen >= ? LIMIT 1",
        (pipeline_hash, mode, agent, since),
    )
    return row.fetchone() is not None


class CommitVoidError(Exception):
    """A commit's seq or a guard no longer holds; rolls the savepoint back."""


def commit(db: sqlite3.Connection, c: Commit) -> None:
    """Write one decision.

    Raises:
        CommitVoidError: Its seq or a guard no longer holds.
    """
    last = c.expected_seq + len(c.events)
    moved = db.execute(
        "UPDATE runs SET seq = ? WHERE run = ? AND seq = ?", (last, c.run, c.expected_seq)
    )
    if moved.rowcount != 1:
        raise CommitVoidError
    _check_guards(db, c)
    db.executemany(
        "INSERT INTO ledger VALUES (?, ?, ?, ?, ?)",
        [
            (c.run, c.expected_seq + i, event.type, c.time, dumps(event.data))
            for i, event in enumerate(c.events, start=1)
        ],
    )
    for row in c.inbox:
        taken = db.execute("DELETE FROM inbox WHERE id = ? AND run = ?", (row, c.run))
        if taken.rowcount != 1:
            raise CommitVoidError
    _write_attempts(db, c)
    _write_timers(db, c)
    if c.final is not None:
        db.execute(
            "UPDATE runs SET status = ?, ended = ?, root = 'pending' WHERE run = ?",
            (c.final, c.time, c.run),
        )
        db.execute("DELETE FROM timers WHERE run = ?", (c.run,))


def _check_guards(db: sqlite3.Connection, c: Commit) -> None:
    now = time.time()
    for subtask, attempt in c.still_lapsed:
        row = db.execute(
            "SELECT 1 FROM attempts WHERE run = ? AND subtask = ? AND attempt = ?"
            " AND state = 'claimed' AND lease_until < ?",
            (c.run, subtask, attempt, now),
        ).fetchone()
        if row is None:
            raise CommitVoidError
    for subtask, attempt in c.still_unclaimed:
        row = db.execute(
            "SELECT 1 FROM attempts WHERE run = ? AND subtask = ? AND attempt = ?"
            " AND state = 'sent'",
            (c.run, subtask, attempt),
        ).fetchone()
        if row is None:
            raise CommitVoidError
    for agent in c.still_unserved:
        grace_s, pinned, mode = db.execute(
            "SELECT grace_s, pipeline_hash, mode FROM runs WHERE run = ?", (c.run,)
        ).fetchone()
        if served(db, pinned, mode, agent, now - grace_s):
            raise CommitVoidError


def _write_attempts(db: sqlite3.Connection, c: Commit) -> None:
    db.executemany(
        "UPDATE attempts SET state = 'closed' WHERE run = ? AND subtask = ? AND attempt = ?",
        [(c.run, *where) for where in c.closed],
    )
    closed = set(c.closed)
    sent = set(c.sent)
    for subtask, attempt, agent in c.announced:
        where = (subtask, attempt)
        state = "closed" if where in closed else "sent" if where in sent else "ready"
        db.execute(
            "INSERT OR IGNORE INTO attempts (run, subtask, attempt, agent, state, since, sent_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (c.run, subtask, attempt, agent, state, c.time, c.time),
        )
    db.executemany(
        "UPDATE attempts SET state = 'sent', sent_at = ?, resend_s = 1.0"
        " WHERE run = ? AND subtask = ? AND attempt = ? AND state = 'ready'",
        [(c.time, c.run, *where) for where in c.sent if where not in closed],
    )
    db.executemany(
        "UPDATE attempts SET cancel = 1 WHERE run = ? AND subtask = ? AND attempt = ?",
        [(c.run, *where) for where in c.cancelled],
    )


def _write_timers(db: sqlite3.Connection, c: Commit) -> None:
    db.executemany(
        "DELETE FROM timers WHERE run = ? AND kind = ? AND key = ? AND attempt = ?",
        [(c.run, t.kind, t.key, t.attempt) for t in c.fired],
    )
    db.executemany(
        "INSERT OR REPLACE INTO timers VALUES (?, ?, ?, ?, ?)",
        [(c.run, t.kind, t.key, t.attempt, t.at) for t in c.timers],
    )


def ledger(db: sqlite3.Connection, run: str, after: int) -> list[Event]:
    """Return a run's events above ``after``."""
    rows = db.execute(
        "SELECT type, data, seq, time FROM ledger WHERE run = ? AND seq > ? ORDER BY seq",
        (run, after),
    )
    return [Event(kind, json.loads(data), seq, at) for kind, data, seq, at in rows]


_RUN = (
    "SELECT run, pipeline, pipeline_hash, mode, status, task, created, ended, seq, session, trace,"
    " data FROM runs"
)


def _run_row(row: tuple[Any, ...]) -> RunRow:
    return RunRow(*(*row[:-1], json.loads(row[-1])))


def run_row(db: sqlite3.Connection, run: str) -> RunRow:
    """Return one run, by its id or an unambiguous beginning of it.

    Raises:
        RunUnknown: None or several begin like this.
    """
    rows = db.execute(f"{_RUN} WHERE run = ?", (run,)).fetchall()
    if not rows and run:
        beginning = (run, run + "\U0010ffff")
        rows = db.execute(f"{_RUN} WHERE run >= ? AND run < ? LIMIT 4", beginning).fetchall()
    if len(rows) == 1:
        return _run_row(rows[0])
    if rows:
        names = ", ".join(row[0] for row in rows)
        raise RunUnknown(f"several runs begin with {run!r}: {names}")
    latest = [row[0] for row in db.execute("SELECT run FROM runs ORDER BY created DESC LIMIT 500")]
    near = get_close_matches(run, latest, 3, cutoff=0.8)
    hint = f"did you mean {', '.join(near)}?" if near else f"the latest: {', '.join(latest[:3])}"
    raise RunUnknown(f"there is no run {run!r} in this store; {hint if latest else 'it is empty'}")


def run_rows(db: sqlite3.Connection, limit: int, status: str | None) -> list[RunRow]:
    """Return runs, the newest first."""
    rows = db.execute(
        f"{_RUN} WHERE status = coalesce(?, status) ORDER BY created DESC, run LIMIT ?",
        (status, limit),
    )
    return [_run_row(row) for row in rows]
