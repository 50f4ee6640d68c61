"""What the trace of a run must hold, as its ledger and its journals say."""

from __future__ import annotations

from collections import defaultdict

from orchestrator.brief import Brief
from orchestrator.run_spans import orchestrator_of
from orchestrator.store.base import RunRow, RunStore
from tracing import attributes as names
from tracing.check import Expected


async def expected(store: RunStore, row: RunRow) -> Expected:
    """Read what ``tracing.check.check`` compares a trace with."""
    brief = Brief()
    for event in await store.ledger(row.run):
        brief.fold(event)
    ended = {(d.subtask, d.attempt): d for d in brief.ended.values()}
    begun = {where for where, d in ended.items() if d.begun}
    services = {brief.spawned[subtask]["agent"] for subtask, _ in begun}
    orchestrated = row.mode == "orchestration"
    services |= {row.pipeline, *([orchestrator_of(row.pipeline)] if orchestrated and ended else [])}
    ways = defaultdict(set)
    for subtask, attempt in begun:
        ways[subtask].add(ended[subtask, attempt].status)
    calls: dict[tuple[str, str], tuple[int, bool]] = {}
    for subtask in ways:
        if "lost" in ways[subtask]:
            continue  # the journal has calls of the worker that died, the trace has not
        # An attempt that ended otherwise may have been stopped between a call and its record.
        more = not ways[subtask] <= {"completed", "parked"}
        journal = await store.journal(row.run, subtask)
        replies = sum(e.kind == "model_reply" and e.data.get("error") is None for e in journal)
        results = sum(e.kind == "tool_result" and bool(e.data.get("ran")) for e in journal)
        calls[subtask, names.CHAT] = (replies, more)
        calls[subtask, names.EXECUTE_TOOL] = (results, more)
    return Expected(
        row.run,
        services=frozenset(services),
        attempts=frozenset(begun),
        delegations=frozenset(ended) if orchestrated else frozenset(),
        open=frozenset((sub, event.data["attempt"]) for sub, event in brief.open.items()),
        calls=calls,
    )
