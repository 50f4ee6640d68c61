"""The composition root: the only place that picks concrete classes.

``open_app`` puts a process's part of a pipeline together and takes it apart again.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.base import Agent
from bus.base import Bus
from bus.memory import MemoryBus
from orchestrator.bus_settings import kafka_settings
from orchestrator.run_spans import Spans
from orchestrator.runtime import ORCHESTRATOR, Part, Runtime
from orchestrator.settings import PLANNER, SYNTHESIZER, ModelEntry, PipelineSettings, pipeline_hash
from orchestrator.settings_errors import SettingsError
from orchestrator.store.base import RunStore, Scope
from orchestrator.store.sqlite import SqliteRunStore
from orchestrator.team import Ingredients, build_team, descriptions, names_of
from orchestrator.watchdog import Watchdog
from tracing.spans import SpanSink

DEFAULT_STORE = ".cadenza/runs.db"


@dataclass(frozen=True, slots=True)
class Source:
    """A pipeline and where its parts are found.

    Attributes:
        settings: The settings, with a model when they named none.
        folder: Where references and relative paths start.
        file: The pipeline file, or None when it was said in Python.
        objects: Python objects by reference.
        resources: Resources by name: a value, or a callable that opens one.
        record: File to record model replies in, or None.
    """

    settings: PipelineSettings
    folder: Path
    file: Path | None = None
    objects: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    record: Path | None = None

    @property
    def hash(self) -> str:
        """Return the hash that runs are pinned to."""
        return pipeline_hash(self.settings)

    def recording(self, file: Path) -> Source:
        """Return the same pipeline with model replies recorded in a file."""
        return replace(self, record=file)

    def with_model(self, model: ModelEntry) -> Source:
        """Return the same pipeline with a model that it did not name."""
        return replace(self, settings=self.settings.model_copy(update={"models": {"main": model}}))


@dataclass(slots=True)
class App:
    """A process's part of a pipeline, open.

    Attributes:
        source: The pipeline.
        store: The run store.
        bus: The bus.
        runtime: Advances runs and hosts agents.
        agents: The agents hosted here.
        tracing: Where spans go.
    """

    source: Source
    store: RunStore
    bus: Bus
    runtime: Runtime
    agents: dict[str, Agent]
    tracing: SpanSink


def store_path(source: Source) -> str:
    """Return where the run store is: beside the pipeline file if it says so, else here."""
    url = source.settings.store.url
    if url is None:
        return str(Path(DEFAULT_STORE).absolute())
    if url == ":memory:":
        return url
    if "://" in url:
        hint = "give the path of an SQLite file"
        raise SettingsError(f"run stores such as {url!r} are not in this release", hint=hint)
    return str(source.folder / url)


def make_bus(source: Source) -> Bus:
    """Return the bus that the settings name, not yet open.

    Raises:
        SettingsError: It is not in this release, or a file that it names is missing.
    """
    entry = source.settings.bus
    if entry.kind == "memory":
        return MemoryBus()
    if entry.kind == "mqtt":
        hint = "use kafka, or memory: one process does all the work"
        raise SettingsError("bus.kind 'mqtt' is not in this release", hint=hint)
    # aiokafka costs 0.2 s to import, which those without a broker need not wait for.
    from bus.kafka import KafkaBus

    return KafkaBus(kafka_settings(entry, source.folder))


def trace_file(source: Source, path: str) -> Path:
    """Return the file for spans when no collector is configured: beside the run store."""
    if source.settings.tracing.file is not None:
        return source.folder / source.settings.tracing.file
    folder = Path.cwd() / ".cadenza" if path == ":memory:" else Path(path).parent
    return folder / "traces.jsonl"


@asynccontextmanager
async def open_app(
    source: Source,
    *,
    store: RunStore | None = None,
    bus: Bus | None = None,
    conducts: bool = True,
    hosts: Collection[str] | None = None,
    joins: bool = False,
    slots: int | None = None,
    watchdog_s: float | None = None,
) -> AsyncIterator[App]:
    """Open a process's part of a pipeline.

    Args:
        source: The pipeline.
        store: An open run store of the caller's, or None to open the configured one.
        bus: An open bus of the caller's, or None to open the configured one.
        conducts: Whether this process is the orchestrator, where there is one.
        hosts: Names of the agents that it hosts; None means all.
        joins: Whether what live processes do already (conduct, host an agent) is left to them,
            where the bus reaches them.
        slots: Attempts of one agent that may run here at once; None takes ``limits.slots``.
        watchdog_s: Seconds without a poll of the bus after which the process is ended, since the
            others would wait for it; None never ends it.

    Raises:
        SettingsError: Something that the settings name cannot be used.
        StoreError: The run store cannot be opened.
        BusError: The bus cannot be opened.
    """
    # The tracing SDK costs 0.1 s to import, which help and errors need not wait for.
    from tracing.setup import open_tracing

    settings = source.settings
    async with AsyncExitStack() as stack:
        path = await asyncio.to_thread(store_path, source)
        if store is None:
            store = await stack.enter_async_context(SqliteRunStore(path))
        if bus is None:
            bus = await stack.enter_async_context(make_bus(source))
        tracing = await asyncio.to_thread(
            open_tracing,
            namespace=settings.name,
            file=trace_file(source, path),
            capture_content=settings.tracing.capture_content,
        )
        stack.push_async_callback(tracing.close)
        spans = Spans(tracing, mode=settings.mode, pipeline=settings.name, system=settings.bus.kind)
        resources = await _open_resources(stack, source.resources)
        ingredients = Ingredients(
            source.folder, source.objects, resources, spans.of_agent, source.record
        )
        shared = settings.bus.kind != "memory"
        within_s = min(settings.limits.lease_s, settings.limits.grace_s)
        scope = Scope(source.hash, settings.mode)
        there = await store.present(scope, within_s=within_s) if joins and shared else frozenset()
        wanted = set(names_of(settings) if hosts is None else hosts) - there
        agents = await asyncio.to_thread(build_team, settings, ingredients, wanted)
        for agent in agents.values():
            stack.push_async_callback(agent.aclose)
        team = await asyncio.to_thread(descriptions, settings, ingredients)
        part = Part(
            name=settings.bus.namespace or settings.name,
            pipeline_hash=source.hash,
            mode=settings.mode,
            conducts=conducts and settings.mode == "orchestration" and ORCHESTRATOR not in there,
            team=team,
            roles=tuple(x for x in (PLANNER, SYNTHESIZER) if x not in team),
            slots=slots or settings.limits.slots,
            lease_s=settings.limits.lease_s,
            grace_s=settings.limits.grace_s,
            nested=settings.tracing.choreography_parent == "message",
            shared=shared,
            watches=joins and hosts is None,
        )
        runtime = Runtime(store, bus, agents, part=part, spans=spans)
        await runtime.open()
        stack.push_async_callback(runtime.close)
        if watchdog_s is not None:
            stack.enter_context(Watchdog(lambda: bus.last_poll_s, limit_s=watchdog_s))
        yield App(source, store, bus, runtime, agents, tracing)


async def _open_resources(stack: AsyncExitStack, resources: Mapping[str, Any]) -> dict[str, Any]:
    opened = {}
    for name, resource in resources.items():
        value = resource() if callable(resource) else resource
        if inspect.isawaitable(value):
            value = await value
        if isinstance(value, AbstractAsyncContextManager):
            value = await stack.enter_async_context(value)
        opened[name] = value
    return opened
