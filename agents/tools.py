"""Tools: what they are, what one call of them yields."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agents.context import RunContext
from agents.labels import Label
from agents.models.base import ToolSchema

Effect = Literal["pure", "idempotent", "reconcilable", "guarded"]
ToolStatus = Literal["success", "error", "timeout", "denied", "rate_limited", "duplicate"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one tool call yielded.

    Attributes:
        status: How it ended.
        data: A JSON value, whole.
        summary: What the model reads; cut to a limit with a note of how much.
        error: What went wrong and what to do next, for the model; None on success.
        duration_s: Seconds.
        cost_usd: US dollars; None if unknown.
        label: Where the data comes from.
    """

    status: ToolStatus
    data: Any = None
    summary: str = ""
    error: str | None = None
    duration_s: float = 0.0
    cost_usd: float | None = 0.0
    label: Label = field(default_factory=Label)

    def to_json(self) -> dict[str, Any]:
        """Return the plain-JSON form."""
        return {
            "status": self.status,
            "data": self.data,
            "summary": self.summary,
            "error": self.error,
            "duration_s": self.duration_s,
            "cost_usd": self.cost_usd,
            "label": self.label.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ToolResult:
        """Read the plain-JSON form."""
        return cls(**{**data, "label": Label.from_json(data["label"])})

    def observation(self) -> str:
        """Return what the model reads: ``Observation [SUCCESS]: …`` or ``Observation [ERROR]: …``.

        A refused or repeated call keeps its own word, ``[DENIED]`` or ``[DUPLICATE]``.
        """
        word = {"success": "SUCCESS", "denied": "DENIED", "duplicate": "DUPLICATE"}
        text = self.summary if self.error is None else self.error
        return f"Observation [{word.get(self.status, 'ERROR')}]: {text}"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most ``calls`` calls in any ``per_s`` seconds, in this process.

    Attributes:
        calls: Calls.
        per_s: Seconds.
    """

    calls: int
    per_s: float
    _starts: deque[float] = field(default_factory=deque, init=False, repr=False, compare=False)

    def reserve(self, now: float, max_wait_s: float) -> float:
        """Return how long to wait for the next free place, and take it if that is soon enough.

        Args:
            now: Seconds on a monotonic clock.
            max_wait_s: A place further away than this is not taken.
        """
        full = len(self._starts) >= self.calls
        wait_s = max(0.0, self._starts[0] + self.per_s - now) if full else 0.0
        if wait_s <= max_wait_s:
            if full:
                self._starts.popleft()
            self._starts.append(now + wait_s)
        return wait_s


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that an agent may call.

    Attributes:
        name: ``[a-zA-Z0-9_-]{1,64}``.
        description: What the model is told.
        parameters: JSON Schema of an object.
        call: Runs it with validated keyword arguments.
        validate: Turns the model's arguments into keyword arguments, or raises ``ValueError``
            with a message for the model that names each wrong field.
        effect: ``pure`` reads only; ``idempotent`` may be repeated with the same key;
            ``reconcilable`` has ``reconcile``; ``guarded`` must never be repeated blindly.
        timeout_s: Seconds for one call.
        rate_limit: Or None.
        cost_usd: Cost of one call; None if unknown.
        destination_args: Arguments that name where data goes.
        reads: Whether its results are text from outside: ``trusted`` or ``untrusted``.
        needs_approval: Whether a person must approve each call.
        pollable: Whether calling it again with the same arguments is not a loop.
        max_chars: Length of ``summary`` above which it is cut.
        reconcile: Finds out whether an unknown effect happened; returns its result or None.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    call: Callable[[dict[str, Any], RunContext], Awaitable[Any]]
    validate: Callable[[dict[str, Any]], dict[str, Any]]
    effect: Effect = "pure"
    timeout_s: float = 30.0
    rate_limit: RateLimit | None = None
    cost_usd: float | None = 0.0
    destination_args: tuple[str, ...] = ()
    reads: Literal["trusted", "untrusted"] = "trusted"
    needs_approval: bool = False
    pollable: bool = False
    max_chars: int = 8_000
    reconcile: Callable[[dict[str, Any], RunContext], Awaitable[Any | None]] | None = None
    tags: tuple[str, ...] = field(default=())

    def schema(self) -> ToolSchema:
        """Return what a model is told."""
        return ToolSchema(self.name, self.description, self.parameters)

    def with_options(self, **options: Any) -> Tool:
        """Return a copy with other limits, for example ``timeout_s`` or ``needs_approval``."""
        return replace(self, **options)
