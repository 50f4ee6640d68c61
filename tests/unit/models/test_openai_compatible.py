"""The OpenAI-compatible adapter against a strict server on loopback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from agents.errors import (
    BrokenStream,
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from agents.messages import ToolMessage, user
from agents.models.base import Delta, ModelReply, ModelRequest, ModelSettings
from agents.models.openai_compatible import Endpoint, OpenAICompatible
from tests.gear.fake_openai import FakeOpenAI, Script, Shape, call, calls, chunk, deltas, text
from tests.unit.models.shapes import CASES, PARIS, Case, part, request
from tests.unit.models.test_assembler import check

UNKNOWN = (1, None, None)


async def ask(
    script: Script,
    asked: ModelRequest | None = None,
    *,
    on_delta: Callable[[Delta], None] | None = None,
    inspect: Callable[[FakeOpenAI], None] | None = None,
    **options: Any,
) -> ModelReply:
    async with FakeOpenAI(script) as server:
        settings = ModelSettings("hosted_vllm/m", **{"timeout_s": 5.0} | options)
        endpoint = Endpoint(server.base, "m", "secret-key-1")
        model = OpenAICompatible(settings, endpoint)
        try:
            return await model.complete(asked or request(), on_delta)
        finally:
            await model.aclose()
            if inspect is not None:
                inspect(server)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
async def test_an_odd_shape_survives_http_and_a_strict_replay(case: Case) -> None:
    for streamed in (True,) if case.only_stream else (True, False):
        reply = await ask([case.shape], stream=streamed)
        check(case, reply)
        answers = [ToolMessage(c.id, c.name, "Observation: ok") for c in reply.message.tool_calls]
        again = request(user("hi"), reply.message, *answers)
        assert (await ask([text("done")], again)).message.text == "done"


@pytest.mark.parametrize("split", [1, 7])
async def test_bytes_may_come_in_any_pieces(split: int) -> None:
    shown: list[Delta] = []
    reply = await ask([text("Grüße, 世界 😀", split=split)], on_delta=shown.append)
    assert reply.message.text == "Grüße, 世界 😀" == "".join(d.text for d in shown)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)


async def test_a_body_in_place_of_a_stream_is_read() -> None:
    body = {"choices": [{"message": {"content": "Sunny."}, "finish_reason": "stop"}]}
    assert (await ask([Shape(body=body)])).message.text == "Sunny."


async def test_missing_usage_is_unknown() -> None:
    for streamed in (True, False):
        usage = (await ask([text("Sunny.", usage=None)], stream=streamed)).usage
        assert (usage.llm_calls, usage.input_tokens, usage.output_tokens) == UNKNOWN
        assert usage.cost_usd is None


CALL = part(0, id="c1", name="ping", arguments='{"x": "a"}')


@pytest.mark.parametrize(
    "shape",
    [
        Shape((chunk({"content": "par"}), {"error": {"message": "exploded"}})),
        Shape((chunk(CALL), b'event: error\ndata: {"message": "exploded"}\n\n')),
        deltas(part(0, id="c1", name="ping", arguments='{"x"'), finish=None, done=False, drop=True),
        deltas(CALL, finish=None, done=False),
        deltas(CALL, finish=None, done=False, usage=None, drop=True),
        Shape((chunk(CALL), b'data: {"choices": [\n\n')),
    ],
    ids=["error frame", "error event", "drop", "no end", "drop after arguments", "no JSON"],
)
async def test_a_stream_that_breaks_is_broken_and_paid(shape: Shape) -> None:
    with pytest.raises(BrokenStream) as caught:
        await ask([shape])
    usage = caught.value.usage
    assert (usage.llm_calls, usage.input_tokens, usage.output_tokens) == UNKNOWN


async def test_a_body_that_breaks_off_is_broken() -> None:
    with pytest.raises(BrokenStream):
        await ask([text("x" * 500, drop=True)], stream=False)


async def test_a_break_after_the_finish_reason_is_an_end() -> None:
    reply = await ask([text("Sunny.", usage=None, done=False, drop=True)])
    assert reply.message.text == "Sunny."


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message} | more}


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (429, error("slow down"), ModelUnavailable, ("slow down", "429")),
        (500, error("boom"), ModelUnavailable, ("boom",)),
        (503, b"<html>busy</html>", ModelUnavailable, ("busy",)),
        (401, error("bad key secret-key-1"), ModelRefused, ("***", "API key")),
        (404, {"detail": "Not Found"}, ModelRefused, ("api_base", "/v1")),
        (307, b"", ModelRefused, ("api_base",)),
        (400, error("stream is not supported"), ModelRefused, ("stream: false",)),
        (400, error("m does not support tools"), ModelRefused, ("dialect: text",)),
        (400, error("Unknown", param="response_format"), ModelRefused, ("output schema",)),
        (400, error("use max_completion_tokens, not max_tokens"), ModelRefused, ("extra_body",)),
        (400, error("x", code="context_length_exceeded"), ContextOverflow, ("x",)),
        (400, error("This model's maximum context length is 8192"), ContextOverflow, ("8192",)),
        (500, error("the request exceeds the available context size"), ContextOverflow, ()),
        (200, error("no such model", code=404), ModelRefused, ("no such model",)),
        (200, error("invalid key", type="authentication_error"), ModelRefused, ("invalid",)),
        (200, error("Overloaded", type="overloaded_error"), ModelUnavailable, ("Overloaded",)),
        (200, {"error": "busy, try again"}, ModelUnavailable, ("busy",)),
        (200, error("prompt is too long"), ContextOverflow, ()),
    ],
)
async def test_an_error_of_the_server_becomes_ours(
    status: int, body: Any, kind: type[ModelError], words: tuple[str, ...]
) -> None:
    with pytest.raises(ModelError) as caught:
        await ask([Shape(status=status, body=body)])
    assert type(caught.value) is kind
    for word in words:
        assert word in str(caught.value)
    assert "secret-key-1" not in str(caught.value)
    assert caught.value.usage.llm_calls == (1 if status == 200 else 0)


async def test_retry_after_is_read_in_seconds_and_as_a_date() -> None:
    for value, low, high in (
        ("7", 7, 7),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("x", None, None),
    ):
        with pytest.raises(ModelUnavailable) as caught:
            await ask([Shape(status=429, body={}, headers={"Retry-After": value})])
        assert caught.value.retry_after_s in (low, high)


async def test_the_deadline_ends_a_silent_and_a_dripping_server() -> None:
    silent = Shape(hang=True, finish=None, done=False, usage=None)
    for shape, streamed in ((silent, True), (text("x", hang=True), False)):
        began = time.monotonic()
        with pytest.raises(ModelUnavailable, match="timeout_s") as caught:
            await ask([shape], stream=streamed, timeout_s=0.1)
        assert time.monotonic() - began < 3
        assert caught.value.usage.llm_calls == 1
    drip = Shape((b": keep-alive\n\n" * 200_000,), split=2)
    with pytest.raises(ModelUnavailable, match="timeout_s"):
        await ask([drip], timeout_s=0.1)


async def test_a_server_that_never_closes_a_finished_stream_does_not_hold_the_reply() -> None:
    began = time.monotonic()
    assert (await ask([text("Sunny.", hang=True)], timeout_s=20)).message.text == "Sunny."
    assert time.monotonic() - began < 2


async def test_an_unreachable_server_is_named_and_costs_nothing() -> None:
    model = OpenAICompatible(ModelSettings("p/m"), Endpoint("http://127.0.0.1:1/v1", "m"))
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:1.*running") as caught:
        await model.complete(request())
    assert caught.value.usage.llm_calls == 0
    await model.aclose()


async def test_a_bad_url_is_refused() -> None:
    model = OpenAICompatible(ModelSettings("p/m"), Endpoint("ftp://127.0.0.1/v1", "m"))
    with pytest.raises(ModelRefused, match="api_base"):
        await model.complete(request())
    await model.aclose()


async def test_what_is_sent_holds_settings_and_key() -> None:
    def inspect(server: FakeOpenAI) -> None:
        (sent,) = server.requests
        assert sent["temperature"] == 0
        assert sent["max_tokens"] == 5
        assert sent["seed"] == 1
        assert sent["stream_options"] == {"include_usage": True}
        assert server.headers[0]["Authorization"] == "Bearer secret-key-1"

    options: dict[str, Any] = {"temperature": 0, "max_tokens": 5, "extra_body": {"seed": 1}}
    await ask([text("x")], inspect=inspect, **options)


async def test_a_cancelled_call_is_cancelled() -> None:
    async with FakeOpenAI([text("x", hang=True, finish=None, done=False)]) as server:
        model = OpenAICompatible(ModelSettings("p/m"), Endpoint(server.base, "m"))
        shown = asyncio.Event()
        task = asyncio.create_task(model.complete(request(), lambda _: shown.set()))
        await shown.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.aclose()
        await model.aclose()


async def test_a_connection_is_used_again() -> None:
    async with FakeOpenAI([text("x")]) as server:
        model = OpenAICompatible(ModelSettings("p/m"), Endpoint(server.base, "m"))
        for _ in range(3):
            await model.complete(request())
        assert len(set(server.peers)) == 1
        await model.aclose()


def test_the_same_model_works_in_three_event_loops_and_leaves_nothing_open() -> None:
    model: OpenAICompatible | None = None

    async def once() -> str:
        nonlocal model
        async with FakeOpenAI([calls(call("get_weather", PARIS))]) as server:
            if model is None:
                model = OpenAICompatible(ModelSettings("p/m"), Endpoint(server.base, "m"))
            # The server's port changes from loop to loop; the model's connections must too.
            model._url = f"{server.base}/chat/completions"
            return (await model.complete(request())).message.tool_calls[0].name

    assert [asyncio.run(once()) for _ in range(3)] == ["get_weather"] * 3
