"""When to stop: conditions over what the loop has done so far; they compose in a tuple."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol, runtime_checkable

from agents.messages import ToolCall
from agents.usage import Budget, Usage

REPEAT_HINT = (
    "You have made the same tool call several times with the same result. "
    "Repeating it will not help: use what you have, try something different, or answer."
)


def canonical(arguments: Any) -> str:
    """Return JSON that is equal for equal arguments."""
    return json.dumps(arguments, sort_keys=True, separators=(",", ":"), default=str)


def similar(arguments: Any) -> Any:
    """Return arguments without differences of case, white space and number format."""
    match arguments:
        case dict():
            return {k: similar(v) for k, v in arguments.items() if v not in (None, "")}
        case list():
            return [similar(v) for v in arguments]
        case bool() | None:
            return arguments
        case int() | float():
            return f"{arguments:g}"
        case _:
            text = re.sub(r"\s+", " ", str(arguments)).strip().casefold()
            return re.sub(r"^(-?\d+)\.0+$", r"\1", text)


@dataclass(frozen=True, slots=True)
class Step:
    """The calls of one message: what was asked and what was observed, hashed.

    Attributes:
        signature: Tools, normalised arguments and observations.
        observed: Hash of each observation.
        pollable: Every tool of the message says that repeating it is no loop.
    """

    signature: str
    observed: frozenset[str]
    pollable: bool

    @classmethod
    def of(cls, calls: list[tuple[ToolCall, str, bool]]) -> Step:
        """Make a step from (call, observation, pollable) of one message."""
        seen = sorted((c.name, canonical(similar(c.arguments)), o) for c, o, _ in calls)
        hashes = frozenset(sha256(o.encode("utf-8", "replace")).hexdigest() for _, o, _ in calls)
        return cls(canonical(seen), hashes, all(p for _, _, p in calls))


@dataclass(slots=True)
class LoopState:
    """What stop conditions look at.

    Attributes:
        iterations: Model calls so far, forced answers apart.
        usage: Spent on this journal, replayed calls included.
        now: Seconds since the epoch.
        started: When this attempt started.
        deadline: When the run's wall time ends, or None.
        steps: One for each message with tool calls.
    """

    iterations: int = 0
    usage: Usage = field(default_factory=Usage)
    now: float = 0.0
    started: float = 0.0
    deadline: float | None = None
    steps: list[Step] = field(default_factory=list)

    def stale(self) -> int:
        """Return how many steps in a row, up to now, observed nothing new."""
        known: Counter[str] = Counter(h for s in self.steps for h in s.observed)
        count = 0
        for step in reversed(self.steps):
            known -= Counter(step.observed)
            if step.pollable or any(not known[h] for h in step.observed):
                break
            count += 1
        return count

    def repeats(self, period: int) -> int:
        """Return how often the last ``period`` steps occur in a row at the end."""
        marks = [s.signature for s in self.steps]
        tail = marks[-period:]
        if len(tail) < period or all(s.pollable for s in self.steps[-period:]):
            return 0
        count = 0
        while marks[len(marks) - period * (count + 1) :][:period] == tail:
            count += 1
            if period * (count + 1) > len(marks):
                break
        return count


@runtime_checkable
class StopCondition(Protocol):
    """Decides, before each model call, whether the loop must stop."""

    def check(self, state: LoopState) -> str | None:
        """Return the reason to stop, a short stable name, or None to go on."""


@runtime_checkable
class Hinting(Protocol):
    """A stop condition that warns the model before it stops."""

    def hint(self, state: LoopState) -> str | None:
        """Return a fixed text for the model, or None."""


@dataclass(frozen=True, slots=True)
class MaxIterations:
    """Stops after ``limit`` model calls."""

    limit: int

    def check(self, state: LoopState) -> str | None:
        """Return ``max_iterations`` when the limit is reached."""
        return "max_iterations" if state.iterations >= self.limit else None


@dataclass(frozen=True, slots=True)
class BudgetSpent:
    """Stops when the agent's own budget is spent; unknown tokens or cost count as zero."""

    budget: Budget

    def used(self, state: LoopState) -> dict[str, tuple[float, float]]:
        """Return used and limit of each bound."""
        usage, budget = state.usage, self.budget
        pairs = {
            "llm_calls": (usage.llm_calls, budget.llm_calls),
            "tool_calls": (usage.tool_calls, budget.tool_calls),
            "tokens": ((usage.input_tokens or 0) + (usage.output_tokens or 0), budget.tokens),
            "usd": (usage.cost_usd or 0.0, budget.usd),
        }
        return {k: (used, limit) for k, (used, limit) in pairs.items() if limit is not None}

    def check(self, state: LoopState) -> str | None:
        """Return ``budget`` when a bound is reached."""
        spent = any(used >= limit for used, limit in self.used(state).values())
        return "budget" if spent else None


@dataclass(frozen=True, slots=True)
class WallTime:
    """Stops at the run's deadline, or ``wall_s`` seconds after the attempt started."""

    wall_s: float | None = None

    def ends(self, state: LoopState) -> float:
        """Return when time is up, in seconds since the epoch."""
        own = float("inf") if self.wall_s is None else state.started + self.wall_s
        return min(own, float("inf") if state.deadline is None else state.deadline)

    def check(self, state: LoopState) -> str | None:
        """Return ``wall_time`` when time is up."""
        return "wall_time" if state.now >= self.ends(state) else None


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """Warns, then stops, when the same or a similar call yields the same again and again.

    Also sees two or three calls that alternate. Pollable tools and changing results are no loop.
    """

    warn_at: int = 3
    stop_at: int = 5

    def hint(self, state: LoopState) -> str | None:
        """Return the fixed warning when the count is exactly reached."""
        # A cycle of one is also a cycle of two and three: only its own period may speak.
        if state.repeats(1) == self.warn_at:
            return REPEAT_HINT
        cycles = (state.repeats(p) for p in (2, 3))
        return REPEAT_HINT if state.repeats(1) < 2 and self.warn_at in cycles else None

    def check(self, state: LoopState) -> str | None:
        """Return ``repeated_call`` or ``cycle``."""
        if state.repeats(1) >= self.stop_at:
            return "repeated_call"
        if state.repeats(1) < 2 and any(state.repeats(p) >= self.stop_at - 1 for p in (2, 3)):
            return "cycle"
        return None


@dataclass(frozen=True, slots=True)
class NoProgress:
    """Stops after ``limit`` steps in a row that observed nothing new."""

    limit: int = 5

    def check(self, state: LoopState) -> str | None:
        """Return ``no_progress`` when the limit is reached."""
        return "no_progress" if state.stale() >= self.limit else None
