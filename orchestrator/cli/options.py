"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from orchestrator.app import DEFAULT_STORE, Source
from orchestrator.errors import UsageError
from orchestrator.pipeline_file import load_settings
from orchestrator.settings import from_json
from orchestrator.store.base import RunRow, RunStore
from orchestrator.store.sqlite import SqliteRunStore

F = TypeVar("F", bound=Callable[..., Any])


def store_option(command: F) -> F:
    """Add ``--store``."""
    option = click.option(
        "--store",
        "store",
        metavar="PATH",
        envvar="CADENZA_STORE__URL",
        help=f"Run store (default: {DEFAULT_STORE} in this folder).",
    )
    return option(command)


def set_option(command: F) -> F:
    """Add ``--set``, ``--mode`` and ``--bus``."""
    for option in (
        click.option("--bus", help="Override bus.kind."),
        click.option("--mode", help="Override mode: orchestration or choreography."),
        click.option(
            "--set",
            "settings",
            metavar="KEY=VALUE",
            multiple=True,
            help="Override any setting, for example limits.lease_s=5.",
        ),
    ):
        command = option(command)
    return command


def overrides_of(
    settings: tuple[str, ...], mode: str | None, bus: str | None, store: str | None
) -> dict[str, str]:
    """Return dotted paths to values.

    Raises:
        UsageError: A ``--set`` has no ``=``.
    """
    found: dict[str, str] = {}
    for item in settings:
        key, sign, value = item.partition("=")
        if not sign:
            raise UsageError(f"--set {item!r} needs the form key=value")
        found[key] = value
    if mode is not None:
        found["mode"] = mode
    if bus is not None:
        found["bus.kind"] = bus
    if store is not None:
        found["store.url"] = str(Path(store).absolute())
    return found


def load_source(path: str, overrides: Mapping[str, str]) -> Source:
    """Load a pipeline file with overrides."""
    loaded = load_settings(path, overrides=overrides)
    return Source(loaded.settings, loaded.folder, loaded.path)


@asynccontextmanager
async def existing_store(path: str | None) -> AsyncIterator[RunStore]:
    """Open a run store that exists.

    Raises:
        UsageError: There is none at the path.
    """
    where = Path(path or DEFAULT_STORE).absolute()
    if not where.is_file():
        raise UsageError(
            f"there is no run store at {str(where)!r}; run a pipeline first, or give --store"
        )
    async with SqliteRunStore(str(where)) as store:
        yield store


async def pinned_source(store: RunStore, row: RunRow) -> Source:
    """Return the pipeline as a run pinned it, whatever its file says now.

    Raises:
        UsageError: Its folder is gone, or it was said in Python.
    """
    body = await store.pipeline(row.pipeline_hash)
    folder = Path(body["folder"])
    if not folder.is_dir():
        raise UsageError(
            f"run {row.run} needs the folder {str(folder)!r} of its pipeline, which is gone"
        )
    if body["file"] is None:
        raise UsageError(
            f"the pipeline of run {row.run} was said in Python; resume it from there"
        )
    settings = from_json({**body["settings"], "mode": row.mode})
    file = Path(body["file"])
    path = getattr(store, "path", None)
    place = settings.store.model_copy(update={"url": path})
    settings = settings.model_copy(update={"store": place})
    return replace(Source(settings, folder, file), resources={})


def cwd_hint(store: str | None) -> str:
    """Return the option that finds the same store again, where it is needed."""
    given = store or os.environ.get("CADENZA_STORE__URL")
    return "" if given is None else f" --store {given}"
