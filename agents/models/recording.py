"""Records a model's replies as a script that replays them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path

from agents.messages import message_to_json
from agents.models.base import Model, ModelReply, ModelRequest, OnDelta


class Recording:
    """Appends each reply to a file of JSON lines, which a ``ScriptedModel`` replays.

    Args:
        model: The model to ask.
        path: The file, ``*.jsonl``; made when missing, together with its folder.
    """

    def __init__(self, model: Model, path: Path) -> None:
        self.name, self.dialect = model.name, model.dialect
        self.media_types, self.structured = model.media_types, model.structured
        self._model = model
        self._path = path

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Ask, and write the reply down before it is used."""
        reply = await self._model.complete(request, on_delta)
        await asyncio.to_thread(self._append, line_of(request, reply))
        return reply

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    def _append(self, line: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # One unbuffered write in append mode: lines of concurrent agents do not mix.
        with self._path.open("ab", buffering=0) as file:
            file.write(line.encode())


def line_of(request: ModelRequest, reply: ModelReply) -> str:
    """Return the line of a script that gives this reply to this request."""
    said = message_to_json(reply.message)
    del said["role"]
    data = {
        **asdict(request.key),
        **said,
        "usage": reply.usage.to_json(),
        "finish_reason": reply.finish_reason,
        "model": reply.model,
        "verbatim": True,
    }
    return json.dumps(data, ensure_ascii=False) + "\n"
