"""The model contract, kept by the scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents.models.base import Model
from agents.models.scripted import ScriptedModel
from tests.contracts.model_contract import Answer, ModelContract


class TestScripted(ModelContract):
    @asynccontextmanager
    async def model(self, *answers: Answer) -> AsyncIterator[Model]:
        names = ("input_tokens", "output_tokens", "cached_tokens")
        replies = [
            {
                "text": a.text,
                "tool_calls": [{"name": n, "arguments": v, "id": i} for n, v, i in a.calls],
                "usage": dict(zip(names, a.usage or (), strict=False)),
                "error": a.error and {"kind": a.error},
            }
            for a in answers
        ]
        yield ScriptedModel(replies, media_types=())
