"""The model contract, kept by the litellm adapter against the fake server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from blockbuster import BlockBuster

from agents.errors import ModelLocked, ModelRefused
from agents.models.base import Model, ModelSettings
from agents.models.litellm import LiteLLM
from agents.models.lock import lock_models, unlock_models
from tests.contracts.model_contract import Answer, Asked, ModelContract
from tests.contracts.test_openai_compatible_model import shape_of
from tests.gear.fake_openai import FakeOpenAI

# litellm's own use of pydantic warns.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict:UserWarning"),
]


@pytest.fixture(autouse=True)
def its_own_loop_may_block(detector: BlockBuster) -> None:
    """litellm blocks now and then, which is why it has a thread and a loop of its own."""
    for function in detector.functions.values():
        function.can_block_in("agents/models/litellm.py", {"_ask"})


class TestLiteLLM(ModelContract):
    @asynccontextmanager
    async def model(self, *answers: Answer) -> AsyncIterator[Model]:
        async with FakeOpenAI([shape_of(a) for a in answers]) as server:
            settings = ModelSettings("openai/x", api_base=server.base, api_key="k", timeout_s=50)
            yield LiteLLM(settings)

    async def test_it_asks_once_and_leaves_retries_to_us(self) -> None:
        async with FakeOpenAI([shape_of(Answer(error="unavailable"))]) as server:
            model = LiteLLM(ModelSettings("openai/x", api_base=server.base, api_key="k"))
            with pytest.raises(Exception, match="503"):
                await Asked(model).ask()
            assert len(server.requests) == 1

    async def test_a_body_that_was_not_streamed_is_read(self) -> None:
        async with FakeOpenAI([shape_of(Answer("Sunny."))]) as server:
            settings = ModelSettings("openai/x", api_base=server.base, api_key="k", stream=False)
            assert (await Asked(LiteLLM(settings)).ask()).message.text == "Sunny."

    async def test_missing_usage_is_unknown_and_not_estimated(self) -> None:
        async with FakeOpenAI([shape_of(Answer("Sunny.", usage=None))]) as server:
            model = LiteLLM(ModelSettings("openai/x", api_base=server.base, api_key="k"))
            usage = (await Asked(model).ask()).usage
            assert (usage.input_tokens, usage.output_tokens) == (None, None)

    async def test_a_missing_key_is_named(self) -> None:
        unlock_models()
        with pytest.raises(ModelRefused, match="ANTHROPIC_API_KEY"):
            await Asked(LiteLLM(ModelSettings("anthropic/claude-sonnet-4-5"))).ask()

    async def test_it_is_locked_in_tests(self) -> None:
        lock_models()
        with pytest.raises(ModelLocked, match="scripted"):
            await Asked(LiteLLM(ModelSettings("anthropic/claude-sonnet-4-5"))).ask()
