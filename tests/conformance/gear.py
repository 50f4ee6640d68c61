"""Playing a case in one combination of mode, bus and faults, and what is known of it then."""

from __future__ import annotations

import asyncio
import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from agents.models.base import CallKey, ModelReply, ModelRequest, OnDelta
from agents.models.scripted import ScriptedModel
from agents.usage import Usage
from bus.base import Bus
from bus.faulty import FaultyBus
from bus.kafka import KafkaBus
from bus.kafka_settings import KafkaSettings
from bus.memory import MemoryBus
from orchestrator.canonical import canonical
from orchestrator.pipeline import Pipeline
from orchestrator.result import RunResult
from orchestrator.run import Run
from orchestrator.state import Event
from orchestrator.store.base import RunStore
from orchestrator.store.sqlite import SqliteRunStore
from orchestrator.wholeness import expected
from tests.conformance.invariants import broken_rules
from tracing.check import check
from tracing.reader import SpanRecord, read_file

MODES = ("orchestration", "choreography")
ADDRESSES: dict[str, str] = {}  # of the brokers, as fixtures know them
BUSES: dict[str, Callable[[], Bus]] = {
    "memory": MemoryBus,
    "kafka": lambda: KafkaBus(KafkaSettings(servers=ADDRESSES["kafka"], partitions=2)),
}
FAULTS: dict[str, float] = {
    "duplicate": 0.3,
    "delay": 0.3,
    "reorder": 0.2,
    "drop_before_acknowledge": 0.3,
    "lose": 0.06,
    "longest_delay_s": 0.02,
}
_FOLDERS = count()

Answerer = Callable[[Mapping[str, Any]], dict[str, Any]]


class CountingModel:
    """A scripted model that counts the calls it is asked, by key."""

    structured = True
    media_types: tuple[str, ...] = ("*/*",)
    dialect: Any = "native"

    def __init__(self, replies: Any) -> None:
        self._inner = ScriptedModel(replies)
        self.name = "scripted/counting"
        self.asked: Counter[CallKey] = Counter()

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Count, and answer."""
        self.asked[request.key] += 1
        return await self._inner.complete(request, on_delta)

    async def aclose(self) -> None:
        """Hold nothing."""


@dataclass(frozen=True)
class Case:
    """A pipeline and its model's script.

    Attributes:
        settings: What ``Pipeline`` is given beside models, mode, store and bus; called for each
            play, so that no state is shared.
        replies: The script, called for each play.
        task: The run's task.
        people: Answers input requests: their data to the arguments of ``provide``.
        act: Done while the run is under way, once, for example a cancel.
    """

    settings: Callable[[], dict[str, Any]]
    replies: Callable[[], Any] = tuple
    task: str = "Count the stock."
    people: Answerer | None = None
    act: Callable[[Run, Event], Any] | None = None


@dataclass
class Played:
    """What is known of a case that was played.

    Attributes:
        asked: How often the model was asked, by key.
        broken: Invariants that do not hold.
    """

    label: str
    result: RunResult
    ledger: list[Event]
    asked: Counter[CallKey]
    spans: list[SpanRecord]
    broken: list[str] = field(default_factory=list)


def pipeline_in(
    folder: Path,
    *,
    mode: str,
    model: Any = None,
    store: RunStore | None = None,
    bus: Bus | None = None,
    **settings: Any,
) -> Pipeline:
    """Return a pipeline whose run store and traces lie in a folder; several may share it."""
    return Pipeline(
        **settings,
        models=None if model is None else {"main": model},
        mode=mode,
        store=store or str(folder / "runs.db"),
        bus=bus,
        folder=folder,
        tracing={"file": str(folder / "traces.jsonl")},
    )


async def play(
    case: Case,
    folder: Path,
    *,
    mode: str,
    bus: str = "memory",
    carrier: Bus | None = None,
    seed: int | None = None,
    faults: Mapping[str, float] = FAULTS,
    wrap_store: Callable[[str], RunStore] | None = None,
    patience_s: float = 50.0,
) -> Played:
    """Play a case and return what became of it; one that does not end is cancelled."""
    folder = folder / f"play{next(_FOLDERS)}"
    await asyncio.to_thread(folder.mkdir)
    path = folder / "runs.db"
    model = CountingModel(case.replies())
    carrier = carrier or BUSES[bus]()
    if seed is not None:
        carrier = faulty(carrier, seed, faults)
    own = None if wrap_store is None else wrap_store(str(path))
    if own is not None:
        await own.open()
    async with carrier:
        # The topics of a play are its own: a broker keeps those of others.
        settings = {"name": f"play-{uuid.uuid4().hex[:8]}", **case.settings()}
        pipeline = pipeline_in(folder, mode=mode, model=model, store=own, bus=carrier, **settings)
        async with pipeline, pipeline.start(case.task) as run:
            following = asyncio.create_task(_follow(run, case), name="people")
            ends = True
            try:
                async with asyncio.timeout(patience_s):
                    result = await run.result()
            except TimeoutError:
                ends = False
                await run.cancel("it does not end")
                result = await run.result()
            await following
            ledger = await pipeline.app.store.ledger(run.id)
            await _published(pipeline, run.id, ledger[-1].seq)
    if own is not None:
        await own.close()
    spans = await asyncio.to_thread(read_file, folder / "traces.jsonl", result.trace_id)
    played = Played(
        f"{mode} over {bus}, seed {seed}", result, ledger, model.asked, spans, broken_rules(ledger)
    )
    if not ends:
        played.broken.append("the run does not end")
    played.broken += await asyncio.to_thread(left_open, path)
    async with SqliteRunStore(str(path)) as kept:
        wanted = await expected(kept, await kept.run(result.run))
    played.broken += check(spans, wanted)
    return played


def faulty(inner: Bus, seed: int, chances: Mapping[str, float]) -> FaultyBus:
    """Return a bus that misbehaves."""
    options: dict[str, Any] = dict(chances)
    return FaultyBus(inner, seed, **options)


async def _follow(run: Run, case: Case) -> None:
    acted = False
    async for event in run:
        if not isinstance(event, Event):
            continue
        if event.type == "input.requested" and case.people is not None:
            await run.provide(event.data["input"], **case.people(event.data))
        if case.act is not None and not acted:
            acted = bool(await case.act(run, event))


async def until(holds: Callable[[], Awaitable[bool]], *, within_s: float = 20.0) -> None:
    """Return once a condition holds; fail when it does not in time."""
    end = time.monotonic() + within_s
    while not await holds():
        assert time.monotonic() < end, f"{holds.__qualname__} does not hold in {within_s} s"
        await asyncio.sleep(0.01)


async def _published(pipeline: Pipeline, run: str, seq: int) -> None:
    async def there() -> bool:
        return await pipeline.app.store.published(run) >= seq

    await until(there)


def left_open(path: Path, *, killed: bool = False) -> list[str]:
    """Return what an ended run has left in its store; ``killed`` when a process of it was."""
    queries = {
        "inbox rows": "SELECT count(*) FROM inbox",
        "timers": "SELECT count(*) FROM timers",
        "open attempts": "SELECT count(*) FROM attempts WHERE state <> 'closed'",
        "unpublished runs": "SELECT count(*) FROM runs WHERE published < seq",
        "roots not exported": "SELECT count(*) FROM runs WHERE root <> 'exported'",
    }
    if not killed:  # what a lost call may have cost stays reserved
        unsettled = "SELECT count(*) FROM budgets WHERE llm_calls <> used_llm_calls"
        queries["reservations not settled"] = unsettled
    with closing(sqlite3.connect(path)) as db:
        found = {what: db.execute(sql).fetchone()[0] for what, sql in queries.items()}
    return [f"{n} {what} left" for what, n in found.items() if n]


def differences(expected: Played, found: Played) -> list[str]:
    """Return where two plays differ that must be equal; empty when they are."""
    told = list(found.broken)
    if found.result.status != expected.result.status:
        told.append(f"status {found.result.status}, not {expected.result.status}")
    if found.result.output != expected.result.output:
        told.append(f"answer {found.result.output!r}, not {expected.result.output!r}")
    theirs = {item["id"]: item for item in canonical(expected.ledger)}
    ours = {item["id"]: item for item in canonical(found.ledger)}
    told += [f"subtask {name} is missing" for name in theirs.keys() - ours.keys()]
    told += [f"subtask {name} is not expected" for name in ours.keys() - theirs.keys()]
    for name in theirs.keys() & ours.keys():
        if theirs[name] != ours[name]:
            told.append(f"subtask {name}: {ours[name]}, not {theirs[name]}")
    if [*theirs] != [*ours]:
        told.append(f"the order is {[*ours]}, not {[*theirs]}")
    if found.asked != expected.asked:
        more, less = found.asked - expected.asked, expected.asked - found.asked
        told.append(f"model calls made too often {more}, too seldom {less}")
    if found.result.usage != expected.result.usage and isinstance(found.result.usage, Usage):
        told.append(f"usage {found.result.usage}, not {expected.result.usage}")
    return [f"{found.label}: {line}" for line in told]
