"""``cadenza trace``: the trace of a run, from the file it was written to, or from Jaeger."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from orchestrator.app import trace_file
from orchestrator.cli.exits import ANSWER, FAILED
from orchestrator.cli.progress import line
from orchestrator.cli.sources import existing_store, path_of, pinned
from orchestrator.errors import UsageError
from orchestrator.store.base import RunRow, RunStore
from orchestrator.wholeness import expected
from tracing.check import Expected, check
from tracing.jaeger import HERE, JaegerUnusable, collector, jaeger_url, page, read_jaeger
from tracing.reader import SpanRecord, read_file
from tracing.tree import draw

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Place:
    """Where a trace is read.

    Attributes:
        where: For people.
        read: Reads what is there; not on the event loop.
    """

    where: str
    read: Callable[[], list[SpanRecord]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A run whose trace was asked for."""

    row: RunRow
    trace_id: str
    place: Place
    expected: Expected


async def show(run: str, file: str | None, jaeger: str | None, store: str | None) -> int:
    """Draw the trace of a run, and say how whole it is."""
    asked = await _asked(run, file, jaeger, store)
    spans = await asyncio.to_thread(asked.place.read)
    if not spans:
        raise UsageError(f"{asked.place.where} has no span of trace {asked.trace_id}")
    for text in draw(spans):
        click.echo(text)
    _say(asked, spans, check(spans, asked.expected))
    return ANSWER


async def verify(
    run: str, file: str | None, jaeger: str | None, deadline_s: float, store: str | None
) -> int:
    """Say whether the trace of a run is whole, and what it lacks if it is not."""
    asked = await _asked(run, file, jaeger, store)
    end = time.monotonic() + deadline_s
    while True:
        spans = await asyncio.to_thread(asked.place.read)
        faults = check(spans, asked.expected)
        # Processes send their last spans in batches; those of a run that goes on come much later.
        if not faults or asked.row.ended is None or time.monotonic() > end:
            break
        await asyncio.sleep(_POLL_S)
    _say(asked, spans, faults)
    return FAILED if faults else ANSWER


async def open_page(run: str, jaeger: str | None, store: str | None) -> int:
    """Print the address of a run's trace in Jaeger."""
    async with existing_store(store) as opened:
        trace_id = _trace_id(await opened.run(run))
    click.echo(page(jaeger or jaeger_url() or HERE, trace_id))
    return ANSWER


def _say(asked: Asked, spans: Sequence[SpanRecord], faults: Sequence[str]) -> None:
    about = f"{len(spans)} spans of trace {asked.trace_id} in {asked.place.where}"
    if not faults:
        services = ", ".join(sorted({span.service for span in spans}))
        click.echo(line("whole", f"{about}\nservices: {services}", "green"), err=True)
        return
    so_far = " so far; the run has not ended" if asked.row.ended is None else ""
    click.echo(line("not whole", f"{about}{so_far}", "yellow"), err=True)
    for fault in faults:
        click.echo(line("", fault), err=True)


async def _asked(run: str, file: str | None, jaeger: str | None, store: str | None) -> Asked:
    if file and jaeger:
        raise UsageError("--file and --jaeger name two places; give one")
    async with existing_store(store) as opened:
        row = await opened.run(run)
        trace_id = _trace_id(row)
        wanted = await expected(opened, row)
        default = await _file(opened, row)
    url = jaeger or (jaeger_url() if collector() else None)
    if file:
        place = _in_file(Path(file), trace_id)
    elif url:
        place = _in_jaeger(url, trace_id)
    else:
        place = await asyncio.to_thread(_found, default, trace_id)
    return Asked(row, trace_id, place, wanted)


def _trace_id(row: RunRow) -> str:
    if row.trace.count("-") != 3:
        raise UsageError(f"run {row.run} was not traced")
    return row.trace.split("-")[1]


async def _file(store: RunStore, row: RunRow) -> Path:
    path = path_of(store)
    try:
        found = await pinned(store, row)
    except UsageError:  # its file may have said another place; this is where it is otherwise
        return Path(path).parent / "traces.jsonl"
    return trace_file(found.source, path)


def _found(file: Path, trace_id: str) -> Place:
    """Return where a trace is that nobody said the place of: the file, or else Jaeger."""
    places = (_in_file(file, trace_id), _in_jaeger(jaeger_url() or HERE, trace_id))
    problems = []
    for place in places:
        try:
            if place.read():
                return place
        except (UsageError, JaegerUnusable) as exc:
            problems.append(str(exc))
        else:
            problems.append(f"{place.where} has no span of trace {trace_id}")
    raise UsageError(f"{'; '.join(problems)}; name another place with --file or --jaeger")


def _in_jaeger(url: str, trace_id: str) -> Place:
    return Place(f"Jaeger at {url}", lambda: read_jaeger(url, trace_id))


def _in_file(file: Path, trace_id: str) -> Place:
    def read() -> list[SpanRecord]:
        try:
            return read_file(file, trace_id)
        except OSError as exc:
            raise UsageError(f"the trace file {str(file)!r}: {exc.strerror}") from exc

    return Place(str(file), read)
