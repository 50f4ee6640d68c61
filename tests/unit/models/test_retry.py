"""Asking again and asking another, with what that costs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.errors import (
    BrokenStream,
    ContextOverflow,
    EmptyReply,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from agents.models.base import Delta, Model, ModelRequest, ModelSettings
from agents.models.openai_compatible import Endpoint, OpenAICompatible
from agents.models.retry import Fallback, Retrying
from agents.models.scripted import ScriptedModel
from agents.usage import Usage
from tests.gear.fake_openai import FakeOpenAI, Shape, chunk, text
from tests.unit.models.shapes import request


def failing(error: dict[str, Any], **reply: Any) -> ScriptedModel:
    return ScriptedModel([{"text": "Sunny.", "error": error} | reply])


def retrying(model: Model, retries: int = 2, **options: Any) -> Retrying:
    options = {"timeout_s": 5.0, "pause_s": 0.0} | options
    return Retrying(model, retries, **options)


@pytest.mark.parametrize("kind", ["unavailable", "broken_stream"])
async def test_a_passing_failure_is_asked_again_and_noted(kind: str) -> None:
    reply = await retrying(failing({"kind": kind, "times": 2})).complete(request())
    assert reply.message.text == "Sunny."
    assert len(reply.notes) == 2
    assert kind in reply.notes[0]


@pytest.mark.parametrize(
    ("kind", "error"),
    [("refused", ModelRefused), ("context_overflow", ContextOverflow), ("empty", EmptyReply)],
)
async def test_what_will_not_pass_is_not_asked_again(kind: str, error: type[ModelError]) -> None:
    with pytest.raises(error):
        await retrying(failing({"kind": kind, "times": 1})).complete(request())


async def test_the_last_error_is_raised_with_all_that_was_paid() -> None:
    with pytest.raises(BrokenStream) as caught:
        await retrying(failing({"kind": "broken_stream"})).complete(request())
    assert caught.value.usage == Usage(3, 0, None, None, 0, None)


async def test_paid_failures_count_in_the_reply_and_unpaid_ones_do_not() -> None:
    usage = {"input_tokens": 5, "output_tokens": 2}
    broken = failing({"kind": "broken_stream", "times": 1}, usage=usage)
    assert (await retrying(broken).complete(request())).usage == Usage(2, 0, None, None, 0, None)
    busy = failing({"kind": "unavailable", "times": 1}, usage=usage)
    assert (await retrying(busy).complete(request())).usage == Usage(1, 0, 5, 2, 0, 0.0)


async def test_a_price_is_put_on_replies_that_have_none() -> None:
    model = ScriptedModel([{"text": "x", "usage": {"input_tokens": 5, "cost_usd": None}}])
    priced = retrying(model, cost=lambda usage: (usage.input_tokens or 0) * 2.0)
    assert (await priced.complete(request())).usage.cost_usd == 10.0


async def test_shown_text_of_a_broken_stream_is_taken_back() -> None:
    shown: list[Delta] = []
    broken = Shape((chunk({"content": "Rai"}), {"error": {"message": "exploded"}}))
    async with FakeOpenAI([broken, text("Sunny.")]) as server:
        from_server = await _ask_server(server, shown)
    assert from_server == "Sunny."
    assert shown == [Delta("Rai"), Delta(discard=True), Delta("Sunny.")]


async def _ask_server(server: FakeOpenAI, shown: list[Delta]) -> str:
    model = retrying(OpenAICompatible(ModelSettings("p/m"), Endpoint(server.base, "m")))
    reply = await model.complete(request(), shown.append)
    await model.aclose()
    return reply.message.text


async def test_retry_after_is_honoured_and_never_beyond_the_deadline() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    soon = {"kind": "unavailable", "times": 1, "retry_after_s": 0.05}
    assert (await retrying(failing(soon)).complete(request())).message.text == "Sunny."
    assert loop.time() - began >= 0.05
    late = {"kind": "unavailable", "times": 1, "retry_after_s": 3600}
    with pytest.raises(ModelUnavailable) as caught:
        await retrying(failing(late)).complete(request())
    assert caught.value.retry_after_s == 3600
    assert loop.time() - began < 4


async def test_pauses_double_and_are_jittered() -> None:
    model = retrying(failing({"kind": "unavailable"}), 2, pause_s=0.01, jitter=lambda: 0.5)
    began = asyncio.get_running_loop().time()
    with pytest.raises(ModelUnavailable):
        await model.complete(request())
    assert asyncio.get_running_loop().time() - began >= 0.03


async def test_the_deadline_holds_for_all_tries_together() -> None:
    slow = failing({"kind": "unavailable"}, delay_s=30)
    with pytest.raises(ModelUnavailable, match=r"0\.05 s") as caught:
        await retrying(slow, 9, timeout_s=0.05).complete(request())
    assert caught.value.usage.llm_calls == 1


async def test_cancelling_is_not_retried() -> None:
    asked = asyncio.Event()

    async def wait(_: ModelRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    task = asyncio.create_task(retrying(ScriptedModel(wait)).complete(request()))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("kind", ["unavailable", "broken_stream"])
async def test_the_fallback_answers_and_is_named(kind: str) -> None:
    first = failing({"kind": kind})
    second = ScriptedModel(["Cloudy."], name="scripted/second")
    shown: list[Delta] = []
    reply = await Fallback([first, second]).complete(request(), shown.append)
    assert (reply.message.text, reply.model) == ("Cloudy.", "scripted/second")
    assert kind in reply.notes[0]
    assert "scripted/second" in reply.notes[1]
    assert reply.usage.llm_calls == (2 if kind == "broken_stream" else 1)
    assert any(d.discard for d in shown) == (kind == "broken_stream")


@pytest.mark.parametrize(
    ("kind", "error"),
    [("refused", ModelRefused), ("context_overflow", ContextOverflow), ("empty", EmptyReply)],
)
async def test_other_errors_do_not_fall_back(kind: str, error: type[ModelError]) -> None:
    with pytest.raises(error):
        await Fallback([failing({"kind": kind}), ScriptedModel(["x"])]).complete(request())


async def test_the_last_fallbacks_error_is_raised() -> None:
    models = [failing({"kind": "broken_stream"}), failing({"kind": "unavailable"})]
    with pytest.raises(ModelUnavailable) as caught:
        await Fallback(models).complete(request())
    assert caught.value.usage.llm_calls == 1


def test_fallbacks_need_one_dialect_and_take_what_all_take() -> None:
    both = [
        ScriptedModel(["x"], media_types=("image/*", "audio/*")),
        ScriptedModel(["x"], media_types=("image/*",), structured=False),
    ]
    assert Fallback(both).media_types == ("image/*",)
    assert not Fallback(both).structured
    with pytest.raises(ValueError, match="one dialect"):
        Fallback([*both, ScriptedModel(["x"], dialect="text")])
    with pytest.raises(ValueError, match="one dialect"):
        Fallback([])
