"""Prices and capabilities, read as data."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agents.models.base import ModelSettings
from agents.models.prices import ModelCard, card_for, card_of
from agents.usage import Usage

USAGE = Usage(1, 0, 1_000, 100, 400, None)


def test_a_listed_model_has_prices_and_capabilities() -> None:
    card = card_of("openai/gpt-4o")
    assert card.input_usd is not None
    assert card.output_usd is not None
    assert card.cached_usd is not None
    assert card.cached_usd < card.input_usd < card.output_usd
    assert "image/*" in (card.media_types or ())
    assert (card.tools, card.structured) == (True, True)
    assert (card.max_input_tokens or 0) > 100_000


def test_a_full_name_wins_and_another_providers_name_does_not_count() -> None:
    assert card_of("gemini/gemini-2.5-flash").input_usd is not None
    assert card_of("anthropic/claude-sonnet-4-5").input_usd is not None
    assert card_of("hosted_vllm/gpt-4o") == ModelCard()
    assert card_of("openai/no-such-model") == ModelCard()


def test_cached_tokens_cost_the_cached_price() -> None:
    card = ModelCard(input_usd=2.0, output_usd=10.0, cached_usd=0.5)
    assert card.cost(USAGE) == 600 * 2.0 + 400 * 0.5 + 100 * 10.0
    assert ModelCard(input_usd=2.0, output_usd=10.0).cost(USAGE) == 3_000.0


@pytest.mark.parametrize(
    ("card", "usage"),
    [
        (ModelCard(), USAGE),
        (ModelCard(input_usd=1.0), USAGE),
        (ModelCard(input_usd=1.0, output_usd=1.0), Usage(1, 0, None, 5)),
        (ModelCard(input_usd=1.0, output_usd=1.0), Usage(1, 0, 5, None)),
    ],
)
def test_an_unknown_cost_is_none(card: ModelCard, usage: Usage) -> None:
    assert card.cost(usage) is None


def test_configured_prices_win() -> None:
    settings = ModelSettings("openai/gpt-4o", input_usd_per_mtok=1.0, output_usd_per_mtok=2.0)
    assert card_for(settings).cost(USAGE) == pytest.approx(1_000 * 1e-6 + 100 * 2e-6)


def test_another_server_does_not_get_openais_prices() -> None:
    settings = ModelSettings("openai/gpt-4o", api_base="http://127.0.0.1:9/v1")
    assert card_for(settings) == ModelCard()


def test_nothing_here_imports_litellm_or_aiohttp_at_import() -> None:
    code = (
        "import sys, agents.models.build, agents.models.prices as p, agents.models.scripted\n"
        "assert not {'litellm', 'aiohttp', 'openai'} & set(sys.modules)\n"
        "import agents.models.openai_compatible, agents.models.litellm\n"
        "p.card_of('openai/gpt-4o').input_usd or sys.exit(2)\n"
        "sys.exit('litellm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
