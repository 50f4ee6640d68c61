"""What options stand for: a pipeline with overrides, an open run store, a pinned pipeline."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.app import DEFAULT_STORE, Source
from orchestrator.errors import UsageError
from orchestrator.pipeline_file import load_settings
from orchestrator.settings import from_json, to_json
from orchestrator.settings_errors import SettingsError
from orchestrator.store.base import RunRow, RunStore
from orchestrator.store.sqlite import SqliteRunStore

_SHOWN = 5


def pairs(items: tuple[str, ...], option: str) -> dict[str, str]:
    """Return ``key=value`` options as a mapping.

    Raises:
        UsageError: One has not that form.
    """
    found: dict[str, str] = {}
    for item in items:
        key, sign, value = item.partition("=")
        if not sign or not key:
            raise UsageError(f"{option} {item!r} needs the form KEY=VALUE")
        found[key] = value
    return found


def load_source(
    path: str,
    settings: tuple[str, ...] = (),
    flags: Mapping[str, str | None] | None = None,
    store: str | None = None,
) -> Source:
    """Load a pipeline file with the overrides of the command line."""
    place = str(Path(store).absolute()) if store and store != ":memory:" else store
    given = {**(flags or {}), "store.url": place}
    overrides = pairs(settings, "--set") | {k: v for k, v in given.items() if v is not None}
    loaded = load_settings(path, overrides=overrides)
    return Source(loaded.settings, loaded.folder, loaded.path)


@asynccontextmanager
async def existing_store(path: str | None) -> AsyncIterator[RunStore]:
    """Open a run store that exists.

    Raises:
        UsageError: There is none at the path.
    """
    async with SqliteRunStore(await asyncio.to_thread(_existing, path)) as store:
        yield store


def _existing(path: str | None) -> str:
    where = Path(path or DEFAULT_STORE).absolute()
    if not where.exists():
        hint = "run a pipeline first, change to the folder where you did, or give --store PATH"
        raise UsageError(f"there is no run store at {str(where)!r}; {hint}")
    return str(where)


async def store_option(store: RunStore) -> str:
    """Return the option that finds a run store again, where it is needed."""
    return await asyncio.to_thread(_option, Path(path_of(store)))


def path_of(store: RunStore) -> str:
    """Return where a run store is."""
    return store.path if isinstance(store, SqliteRunStore) else ":memory:"


def _option(where: Path) -> str:
    if where == Path(DEFAULT_STORE).absolute():
        return ""
    here = Path.cwd()
    shown = where.relative_to(here) if where.is_relative_to(here) else where
    return f" --store {shlex.quote(str(shown))}"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A pipeline as a run pinned it.

    Attributes:
        source: The pipeline.
        changed: Settings that its file gives otherwise today, or why it cannot be read.
    """

    source: Source
    changed: str = ""


async def pinned(store: RunStore, row: RunRow) -> Pinned:
    """Return the pipeline of a run, whatever its file says now.

    What belongs to the place and not to the run (bus, traces) is taken from the file.

    Raises:
        UsageError: Its folder is gone, or it was said in Python.
    """
    body = await store.pipeline(row.pipeline_hash)
    return await asyncio.to_thread(_pinned, body, row, path_of(store))


def _pinned(body: Mapping[str, Any], row: RunRow, path: str) -> Pinned:
    folder = Path(body["folder"])
    if body["file"] is None:
        hint = "go on with it from there: Pipeline(…).follow(run)"
        raise UsageError(f"the pipeline of run {row.run} was said in Python; {hint}")
    if not folder.is_dir():
        raise UsageError(f"run {row.run} needs the folder {str(folder)!r}, which is gone")
    settings = from_json({**body["settings"], "mode": row.mode})
    file = Path(body["file"])
    place: dict[str, Any] = {"store": settings.store.model_copy(update={"url": path})}
    try:
        now = load_settings(file).settings
    except SettingsError as exc:
        changed = f"its file cannot be used now: {exc.message}"
    else:
        place |= {"bus": now.bus, "tracing": now.tracing}
        if not now.models:  # the run pinned the one that was discovered
            now = now.model_copy(update={"models": settings.models})
        changed = ", ".join(_differences(to_json(settings), to_json(now)))
    return Pinned(Source(settings.model_copy(update=place), folder, file), changed)


def _differences(pinned: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    paths = [path for path in _differing(pinned, now) if path != "mode"]
    more = len(paths) - _SHOWN
    return paths if more <= 0 else [*paths[:_SHOWN], f"{more} more"]


def _differing(a: Mapping[str, Any], b: Mapping[str, Any], under: str = "") -> Iterator[str]:
    for key in sorted({*a, *b}):
        one, other = a.get(key), b.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _differing(one, other, f"{under}{key}.")
        elif one != other:
            yield f"{under}{key}"
