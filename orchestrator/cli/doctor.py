"""``cadenza doctor``: what is ready to use on this machine, and what to do about the rest."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from agents.react import ReActAgent
from bus.errors import BusError
from orchestrator.app import DEFAULT_STORE, Source, make_bus, store_path
from orchestrator.cli.exits import USAGE
from orchestrator.cli.messages import team_of
from orchestrator.cli.screen import count
from orchestrator.cli.sources import load_source
from orchestrator.discovery import PROVIDERS, discover_model
from orchestrator.pipeline import Pipeline, needs_model
from orchestrator.plan_review import ReviewedPlanner
from orchestrator.settings import ModelEntry
from orchestrator.settings_errors import SettingsError
from orchestrator.store.errors import StoreError
from orchestrator.store.sqlite import SqliteRunStore

Row = tuple[bool, str, str]


def doctor(pipeline: str | None, store: str | None) -> int:
    """Look around and return 0, or 2 when the pipeline cannot be run."""
    for row in _machine():
        _say(row)
    if pipeline is None:
        _say(_store(store or DEFAULT_STORE))
        return 0
    try:
        source = load_source(pipeline, store=store)
        _say((True, "pipeline", f"{pipeline} is valid: {source.settings.name}"))
        stored = _store(store_path(source))
        _say(stored)
        for row in (*asyncio.run(_bus(source)), *asyncio.run(_team(source))):
            _say(row)
    except SettingsError as exc:
        _say((False, "pipeline", str(exc)))
        return USAGE
    return 0 if stored[0] else USAGE


def _say(row: Row) -> None:
    good, what, told = row
    mark = click.style("ok", fg="green") if good else click.style("--", fg="yellow")
    click.echo(f"{mark}  {what:<10}  {told}".replace("\n", f"\n{'':>16}"))


def _machine() -> Iterator[Row]:
    yield True, "cadenza", _version("cadenza-agents")
    yield True, "python", f"{platform.python_version()} on {platform.system()}"
    yield _litellm()
    try:
        ZoneInfo("Asia/Tokyo")
        yield True, "time zones", "known"
    except ZoneInfoNotFoundError:
        yield False, "time zones", "unknown; install tzdata, or the clock tool knows UTC only"
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    yield True, "traces", f"go to {endpoint}" if endpoint else "go to a file beside the run store"
    keys = [name for name, _ in PROVIDERS if os.environ.get(name)]
    try:
        found = asyncio.run(discover_model(os.environ))
        yield True, "models", f"{found.model.model} would be used: {found.reason}"
        if keys[1:]:
            yield True, "", f"also set: {', '.join(keys[1:])}"
    except SettingsError as exc:
        yield False, "models", str(exc)


def _litellm() -> Row:
    if find_spec("litellm") is None:
        told = "missing; only OpenAI-compatible servers can be asked: pip install litellm"
        return False, "litellm", told
    return True, "litellm", f"{_version('litellm')}, for providers with an API of their own"


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "of unknown version"


def _store(path: str) -> Row:
    if path == ":memory:":
        return True, "run store", "in memory; it ends with the process"
    where = Path(path).absolute()
    if not where.exists():
        folder = next(parent for parent in where.parents if parent.exists())
        good = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
        told = f"{where} will be made" if good else f"{folder} cannot be written; give --store PATH"
        return good, "run store", told
    try:
        number = asyncio.run(_count(str(where)))
    except StoreError as exc:
        return False, "run store", str(exc)
    return True, "run store", f"{where}, {count(number, 'run')}"


async def _count(path: str) -> int:
    async with SqliteRunStore(path) as store:
        return len(await store.runs(limit=1_000_000))


async def _bus(source: Source) -> list[Row]:
    entry = source.settings.bus
    if entry.kind == "memory":
        return []
    try:
        async with make_bus(source):
            return [(True, "bus", f"{entry.kind} answers at {entry.url}")]
    except BusError as exc:
        return [(False, "bus", str(exc))]


async def _team(source: Source) -> list[Row]:
    rows: list[Row] = []
    try:
        source = (await Pipeline.of(source).with_some_model()).source
    except SettingsError:
        rows.append((False, "model", "the pipeline names none, and there is none; see models"))
        source = source.with_model(ModelEntry(model="openai/none"))
    if needs_model(source.settings):
        models = source.settings.models.items()
        rows += [(True, "model", f"{alias}: {entry.model or entry.use}") for alias, entry in models]
    async with team_of(source) as (agents, _):
        for name, agent in agents.items():
            inner = agent.planner if isinstance(agent, ReviewedPlanner) else agent
            told = "a function"
            if isinstance(inner, ReActAgent):
                told = f"tools {', '.join(tool.name for tool in inner.tools) or 'none'}"
            rows.append((True, "agent", f"{name}: {told}"))
    return rows
