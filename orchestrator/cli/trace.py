"""``cadenza trace``: the trace of a run, from the file it was written to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from orchestrator.app import trace_file
from orchestrator.cli.progress import line
from orchestrator.cli.sources import existing_store, path_of, pinned
from orchestrator.errors import UsageError
from orchestrator.store.base import RunRow, RunStore
from tracing.check import check
from tracing.reader import SpanRecord, read_file
from tracing.tree import draw


async def show(run: str, file: str | None, store: str | None) -> int:
    """Draw the trace of a run, and say how whole it is."""
    async with existing_store(store) as opened:
        row = await opened.run(run)
        events = await opened.ledger(row.run)
        where = Path(file) if file else await _file(opened, row)
    spans = await asyncio.to_thread(_read, row, where)
    for text in draw(spans):
        click.echo(text)
    agents = {e.data["agent"] for e in events if e.type == "subtask.completed"}
    faults = check(spans, run=row.run, services=[row.pipeline, *agents])
    about = f"{len(spans)} spans of trace {spans[0].trace_id} in {where}"
    if not faults:
        click.echo(line("whole", about, "green"), err=True)
        return 0
    so_far = " so far; the run has not ended" if row.ended is None else ""
    click.echo(line("not whole", f"{about}{so_far}", "yellow"), err=True)
    for fault in faults:
        click.echo(line("", fault), err=True)
    return 0


async def _file(store: RunStore, row: RunRow) -> Path:
    path = path_of(store)
    try:
        found = await pinned(store, row)
    except UsageError:  # its file may have said another place; this is where it is otherwise
        return Path(path).parent / "traces.jsonl"
    return trace_file(found.source, path)


def _read(row: RunRow, where: Path) -> list[SpanRecord]:
    if row.trace.count("-") != 3:
        raise UsageError(f"run {row.run} was not traced")
    trace_id = row.trace.split("-")[1]
    hint = (
        f"look for {trace_id} in your collector if OTEL_EXPORTER_OTLP_ENDPOINT was set, "
        "or name another file with --file"
    )
    try:
        spans = read_file(where, trace_id)
    except OSError as exc:
        raise UsageError(f"the trace file {str(where)!r}: {exc.strerror}; {hint}") from exc
    if not spans:
        raise UsageError(f"{str(where)!r} has no span of run {row.run}; {hint}")
    return spans
