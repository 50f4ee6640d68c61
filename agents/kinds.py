"""Kinds and profiles of agents: presets of tools and limits, no behaviour of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from agents.limits import DEPTHS, Depth, Limits
from agents.tools import Effect, Tool
from agents.usage import Budget

AgentKind = Literal["react", "model", "function"]
ProfileName = Literal["agent", "explore", "process"]


@dataclass(frozen=True, slots=True)
class Profile:
    """A preset.

    Attributes:
        depth: How many iterations, unless the pipeline says otherwise.
        effects: Tools with other effects are not offered.
        talks: Whether it may ask people and other agents where the pipeline allows it.
    """

    depth: Depth
    effects: frozenset[Effect]
    talks: bool = True

    def keep(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return the tools that an agent of this profile is offered."""
        return tuple(t for t in tools if t.effect in self.effects)


_ALL: frozenset[Effect] = frozenset({"pure", "idempotent", "reconcilable", "guarded"})

PROFILES: dict[ProfileName, Profile] = {
    "agent": Profile("normal", _ALL),
    "explore": Profile("deep", frozenset({"pure"})),
    "process": Profile("instant", _ALL, talks=False),
}


def limits_for(
    kind: AgentKind,
    *,
    profile: ProfileName = "agent",
    depth: Depth | None = None,
    max_iterations: int | None = None,
    budget: Budget,
) -> Limits:
    """Return the limits of an agent; a plain model call has room for one repair and no more."""
    if kind == "model":
        return Limits(max_iterations=2, budget=budget)
    given = max_iterations or DEPTHS[depth or PROFILES[profile].depth]
    return Limits(max_iterations=given, budget=budget)
