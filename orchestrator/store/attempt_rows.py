"""Attempts, journals, budgets and presence in SQLite: what happens inside the transactions."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from agents.journal import EffectMark, Entry, Reserve, Verdict
from agents.usage import Usage
from orchestrator.codec import fact_to_json
from orchestrator.facts import Ended
from orchestrator.store.base import AttemptId, Due, Resend, Scope
from orchestrator.store.ledger_rows import dumps

_WHERE = "run = ? AND subtask = ? AND attempt = ? AND worker = ? AND state = 'claimed'"
_MAX_RESEND_S = 60.0


def _key(a: AttemptId) -> tuple[str, str, int, str]:
    return (a.run, a.subtask, a.attempt, a.worker)


def claim(db: sqlite3.Connection, a: AttemptId, lease_s: float) -> bool:
    """Claim a sent attempt; true again for one's own."""
    now = time.time()
    row = db.execute(
        "UPDATE attempts SET state = 'claimed', worker = ?, lease_until = ?"
        " WHERE run = ? AND subtask = ? AND attempt = ?"
        " AND (state = 'sent' OR (state = 'claimed' AND worker = ?))",
        (a.worker, now + lease_s, a.run, a.subtask, a.attempt, a.worker),
    )
    return row.rowcount == 1


def beat(
    db: sqlite3.Connection,
    worker: str,
    *,
    pipeline_hash: str,
    agents: Sequence[str],
    attempts: Sequence[AttemptId],
    lease_s: float,
) -> list[Verdict]:
    """Note that a worker lives and prolong its leases."""
    now = time.time()
    db.executemany(
        "INSERT INTO workers VALUES (?, ?, ?, ?)"
        " ON CONFLICT (worker, agent) DO UPDATE SET seen = excluded.seen",
        [(worker, pipeline_hash, agent, now) for agent in agents],
    )
    return [_prolong(db, a, lease_s, now)[0] for a in attempts]


def _prolong(
    db: sqlite3.Connection, a: AttemptId, lease_s: float, now: float
) -> tuple[Verdict, str]:
    # An attempt that is to stop keeps its lease as it is, so that it is over one lease later.
    row = db.execute(
        "UPDATE attempts SET lease_until = CASE cancel WHEN 0 THEN ? ELSE lease_until END"
        f" WHERE {_WHERE} RETURNING cancel, held",
        (now + lease_s, *_key(a)),
    ).fetchone()
    if row is None:
        return "fenced", ""
    return ("cancelled" if row[0] else "ok"), row[1]


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
    """Pass the gate: the fence first, then the budget, then the journal."""
    verdict, held = _prolong(db, a, lease_s, time.time())
    if verdict == "ok" and not _append(db, a, n, entries, effects):
        verdict = "fenced"
    if settle is not None:
        _settle(db, a.run, settle, held)
        held = ""
    if verdict == "ok" and reserve is not None:
        if _reserve(db, a.run, reserve):
            held = dumps([reserve.llm_calls, reserve.tool_calls, reserve.tokens, reserve.usd])
        else:
            verdict = "over_budget"
    db.execute(f"UPDATE attempts SET held = ? WHERE {_WHERE}", (held, *_key(a)))
    return verdict


def _append(
    db: sqlite3.Connection,
    a: AttemptId,
    n: int,
    entries: Sequence[Entry],
    effects: Sequence[EffectMark],
) -> bool:
    where = (a.run, a.subtask, a.generation)
    for i, entry in enumerate(entries, start=n):
        row = (*where, i, a.attempt, a.worker, entry.kind, dumps(entry.data))
        placed = db.execute(
            "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row
        )
        if placed.rowcount == 0 and not _own_row(db, where, i, a):
            return False
    db.executemany(
        "INSERT INTO effects VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET state = excluded.state, result = excluded.result",
        [
            (a.run, a.subtask, m.key, m.state, None if m.result is None else dumps(m.result))
            for m in effects
        ],
    )
    return True


def _own_row(db: sqlite3.Connection, where: tuple[str, str, int], n: int, a: AttemptId) -> bool:
    row = db.execute(
        "SELECT 1 FROM journal WHERE run = ? AND subtask = ? AND generation = ? AND n = ?"
        " AND attempt = ? AND worker = ?",
        (*where, n, a.attempt, a.worker),
    )
    return row.fetchone() is not None


def _reserve(db: sqlite3.Connection, run: str, r: Reserve) -> bool:
    taken = db.execute(
        "UPDATE budgets SET llm_calls = llm_calls + :llm, tool_calls = tool_calls + :tool,"
        " tokens = tokens + :tokens, usd = usd + :usd WHERE run = :run"
        " AND (max_llm_calls IS NULL OR :llm = 0 OR llm_calls + :llm <= max_llm_calls)"
        " AND (max_tool_calls IS NULL OR :tool = 0 OR tool_calls + :tool <= max_tool_calls)"
        " AND (max_tokens IS NULL OR :tokens = 0 OR tokens + :tokens <= max_tokens)"
        " AND (max_usd IS NULL OR (:usd = 0 AND usd < max_usd) OR usd + :usd <= max_usd)",
        {
            "run": run,
            "llm": r.llm_calls,
            "tool": r.tool_calls,
            "tokens": r.tokens,
            "usd": r.usd,
        },
    )
    return taken.rowcount == 1


def _settle(db: sqlite3.Connection, run: str, actual: Usage, held_text: str) -> None:
    held = json.loads(held_text) if held_text else [0, 0, 0, 0.0]
    known = actual.input_tokens is not None and actual.output_tokens is not None
    tokens = (actual.input_tokens or 0) + (actual.output_tokens or 0) if known else held[2]
    usd = held[3] if actual.cost_usd is None else actual.cost_usd
    (text,) = db.execute("SELECT usage FROM budgets WHERE run = ?", (run,)).fetchone()
    total = Usage.from_json(json.loads(text)) + actual
    db.execute(
        "UPDATE budgets SET llm_calls = llm_calls + ?, tool_calls = tool_calls + ?,"
        " tokens = tokens + ?, usd = usd + ?, usage = ? WHERE run = ?",
        (
            actual.llm_calls - held[0],
            actual.tool_calls - held[1],
            tokens - held[2],
            usd - held[3],
            dumps(total.to_json()),
            run,
        ),
    )


def finish(
    db: sqlite3.Connection, a: AttemptId, fact: Ended, blobs: Mapping[str, bytes]
) -> Verdict:
    """Write an outcome as an inbox row; refused when fenced, welcome when cancelled."""
    row = db.execute(f"SELECT 1 FROM attempts WHERE {_WHERE}", _key(a)).fetchone()
    if row is None:
        return "fenced"
    for sha, data in blobs.items():
        put_blob(db, sha, data, "application/json")
    db.execute("INSERT INTO inbox (run, fact) VALUES (?, ?)", (a.run, dumps(fact_to_json(fact))))
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


def _runs(db: sqlite3.Connection, sql: str, values: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(row[0] for row in db.execute(sql, values))


def due(db: sqlite3.Connection, scope: Scope) -> Due:
    """Find what is left to do, and set the next resend of what is to be sent again."""
    now = time.time()
    own = (scope.pipeline_hash, scope.mode)
    live = "r.pipeline_hash = ? AND r.mode = ?"
    advance = _runs(
        db,
        f"SELECT r.run FROM runs r WHERE {live} AND ("
        " EXISTS (SELECT 1 FROM inbox i WHERE i.run = r.run)"
        " OR EXISTS (SELECT 1 FROM timers t WHERE t.run = r.run AND t.at <= ?)"
        " OR EXISTS (SELECT 1 FROM attempts a WHERE a.run = r.run AND a.state = 'claimed'"
        "  AND a.lease_until < ?)"
        " OR EXISTS (SELECT 1 FROM attempts a WHERE a.run = r.run AND a.state IN ('ready', 'sent')"
        "  AND (? - a.since > r.grace_s OR (a.state = 'ready' AND r.mode = 'orchestration'))))"
        " AND (r.status = 'running' OR EXISTS (SELECT 1 FROM inbox i WHERE i.run = r.run))",
        (*own, now, now, now),
    )
    publish = _runs(db, f"SELECT r.run FROM runs r WHERE {live} AND r.published < r.seq", own)
    roots = _runs(db, f"SELECT r.run FROM runs r WHERE {live} AND r.root = 'pending'", own)
    return Due(advance, publish, _resends(db, scope, now), roots)


def _resends(db: sqlite3.Connection, scope: Scope, now: float) -> tuple[Resend, ...]:
    marks = ", ".join("?" * len(scope.agents))
    rows = db.execute(
        "SELECT a.run, a.subtask, a.attempt, a.agent, a.state FROM attempts a"
        " JOIN runs r USING (run) WHERE r.pipeline_hash = ? AND r.mode = ?"
        " AND r.status = 'running' AND a.state IN ('ready', 'sent')"
        f" AND a.sent_at + a.resend_s <= ? AND a.agent IN ({marks})",
        (scope.pipeline_hash, scope.mode, now, *scope.agents),
    ).fetchall()
    db.executemany(
        "UPDATE attempts SET sent_at = ?, resend_s = min(resend_s * 2, ?)"
        " WHERE run = ? AND subtask = ? AND attempt = ?",
        [(now, _MAX_RESEND_S, *row[:3]) for row in rows],
    )
    return tuple(Resend(*row) for row in rows)
