"""A model, tools and a function that note on disk what they are asked, for tests of crashes."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from agents.context import RunContext
from agents.function import agent
from agents.models.base import ModelReply, ModelRequest, ModelSettings, OnDelta
from agents.models.scripted import ScriptedModel
from agents.tool_decorator import tool

_LONGEST_HOLD_S = 60
REPLIES = [
    {"agent": "failures", "tool_calls": [{"name": "look", "arguments": {"word": "ERROR"}}]},
    {"agent": "failures", "text": "failures: {{observation.-1}}"},
    {"agent": "jobs", "tool_calls": [{"name": "look", "arguments": {"word": "job"}}]},
    {"agent": "jobs", "tool_calls": [{"name": "page", "arguments": {"who": "owner"}}]},
    {"agent": "jobs", "text": "jobs: {{observation.0}}, {{observation.1}}"},
    {"agent": "correlator", "text": "the nightly job"},
    {"agent": "reporter", "tool_calls": [{"name": "publish", "arguments": {"title": "Report"}}]},
    {"agent": "reporter", "text": "Published: {{observation.-1}}"},
]


def folder() -> Path:
    """Return where everything of this test lies."""
    return Path(os.environ["FAULTS_FOLDER"])


def note(name: str, *words: Any) -> None:
    """Append a line that is on disk when this returns."""
    line = json.dumps([os.getpid(), *words]) + "\n"
    fd = os.open(folder() / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, line.encode())
        os.fsync(fd)
    finally:
        os.close(fd)


def noted(name: str) -> list[list[Any]]:
    """Return the lines of a file: process id and words each."""
    path = folder() / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def held(what: str) -> None:
    """Wait for the file ``released`` where FAULTS_HOLD names this; say that we do."""
    if os.environ.get("FAULTS_HOLD") == what:
        note("holding", what)
        for _ in range(_LONGEST_HOLD_S * 100):
            if (folder() / "released").exists():
                return
            await asyncio.sleep(0.01)


def crash(point: str) -> None:
    """Kill this process here if the driver asks for it."""
    bomb = getattr(crash, "bomb", None)
    if bomb is not None:
        bomb.at(point)


class WatchedModel:
    """A scripted model that notes each call, and each that was recorded before."""

    name = "scripted/watched"
    dialect: Any = "native"
    media_types: tuple[str, ...] = ("*/*",)
    structured = True

    def __init__(self) -> None:
        self._inner = ScriptedModel(REPLIES)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Note, and answer."""
        key = request.key
        note("asked", key.subtask, key.generation, key.call)
        if _recorded(key.subtask, key.generation, key.call):
            note("asked again", key.subtask, key.generation, key.call)
        reply = await self._inner.complete(request, on_delta)
        await held(f"{key.agent} {key.call}")
        return reply

    async def aclose(self) -> None:
        """Hold nothing."""


def _recorded(subtask: str, generation: int, call: int) -> bool:
    with closing(sqlite3.connect(folder() / "runs.db")) as db:
        rows = db.execute(
            "SELECT data FROM journal WHERE subtask = ? AND generation = ? AND kind = ?",
            (subtask, generation, "model_reply"),
        )
        return any(json.loads(data)["turn"] == call for (data,) in rows)


def model(settings: ModelSettings) -> WatchedModel:
    """Return the model that the pipeline names."""
    return WatchedModel()


@tool
async def look(word: str) -> str:
    """Search the logs.

    Args:
        word: What to look for.
    """
    await held(f"look {word}")
    return f"3 lines with {word}"


@tool(effect="idempotent")
async def page(who: str, ctx: RunContext) -> str:
    """Page somebody.

    Args:
        who: Whom.
    """
    crash("effect before")
    note("paged", ctx.idempotency_key)
    crash("effect after")
    return f"{who} was paged"


@tool(effect="guarded")
async def publish(title: str, ctx: RunContext) -> str:
    """Publish a report.

    Args:
        title: Its title.
    """
    crash("effect before")
    note("published", ctx.idempotency_key)
    crash("effect after")
    return f"{title} is out"


@agent
async def check(inputs: dict[str, Any]) -> dict[str, Any]:
    """Checks by the clock."""
    note("checked", "by the clock")
    return {"holds": True, "of": sorted(inputs)}
