"""Attempts, journals, budgets and presence in SQLite: what happens inside the transactions."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256

from agents.journal import EffectMark, Entry, Reserve, Verdict
from agents.usage import Usage
from orchestrator.facts import Ended
from orchestrator.store.base import AttemptId, Scope
from orchestrator.store.errors import RunUnknown, StoreError
from orchestrator.store.ledger_rows import dumps, put

_OWN = "run = ? AND subtask = ? AND attempt = ? AND worker = ?"
_HELD = "held_llm_calls, held_tool_calls, held_tokens, held_usd"
_NOTHING = (0, 0, 0, 0.0)
_ROUNDING_USD = 1e-9  # three times 0.1 is more than 0.3
_FORGET_WORKERS_S = 86_400.0

_Held = tuple[int, int, int, float]  # model calls, tool calls, tokens, US dollars


def _key(a: AttemptId) -> tuple[str, str, int, str]:
    return (a.run, a.subtask, a.attempt, a.worker)


def claim(db: sqlite3.Connection, a: AttemptId, lease_s: float) -> bool:
    """Claim a sent attempt; true again for one's own; never one that is to stop."""
    now = time.time()
    row = db.execute(
        "UPDATE attempts SET state = 'claimed', worker = ?, lease_until = ?"
        " WHERE run = ? AND subtask = ? AND attempt = ? AND cancel = 0"
        " AND (state = 'sent' OR (state = 'claimed' AND worker = ?))",
        (a.worker, now + lease_s, a.run, a.subtask, a.attempt, a.worker),
    )
    return row.rowcount == 1


def beat(
    db: sqlite3.Connection,
    worker: str,
    scope: Scope,
    attempts: Sequence[AttemptId],
    lease_s: float,
) -> list[Verdict]:
    """Note that a worker lives and prolong its leases."""
    now = time.time()
    db.executemany(
        "INSERT INTO workers VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (worker, agent) DO UPDATE SET seen = excluded.seen",
        [(worker, scope.pipeline_hash, scope.mode, agent, now) for agent in scope.agents],
    )
    return [_prolong(db, a, lease_s, now)[0] for a in attempts]


def _prolong(
    db: sqlite3.Connection, a: AttemptId, lease_s: float, now: float
) -> tuple[Verdict, _Held]:
    """Return the fence's verdict, and what the attempt holds, be it fenced or not."""
    # An attempt that is to stop keeps its lease as it is, so that it is over one lease later.
    row = db.execute(
        "UPDATE attempts SET lease_until = CASE WHEN state = 'claimed' AND cancel = 0"
        f" THEN ? ELSE lease_until END WHERE {_OWN} RETURNING state, cancel, {_HELD}",
        (now + lease_s, *_key(a)),
    ).fetchone()
    if row is None:
        return "fenced", _NOTHING
    state, cancel, *held = row
    verdict: Verdict = "fenced" if state != "claimed" else "cancelled" if cancel else "ok"
    return verdict, tuple(held)


def record(
    db: sqlite3.Connection,
    a: AttemptId,
    n: int,
    entries: Sequence[Entry],
    *,
    lease_s: float,
    settle: Usage | None,
    reserve: Reserve | None,
    effects: Sequence[EffectMark],
) -> Verdict:
    """Pass the gate: the fence first, then the journal, then the budget."""
    verdict, before = _prolong(db, a, lease_s, time.time())
    held = before
    if verdict == "ok":
        verdict, again = _append(db, a, n, entries)
        if again:  # the answer to the same call was lost: it has settled what it had to
            settle = None
        elif verdict == "ok" and effects:
            _mark(db, a, effects)
    if settle is not None:
        _settle(db, a.run, settle, held)
        held = _NOTHING
    if verdict == "ok" and reserve is not None:
        wanted = (reserve.llm_calls, reserve.tool_calls, reserve.tokens, reserve.usd)
        if held != wanted or not again:
            verdict = "ok" if _reserve(db, a.run, reserve) else "over_budget"
        if verdict == "ok":
            held = wanted
    if held != before:
        columns = _HELD.replace(",", " = ?,")
        db.execute(f"UPDATE attempts SET {columns} = ? WHERE {_OWN}", (*held, *_key(a)))
    return verdict


def _append(
    db: sqlite3.Connection, a: AttemptId, n: int, entries: Sequence[Entry]
) -> tuple[Verdict, bool]:
    """Append to the journal; return the verdict, and whether all of it was there before."""
    if not entries:
        return "ok", False
    where = (a.run, a.subtask, a.generation)
    lines = [(i, a.attempt, a.worker, e.kind, dumps(e.data)) for i, e in enumerate(entries, n)]
    placed = db.executemany(
        "INSERT OR IGNORE INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(*where, *line) for line in lines],
    ).rowcount
    if placed == len(lines):
        return "ok", False
    found = db.execute(
        "SELECT n, attempt, worker, kind, data FROM journal WHERE run = ? AND subtask = ?"
        " AND generation = ? AND n >= ? ORDER BY n LIMIT ?",
        (*where, n, len(lines)),
    ).fetchall()
    if placed or (found != lines and all(row[1:3] == (a.attempt, a.worker) for row in found)):
        raise StoreError(f"the journal of {a.subtask!r} was written out of order at {n}")
    return ("ok", True) if found == lines else ("fenced", False)


def _mark(db: sqlite3.Connection, a: AttemptId, effects: Sequence[EffectMark]) -> None:
    db.executemany(
        "INSERT INTO effects VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET state = excluded.state, result = excluded.result",
        [
            (a.run, a.subtask, m.key, m.state, None if m.result is None else dumps(m.result))
            for m in effects
        ],
    )


def _reserve(db: sqlite3.Connection, run: str, r: Reserve) -> bool:
    taken = db.execute(
        "UPDATE budgets SET llm_calls = llm_calls + :llm, tool_calls = tool_calls + :tool,"
        " tokens = tokens + :tokens, usd = usd + :usd WHERE run = :run"
        " AND (max_llm_calls IS NULL OR :llm = 0 OR llm_calls + :llm <= max_llm_calls)"
        " AND (max_tool_calls IS NULL OR :tool = 0 OR tool_calls + :tool <= max_tool_calls)"
        " AND (max_tokens IS NULL OR :tokens = 0 OR tokens + :tokens <= max_tokens)"
        " AND (max_usd IS NULL OR usd + :usd <= max_usd + :rounding)",
        {
            "run": run,
            "llm": r.llm_calls,
            "tool": r.tool_calls,
            "tokens": r.tokens,
            "usd": r.usd,
            "rounding": _ROUNDING_USD,
        },
    )
    return taken.rowcount == 1


def _settle(db: sqlite3.Connection, run: str, actual: Usage, held: _Held) -> None:
    tokens, usd = held[2:]  # what stays spent where the real figure is unknown
    if actual.input_tokens is not None and actual.output_tokens is not None:
        tokens = actual.input_tokens + actual.output_tokens
    if actual.cost_usd is not None:
        usd = actual.cost_usd
    # One unknown part makes a sum unknown, in SQL as in ``Usage``.
    db.execute(
        "UPDATE budgets SET llm_calls = llm_calls + ?, tool_calls = tool_calls + ?,"
        " tokens = tokens + ?, usd = usd + ?, used_llm_calls = used_llm_calls + ?,"
        " used_tool_calls = used_tool_calls + ?, used_input_tokens = used_input_tokens + ?,"
        " used_output_tokens = used_output_tokens + ?,"
        " used_cached_tokens = used_cached_tokens + ?, used_usd = used_usd + ? WHERE run = ?",
        (
            actual.llm_calls - held[0],
            actual.tool_calls - held[1],
            tokens - held[2],
            usd - held[3],
            actual.llm_calls,
            actual.tool_calls,
            actual.input_tokens,
            actual.output_tokens,
            actual.cached_tokens,
            actual.cost_usd,
            run,
        ),
    )


def usage(db: sqlite3.Connection, run: str) -> Usage:
    """Return what a run has spent.

    Raises:
        RunUnknown: No such run.
    """
    row = db.execute(
        "SELECT used_llm_calls, used_tool_calls, used_input_tokens, used_output_tokens,"
        " used_cached_tokens, used_usd FROM budgets WHERE run = ?",
        (run,),
    ).fetchone()
    if row is None:
        raise RunUnknown(f"there is no run {run!r}")
    return Usage(*row)


def finish(
    db: sqlite3.Connection, a: AttemptId, fact: Ended, blobs: Mapping[str, bytes]
) -> Verdict:
    """Write an outcome as an inbox row, once; refused when fenced, welcome when cancelled."""
    row = db.execute(
        f"SELECT 1 FROM attempts WHERE {_OWN} AND state = 'claimed'", _key(a)
    ).fetchone()
    if row is None:
        return "fenced"
    for sha, data in blobs.items():
        put_blob(db, sha, data, "application/json")
    put(db, a.run, fact, f"ended {a.subtask} #{a.attempt}")
    return "ok"


def put_blob(db: sqlite3.Connection, sha: str, data: bytes, media_type: str) -> str:
    """Keep bytes under their hash."""
    sha = sha or sha256(data).hexdigest()
    db.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?, ?)", (sha, media_type, data))
    return sha


def journal(db: sqlite3.Connection, run: str, subtask: str, generation: int | None) -> list[Entry]:
    """Return a subtask's journal in order."""
    rows = db.execute(
        "SELECT kind, data FROM journal WHERE run = ? AND subtask = ?"
        " AND generation = coalesce(?, generation) ORDER BY generation, n",
        (run, subtask, generation),
    )
    return [Entry(kind, json.loads(data)) for kind, data in rows]


def effects(db: sqlite3.Connection, run: str, subtask: str) -> dict[str, EffectMark]:
    """Return a subtask's effects by key."""
    rows = db.execute(
        "SELECT key, state, result FROM effects WHERE run = ? AND subtask = ?", (run, subtask)
    )
    return {
        key: EffectMark(key, state, None if result is None else json.loads(result))
        for key, state, result in rows
    }


def present(db: sqlite3.Connection, scope: Scope, within_s: float) -> frozenset[str]:
    """Return the agents that live workers serve."""
    rows = db.execute(
        "SELECT DISTINCT agent FROM workers WHERE pipeline_hash = ? AND mode = ? AND seen >= ?",
        (scope.pipeline_hash, scope.mode, time.time() - within_s),
    )
    return frozenset(row[0] for row in rows)


def leave(db: sqlite3.Connection, worker: str) -> None:
    """Forget a worker, and those that were killed long ago."""
    long_ago = time.time() - _FORGET_WORKERS_S
    db.execute("DELETE FROM workers WHERE worker = ? OR seen < ?", (worker, long_ago))
