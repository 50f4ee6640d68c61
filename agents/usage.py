"""What a run spends: calls, tokens, money. Unknown is None, never zero."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


def _add(a: float | None, b: float | None) -> Any:
    return None if a is None or b is None else a + b


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls, tokens and cost.

    Attributes:
        llm_calls: Model calls that were paid for.
        tool_calls: Tool calls that were run.
        input_tokens: Prompt tokens, cached ones included; None if unknown.
        output_tokens: Completion tokens; None if unknown.
        cached_tokens: The part of ``input_tokens`` read from the provider's cache.
        cost_usd: US dollars; None if unknown.
    """

    llm_calls: int = 0
    tool_calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cached_tokens: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.llm_calls + other.llm_calls,
            self.tool_calls + other.tool_calls,
            _add(self.input_tokens, other.input_tokens),
            _add(self.output_tokens, other.output_tokens),
            self.cached_tokens + other.cached_tokens,
            _add(self.cost_usd, other.cost_usd),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plain-JSON form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Usage:
        """Read the plain-JSON form; unknown keys are ignored."""
        return cls(**{f.name: data[f.name] for f in fields(cls) if f.name in data})


@dataclass(frozen=True, slots=True)
class Budget:
    """Upper bounds of a run or of one agent's attempt; None means no bound.

    Attributes:
        llm_calls: Model calls.
        tool_calls: Tool calls.
        tokens: Input plus output tokens, cached ones included.
        usd: US dollars.
        wall_s: Seconds of wall time.
    """

    llm_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    wall_s: float | None = None
