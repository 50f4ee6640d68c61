"""Which model to use when the pipeline names none: a provider's key, or a server on this host."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.settings import ModelEntry
from orchestrator.settings_errors import SettingsError

# The cheap, tool-calling model of each provider as of November 2026, as litellm names it.
PROVIDERS = (
    ("OPENAI_API_KEY", "openai/gpt-6-luna"),
    ("ANTHROPIC_API_KEY", "anthropic/claude-haiku-5-5"),
    ("GEMINI_API_KEY", "gemini/gemini-flash-latest"),
    ("GOOGLE_API_KEY", "gemini/gemini-flash-latest"),
    ("MISTRAL_API_KEY", "mistral/mistral-small-latest"),
    ("GROQ_API_KEY", "groq/openai/gpt-oss-120b"),
    ("DEEPSEEK_API_KEY", "deepseek/deepseek-flash"),
    ("OPENROUTER_API_KEY", "openrouter/openrouter/auto"),
)
SERVERS = (
    ("Ollama", 11434, "ollama"),
    ("LM Studio", 1234, "lm_studio"),
    ("llama.cpp", 8080, "openai"),
    ("vLLM", 8000, "hosted_vllm"),
)
PROBE_S = 0.5
_HINT = """set a key, for example `export OPENAI_API_KEY=…` or `export ANTHROPIC_API_KEY=…`;
  or run a model here: `ollama pull gemma3:4b && ollama serve`;
  or name one in the pipeline: `models: {main: {model: provider/name, api_base: http://…/v1}}`"""


@dataclass(frozen=True, slots=True)
class Discovered:
    """The model that was picked.

    Attributes:
        model: Its settings; a key, if it needs one, as ``${VAR}``.
        reason: Why, for people.
    """

    model: ModelEntry
    reason: str


async def discover_model(
    env: Mapping[str, str], *, servers: Sequence[tuple[str, int, str]] = SERVERS
) -> Discovered:
    """Pick a model: the first provider whose key is set, else the first server that answers.

    Args:
        env: The environment.
        servers: Name, port on loopback and provider of OpenAI-compatible servers, all asked at
            once; each has half a second.

    Raises:
        SettingsError: Nothing is there; the hint says how to get one.
    """
    for variable, model in PROVIDERS:
        if env.get(variable):
            entry = ModelEntry(model=model, api_key=f"${{{variable}}}")
            return Discovered(entry, f"{variable} is set")
    answers = await asyncio.gather(*(_first_model(port) for _, port, _ in servers))
    for (name, port, provider), found in zip(servers, answers, strict=True):
        if found is not None:
            base = f"http://127.0.0.1:{port}/v1"
            entry = ModelEntry(model=f"{provider}/{found}", api_base=base)
            return Discovered(entry, f"{name} answers on port {port}")
    ports = ", ".join(str(port) for _, port, _ in servers)
    message = f"no model: no provider's key is set, and no server answers on ports {ports}"
    raise SettingsError(message, hint=_HINT)


async def _first_model(port: int) -> str | None:
    import aiohttp  # 0.2 s that a pipeline with models need not pay

    timeout = aiohttp.ClientTimeout(total=PROBE_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"http://127.0.0.1:{port}/v1/models") as response,
        ):
            data: Any = await response.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return None
    models = data.get("data") if isinstance(data, dict) else None
    names = [m.get("id") for m in models or () if isinstance(m, dict)]
    # Embedding models are listed beside the others, and cannot chat.
    chat = [n for n in names if isinstance(n, str) and n and "embed" not in n.lower()]
    return chat[0] if chat else None
