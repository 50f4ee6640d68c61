"""What a sweep looks for in SQLite: runs to advance, to publish and to close; work to send again.

Every query begins at the few rows that may be due, so that ended runs cost nothing.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from orchestrator.store.base import Due, Resend, Scope

_MAX_RESEND_S = 60.0
_OURS = "r.pipeline_hash = :pipeline AND r.mode = :mode"
_LIVE = f"{_OURS} AND r.status = 'running'"

_ADVANCE = f"""
SELECT r.run FROM inbox i CROSS JOIN runs r USING (run) WHERE {_OURS}
UNION SELECT r.run FROM timers t CROSS JOIN runs r USING (run) WHERE t.at <= :now AND {_LIVE}
UNION SELECT r.run FROM attempts a CROSS JOIN runs r USING (run)
WHERE a.state <> 'closed' AND {_LIVE} AND (
    (a.state = 'claimed' AND a.lease_until < :now)
    OR (a.state = 'ready' AND r.mode = 'orchestration')
    OR (a.state <> 'claimed' AND :now - a.since > r.grace_s AND NOT EXISTS (
        SELECT 1 FROM workers w WHERE w.pipeline_hash = r.pipeline_hash AND w.mode = r.mode
        AND w.agent = a.agent AND w.seen >= :now - r.grace_s
    ))
)"""
_PUBLISH = f"SELECT r.run FROM runs r WHERE {_OURS} AND r.published < r.seq"
_ROOTS = f"SELECT r.run FROM runs r WHERE {_OURS} AND r.root = 'pending'"
_RESEND = f"""
SELECT r.run, a.subtask, a.attempt, a.agent, a.state FROM attempts a CROSS JOIN runs r USING (run)
WHERE a.state <> 'closed' AND a.state <> 'claimed' AND a.sent_at + a.resend_s <= :now AND {_LIVE}
AND a.agent IN """


def _values(scope: Scope) -> dict[str, Any]:
    return {"pipeline": scope.pipeline_hash, "mode": scope.mode, "now": time.time()}


def due(db: sqlite3.Connection, scope: Scope) -> Due:
    """Find what is left to do; changes nothing."""
    values = _values(scope)
    runs = [
        tuple(row[0] for row in db.execute(query, values)) for query in (_ADVANCE, _PUBLISH, _ROOTS)
    ]
    return Due(runs[0], runs[1], _resends(db, scope, values), runs[2])


def resends(db: sqlite3.Connection, scope: Scope) -> tuple[Resend, ...]:
    """Take what is to be sent again: no other process finds it before twice the interval."""
    values = _values(scope)
    found = _resends(db, scope, values)
    db.executemany(
        "UPDATE attempts SET sent_at = ?, resend_s = min(resend_s * 2, ?)"
        " WHERE run = ? AND subtask = ? AND attempt = ?",
        [(values["now"], _MAX_RESEND_S, r.run, r.subtask, r.attempt) for r in found],
    )
    return found


def _resends(db: sqlite3.Connection, scope: Scope, values: dict[str, Any]) -> tuple[Resend, ...]:
    agents = {f"agent{i}": agent for i, agent in enumerate(scope.agents)}
    marks = ", ".join(f":{name}" for name in agents)
    return tuple(Resend(*row) for row in db.execute(f"{_RESEND}({marks})", {**values, **agents}))
