"""The builder: which adapter, which server, which capabilities."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents.errors import ModelLocked
from agents.models.base import ModelSettings
from agents.models.build import build_model
from agents.models.lock import is_loopback, lock_models, models_locked, unlock_models
from tests.gear.fake_openai import FakeOpenAI, Shape, text
from tests.unit.models.shapes import request


def adapter(settings: ModelSettings) -> Any:
    return build_model(settings)._model  # type: ignore[attr-defined]  # what it wraps is asked for


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (ModelSettings("openai/gpt-4o"), "https://api.openai.com/v1"),
        (ModelSettings("ollama/gemma3:4b"), "http://127.0.0.1:11434/v1"),
        (ModelSettings("hosted_vllm/org/m"), "http://127.0.0.1:8000/v1"),
        (ModelSettings("lm_studio/m"), "http://127.0.0.1:1234/v1"),
        (ModelSettings("llamacpp/m"), "http://127.0.0.1:8080/v1"),
        (ModelSettings("mine/m", api_base="http://10.0.0.1/v1/"), "http://10.0.0.1/v1"),
    ],
)
def test_a_prefix_names_a_server(settings: ModelSettings, url: str) -> None:
    assert adapter(settings)._url == f"{url}/chat/completions"


def test_variables_move_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for host, url in (
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("gpu:9", "http://gpu:9"),
        ("https://gpu:9/", "https://gpu:9"),
    ):
        monkeypatch.setenv("OLLAMA_HOST", host)
        assert adapter(ModelSettings("ollama/m"))._url == f"{url}/v1/chat/completions"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway/v1")
    assert adapter(ModelSettings("openai/m"))._url == "http://gateway/v1/chat/completions"


def test_other_providers_go_through_litellm_without_importing_it() -> None:
    assert type(adapter(ModelSettings("anthropic/claude-sonnet-4-5"))).__name__ == "LiteLLM"


def test_capabilities_come_from_settings_then_from_the_table() -> None:
    listed = build_model(ModelSettings("openai/gpt-4o"))
    assert (listed.dialect, listed.structured) == ("native", True)
    assert "image/*" in listed.media_types
    told = build_model(ModelSettings("openai/gpt-4o", dialect="text", media_types=("audio/wav",)))
    assert (told.dialect, told.media_types) == ("text", ("audio/wav",))
    assert build_model(ModelSettings("ollama/llama3")).dialect == "text"
    unlisted = build_model(ModelSettings("hosted_vllm/m"))
    assert (unlisted.dialect, unlisted.media_types, unlisted.structured) == ("native", (), True)


@pytest.mark.parametrize("name", ["gpt-4o", "", "/x"])
def test_a_name_without_provider_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="provider/name"):
        build_model(ModelSettings(name))


async def test_everything_together_retries_falls_back_prices_and_records(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("- from the script\n")
    async with FakeOpenAI([Shape(status=500, body={}), text("from the server")]) as server:
        settings = ModelSettings(
            "hosted_vllm/m",
            api_base=server.base,
            retries=0,
            input_usd_per_mtok=1e6,
            output_usd_per_mtok=1e6,
        )
        model = await asyncio.to_thread(
            build_model,
            settings,
            [ModelSettings("scripted/s.yaml")],
            folder=tmp_path,
            record=tmp_path / "r.jsonl",
        )
        first = await model.complete(request())
        second = await model.complete(request())
        await model.aclose()
    assert (first.message.text, first.model) == ("from the script", "scripted/s.yaml")
    assert (second.message.text, second.usage.cost_usd) == ("from the server", 18.0)
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 2


async def test_an_openai_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-env")
    async with FakeOpenAI([text("x")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        model = await asyncio.to_thread(build_model, ModelSettings("openai/gpt-4o"))
        await model.complete(request())
        await model.aclose()
        assert server.headers[0]["Authorization"] == "Bearer sk-from-env"


async def test_real_calls_can_be_locked() -> None:
    unlock_models()
    assert not models_locked()
    lock_models()
    assert models_locked()
    for name in ("openai/gpt-4o", "anthropic/claude-sonnet-4-5"):
        with pytest.raises(ModelLocked, match="scripted"):
            await (await asyncio.to_thread(build_model, ModelSettings(name))).complete(request())


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://127.0.0.1.example.com/v1", False),
        ("https://api.openai.com/v1", False),
        ("http://10.0.0.1/v1", False),
        ("http://[::1", False),
        (None, False),
    ],
)
def test_loopback_is_told_by_the_address(url: str | None, here: bool) -> None:
    assert is_loopback(url) is here
