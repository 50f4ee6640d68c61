"""What models cost and can do, read from litellm's packaged table as data, without litellm."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.models.base import ModelSettings
from agents.usage import Usage

_TABLE = "model_prices_and_context_window_backup.json"
_MEDIA = {
    "supports_vision": "image/*",
    "supports_pdf_input": "application/pdf",
    "supports_audio_input": "audio/*",
    "supports_video_input": "video/*",
}


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Prices in US dollars a token, and capabilities; None is unknown.

    Attributes:
        input_usd: An input token.
        output_usd: An output token.
        cached_usd: An input token from the provider's cache; None means ``input_usd``.
        media_types: Media types it takes beside text.
        tools: Whether it takes native tool calls.
        structured: Whether it honours a response schema.
        max_input_tokens: Size of its context.
    """

    input_usd: float | None = None
    output_usd: float | None = None
    cached_usd: float | None = None
    media_types: tuple[str, ...] | None = None
    tools: bool | None = None
    structured: bool | None = None
    max_input_tokens: int | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return what a call cost in US dollars; None when a price or a count is unknown."""
        tokens_in, tokens_out = usage.input_tokens, usage.output_tokens
        if self.input_usd is None or self.output_usd is None:
            return None
        if tokens_in is None or tokens_out is None:
            return None
        cached_usd = self.input_usd if self.cached_usd is None else self.cached_usd
        fresh = (tokens_in - usage.cached_tokens) * self.input_usd
        return fresh + usage.cached_tokens * cached_usd + tokens_out * self.output_usd


@lru_cache(maxsize=256)
def card_of(model: str) -> ModelCard:
    """Return the table's card of a model; an empty card when it is not listed.

    Reads a file of a few megabytes, so call it off the event loop; one entry is parsed, which
    takes milliseconds, and the card is kept.

    Args:
        model: ``provider/name``; the bare name is tried too, where the provider agrees.
    """
    provider, _, bare = model.partition("/")
    text = _table()
    entry = _entry(text, model)
    if entry is None and bare:
        entry = _entry(text, bare)
        if entry is not None and not str(entry.get("litellm_provider")).startswith(provider):
            entry = None
    return ModelCard() if entry is None else _card(entry)


def card_for(settings: ModelSettings) -> ModelCard:
    """Return a model's card; configured prices win over the table's.

    OpenAI's prices do not hold for a server that only speaks its protocol.
    """
    foreign = settings.api_base is not None and settings.model.startswith("openai/")
    card = ModelCard() if foreign else card_of(settings.model)
    if settings.input_usd_per_mtok is not None:
        card = replace(card, input_usd=settings.input_usd_per_mtok / 1e6, cached_usd=None)
    if settings.output_usd_per_mtok is not None:
        card = replace(card, output_usd=settings.output_usd_per_mtok / 1e6)
    return card


def _table() -> str:
    spec = find_spec("litellm")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        path = Path(folder) / _TABLE
        if path.is_file():
            return path.read_text("utf-8")
    return ""


def _entry(text: str, name: str) -> dict[str, Any] | None:
    found = re.search(re.escape(json.dumps(name)) + r"\s*:\s*(?=\{)", text)
    if found is None:
        return None
    entry, _ = json.JSONDecoder().raw_decode(text, found.end())
    return dict(entry)


def _card(entry: dict[str, Any]) -> ModelCard:
    return ModelCard(
        input_usd=entry.get("input_cost_per_token"),
        output_usd=entry.get("output_cost_per_token"),
        cached_usd=entry.get("cache_read_input_token_cost"),
        media_types=tuple(kind for key, kind in _MEDIA.items() if entry.get(key)),
        tools=bool(entry.get("supports_function_calling")),
        structured=bool(entry.get("supports_response_schema")),
        max_input_tokens=entry.get("max_input_tokens"),
    )
