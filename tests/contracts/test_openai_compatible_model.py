"""The model contract, kept by the OpenAI-compatible adapter, streamed and not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents.models.base import Model, ModelSettings
from agents.models.openai_compatible import Endpoint, OpenAICompatible
from tests.contracts.model_contract import Answer, ModelContract
from tests.gear.fake_openai import FakeOpenAI, Shape, call, calls, text

_ERRORS = {
    "unavailable": (503, "overloaded"),
    "refused": (400, "no such parameter"),
    "context_overflow": (400, "maximum context length is 8192 tokens"),
}


def shape_of(answer: Answer) -> Shape:
    """Return what the fake server sends to give an answer."""
    if answer.error in _ERRORS:
        status, message = _ERRORS[answer.error]
        return Shape(status=status, body={"error": {"message": message}})
    usage = None
    if answer.usage is not None:
        tokens_in, tokens_out, cached = answer.usage
        usage = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
    if answer.error == "broken_stream":
        return text(answer.text, finish=None, done=False, drop=True, usage=None)
    if answer.calls:
        return calls(*(call(n, a, i) for n, a, i in answer.calls), usage=usage)
    return text(answer.text, usage=usage)


class TestStreamed(ModelContract):
    stream = True

    @asynccontextmanager
    async def model(self, *answers: Answer) -> AsyncIterator[Model]:
        async with FakeOpenAI([shape_of(a) for a in answers]) as server:
            settings = ModelSettings("hosted_vllm/m", stream=self.stream, timeout_s=10)
            yield OpenAICompatible(settings, Endpoint(server.base, "m"))


class TestWhole(TestStreamed):
    stream = False
