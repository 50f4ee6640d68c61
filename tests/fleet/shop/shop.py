"""A model and a tool with an effect that note on disk who called them, and may take their time."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from agents.context import RunContext
from agents.errors import ModelUnavailable
from agents.function import agent
from agents.models.base import ModelReply, ModelRequest, ModelSettings, OnDelta
from agents.models.scripted import ScriptedModel
from agents.tool_decorator import tool

REPLIES = [
    {"agent": "shipper", "tool_calls": [{"name": "ship", "arguments": {"order": "o-7"}}]},
    {"agent": "shipper", "text": "{{observation.-1}}"},
    {"agent": "clerk", "tool_calls": [{"name": "pay", "arguments": {"usd": 5}}]},
    {"agent": "clerk", "text": "{{observation.-1}}"},
    {"agent": "writer", "text": "The order is on its way."},
]


def folder() -> Path:
    """Return where everything of this fleet lies."""
    return Path(os.environ["FLEET_FOLDER"])


def note(name: str, *words: Any) -> None:
    """Append a line that is on disk when this returns."""
    fd = os.open(folder() / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, (json.dumps([os.getpid(), *words]) + "\n").encode())
        os.fsync(fd)
    finally:
        os.close(fd)


class NotingModel:
    """A scripted model that notes each call."""

    name = "scripted/shop"
    dialect: Any = "native"
    media_types: tuple[str, ...] = ("*/*",)
    structured = True

    def __init__(self) -> None:
        self._inner = ScriptedModel(REPLIES)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Note, and answer."""
        key = request.key
        await asyncio.to_thread(note, "asked", key.subtask, key.call)
        return await self._inner.complete(request, on_delta)

    async def aclose(self) -> None:
        """Hold nothing."""


def model(settings: ModelSettings) -> NotingModel:
    """Return the model of the pipeline."""
    return NotingModel()


@tool(effect="idempotent", timeout_s=60)
async def ship(order: str, ctx: RunContext) -> str:
    """Send a parcel, once for each key.

    It takes until the file ``go`` is there, or FLEET_SHIP_S seconds.
    """
    await asyncio.to_thread(note, "shipping", ctx.run)
    for _ in range(int(float(os.environ.get("FLEET_SHIP_S", "0")) * 50)):
        if await asyncio.to_thread((folder() / "go").exists):
            break
        await asyncio.sleep(0.02)
    await asyncio.to_thread(_send, ctx)
    return f"parcel of {order}"


def _send(ctx: RunContext) -> None:
    try:
        (folder() / f"parcel-{ctx.run}-{ctx.idempotency_key}").touch(exist_ok=False)
    except FileExistsError:
        note("sent again", ctx.run)
    else:
        note("sent", ctx.run)


@agent
async def check(task: str, ctx: RunContext) -> str:
    """Find the parcel."""
    found = await asyncio.to_thread(lambda: len([*folder().glob(f"parcel-{ctx.run}-*")]))
    return f"{found} parcel"


@tool(effect="guarded", needs_approval=True)
async def pay(usd: int, ctx: RunContext) -> str:
    """Pay."""
    await asyncio.to_thread(note, "paid", ctx.run)
    return f"{usd} dollars"


@agent
async def flaky(task: str, ctx: RunContext) -> str:
    """Fail the first time."""
    try:
        await asyncio.to_thread((folder() / f"failed-{ctx.run}").touch, exist_ok=False)
    except FileExistsError:
        return "fine"
    raise ModelUnavailable("not yet")


@agent
async def parcel(task: str, ctx: RunContext) -> str:
    """Send a parcel, slowly."""
    await asyncio.to_thread(note, "slow", ctx.run, ctx.subtask)
    for _ in range(60 * 50):
        if await asyncio.to_thread((folder() / "go").exists):
            break
        await asyncio.sleep(0.02)
    return "sent"
