"""Without models in the pipeline, what is there is used, or the error says how to get one."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port

from orchestrator.discovery import PROVIDERS, discover_model
from orchestrator.settings_errors import SettingsError

Serve = Callable[[web.Response | None], AbstractAsyncContextManager[int]]


@asynccontextmanager
async def serve(response: web.Response | None) -> AsyncIterator[int]:
    """A server on loopback; without a response it never answers."""
    gone = asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        assert request.path == "/v1/models"
        if response is None:
            await gone.wait()
            return web.Response()
        return response

    app = web.Application()
    app.router.add_get("/{tail:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    port = unused_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield port
    finally:
        gone.set()
        await runner.cleanup()


def models(*names: str) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": name} for name in names]})


async def test_a_providers_key_is_used_and_stays_in_the_environment() -> None:
    found = await discover_model({"ANTHROPIC_API_KEY": "sk-1", "MISTRAL_API_KEY": "x"}, servers=())
    assert found.model.model.startswith("anthropic/")
    assert found.model.api_key == "${ANTHROPIC_API_KEY}"
    assert found.reason == "ANTHROPIC_API_KEY is set"


@pytest.mark.parametrize("model", sorted({model for _, model in PROVIDERS}))
def test_each_default_model_is_in_the_price_table_and_calls_tools(model: str) -> None:
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    table = json.loads(
        (Path(spec.origin).parent / "model_prices_and_context_window_backup.json").read_text(
            "utf-8"
        )
    )
    provider, _, bare = model.partition("/")
    if provider == "openrouter":  # it routes by itself, and so has no one price
        assert bare == "openrouter/auto"
        return
    entry = table.get(model) or table[bare]
    assert entry["litellm_provider"] == provider
    assert entry["supports_function_calling"]
    assert "deprecation_date" not in entry


async def test_a_server_on_this_host_is_used_when_no_key_is_set() -> None:
    async with serve(models("nomic-embed-text", "gemma3:4b", "qwen3")) as port:
        servers = [("Nobody", unused_port(), "x"), ("Ollama", port, "ollama")]
        found = await discover_model({"OPENAI_API_KEY": ""}, servers=servers)
    assert found.model.model == "ollama/gemma3:4b"
    assert found.model.api_base == f"http://127.0.0.1:{port}/v1"
    assert found.reason == f"Ollama answers on port {port}"


async def test_servers_are_asked_at_once_and_the_first_listed_wins() -> None:
    async with serve(None) as silent, serve(models("a")) as one, serve(models("b")) as two:
        servers = [("S", silent, "s"), ("T", silent, "t"), ("One", one, "p"), ("Two", two, "q")]
        async with asyncio.timeout(0.95):  # two silent ones after the other would take a second
            found = await discover_model({}, servers=servers)
    assert found.model.model == "p/a"


@pytest.mark.parametrize(
    "response",
    [
        web.Response(text="<html>hello</html>", content_type="text/html"),
        web.Response(status=404, text="no"),
        web.json_response([1]),
        web.json_response({"data": [{"name": "x"}, 3, {"id": ""}]}),
        web.json_response({"data": "x"}),
        web.Response(body=b"\xff\xfe"),
    ],
    ids=["html", "404", "list", "no ids", "text", "not utf-8"],
)
async def test_other_servers_on_these_ports_are_passed_over(response: web.Response) -> None:
    async with serve(response) as port:
        with pytest.raises(SettingsError, match=f"no server answers on ports {port}"):
            await discover_model({}, servers=[("vLLM", port, "hosted_vllm")])


async def test_with_nothing_there_the_error_says_how_to_get_one() -> None:
    with pytest.raises(SettingsError) as caught:
        await discover_model({}, servers=[("Ollama", unused_port(), "ollama")])
    for words in ("export OPENAI_API_KEY=", "ollama pull", "models: {main: {model:"):
        assert words in str(caught.value)
