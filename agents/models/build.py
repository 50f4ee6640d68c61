"""Builds a model from its settings: adapter, price, retries, fallbacks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agents.models.base import Dialect, Model, ModelSettings
from agents.models.prices import ModelCard, card_for
from agents.models.recording import Recording
from agents.models.retry import Fallback, Retrying
from agents.models.scripted import ScriptedModel

_LOCAL = {
    "ollama": "http://127.0.0.1:11434/v1",
    "hosted_vllm": "http://127.0.0.1:8000/v1",
    "lm_studio": "http://127.0.0.1:1234/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
}
_OPENAI = "https://api.openai.com/v1"


def build_model(
    settings: ModelSettings,
    fallbacks: Sequence[ModelSettings] = (),
    *,
    folder: Path | None = None,
    record: Path | None = None,
) -> Model:
    """Return a model that retries, falls back and knows its cost.

    ``scripted/PATH`` replays a script. ``openai/``, ``ollama/``, ``hosted_vllm/``,
    ``lm_studio/``, ``llamacpp/`` and anything with ``api_base`` are spoken to directly; every
    other provider through litellm. It reads files (the price table, a script), which takes
    milliseconds: call it off the event loop.

    Args:
        settings: The model to ask first.
        fallbacks: Models to ask when it is overloaded, failing or too slow.
        folder: What a script's path is relative to; by default the working directory.
        record: File of JSON lines to record replies in.

    Raises:
        ValueError: The settings do not name a model, or a script cannot be read.
    """
    first = _retrying(settings, folder)
    others = [replace(other, dialect=other.dialect or first.dialect) for other in fallbacks]
    model = Fallback([first, *(_retrying(o, folder) for o in others)]) if others else first
    return model if record is None else Recording(model, record)


def _retrying(settings: ModelSettings, folder: Path | None) -> Model:
    provider, _, bare = settings.model.partition("/")
    card = ModelCard()
    if provider == "scripted":
        path = (folder or Path()) / bare
        dialect = settings.dialect or "native"
        model: Model = ScriptedModel.load(path, name=settings.model, dialect=dialect)
    elif not provider or not (bare or settings.api_base):
        raise ValueError(f"a model is named provider/name, got {settings.model!r}")
    else:
        card = card_for(settings)
        model = _adapter(settings, card)
    return Retrying(model, settings.retries, timeout_s=settings.timeout_s, cost=card.cost)


def _adapter(settings: ModelSettings, card: ModelCard) -> Model:
    provider, _, bare = settings.model.partition("/")
    # A model that the table lists without tool calls has none; an unlisted one may.
    known: Dialect = "text" if card.tools is False else "native"
    dialect = settings.dialect or known
    media_types = card.media_types or () if settings.media_types is None else settings.media_types
    base = settings.api_base or _default_base(provider)
    if base is None:
        from agents.models.litellm import LiteLLM

        return LiteLLM(
            settings,
            dialect=dialect,
            media_types=media_types,
            structured=bool(card.structured),
        )
    from agents.models.openai_compatible import Endpoint, OpenAICompatible

    is_openai = provider == "openai" and base == _OPENAI
    key = settings.api_key or (os.environ.get("OPENAI_API_KEY") if provider == "openai" else None)
    endpoint = Endpoint(
        base,
        bare or settings.model,
        key,
        "max_completion_tokens" if is_openai else "max_tokens",
        _CONTINUE if provider == "hosted_vllm" else (),
    )
    return OpenAICompatible(
        settings,
        endpoint,
        dialect=dialect,
        media_types=media_types,
        structured=card.structured is not False,
    )


# vLLM begins a new turn after a last assistant message unless it is told otherwise.
_CONTINUE = (("continue_final_message", True), ("add_generation_prompt", False))


def _default_base(provider: str) -> str | None:
    if provider == "openai":
        return os.environ.get("OPENAI_BASE_URL") or _OPENAI
    if provider == "ollama" and (host := os.environ.get("OLLAMA_HOST")):
        address = host if "://" in host else f"http://{host}"
        address = address.replace("://0.0.0.0", "://127.0.0.1").rstrip("/")
        port = "" if ":" in address.rpartition("/")[2] else ":11434"
        return f"{address}{port}/v1"
    return _LOCAL.get(provider)
