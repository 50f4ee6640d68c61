"""The one layer that asks again, and the one that asks another model."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from agents.errors import BrokenStream, ModelError, ModelUnavailable
from agents.models.base import Delta, Model, ModelReply, ModelRequest, OnDelta
from agents.models.faults import PAID_UNKNOWN
from agents.usage import Usage

_AGAIN = (ModelUnavailable, BrokenStream)


class _Shown:
    """Passes deltas on and knows whether something was shown that may have to be taken back."""

    def __init__(self, on_delta: OnDelta | None) -> None:
        self._on_delta = on_delta
        self._something = False

    def __call__(self, delta: Delta) -> None:
        self._something = not delta.discard and (self._something or bool(delta.text))
        if self._on_delta is not None:
            self._on_delta(delta)

    def void(self) -> None:
        """Take back what was shown."""
        if self._something:
            self(Delta(discard=True))


def _count(reply: ModelReply, spent: Usage, notes: Sequence[str]) -> ModelReply:
    usage = spent + reply.usage if spent.llm_calls else reply.usage
    return replace(reply, usage=usage, notes=(*notes, *reply.notes))


class Retrying:
    """Asks a model again on 429, 5xx, time-outs and broken streams.

    The pause doubles and is jittered; ``Retry-After`` is honoured. The deadline holds for the
    whole, pauses included: a pause that would pass it is not begun. Calls that were paid for
    but broke are in the reply's usage, or in the error's.

    Args:
        model: The model to ask.
        retries: Further tries.
        timeout_s: Seconds for all tries together.
        cost: Prices a call that does not say what it cost, in US dollars.
        pause_s: The first pause before jitter, in seconds.
        jitter: Returns a number from 0 to 1.
    """

    def __init__(
        self,
        model: Model,
        retries: int,
        *,
        timeout_s: float,
        cost: Callable[[Usage], float | None] = lambda usage: usage.cost_usd,
        pause_s: float = 0.5,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name, self.dialect = model.name, model.dialect
        self.media_types, self.structured = model.media_types, model.structured
        self._model = model
        self._cost = cost
        self._retries = retries
        self._timeout_s = timeout_s
        self._pause_s = pause_s
        self._jitter = jitter

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Ask until there is a reply, the tries are used up or the time is."""
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        spent, notes, tries = Usage(), list[str](), 0
        while True:
            shown = _Shown(on_delta)
            try:
                reply = await self._once(request, shown, deadline)
            except ModelError as exc:
                shown.void()
                spent += self._priced(exc.usage)
                exc.usage = spent
                pause = self._pause(exc, tries)
                left = deadline - asyncio.get_running_loop().time()
                if not isinstance(exc, _AGAIN) or tries == self._retries or pause >= left:
                    raise
                tries += 1
                notes.append(f"retry {tries} after {exc.error_class} ({exc}), pause {pause:.2f} s")
            else:
                reply = replace(reply, usage=self._priced(reply.usage))
                return _count(reply, spent, notes)
            await asyncio.sleep(pause)

    async def _once(self, request: ModelRequest, shown: _Shown, deadline: float) -> ModelReply:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._model.complete(request, shown)
        except TimeoutError as exc:
            error = ModelUnavailable(f"{self.name}: no whole reply within {self._timeout_s:g} s")
            error.usage = PAID_UNKNOWN
            raise error from exc

    def _priced(self, usage: Usage) -> Usage:
        return usage if usage.cost_usd is not None else replace(usage, cost_usd=self._cost(usage))

    def _pause(self, error: ModelError, tries: int) -> float:
        pause = self._pause_s * 2.0**tries * (0.5 + self._jitter())
        wanted = error.retry_after_s if isinstance(error, ModelUnavailable) else None
        return pause if wanted is None else max(wanted, 0.0)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


class Fallback:
    """Asks the next model when one is overloaded, failing, too slow, or breaks its stream.

    Any other error is the same with the next model, or is one to be seen; it is raised.

    Args:
        models: In order of preference; all of one dialect.

    Raises:
        ValueError: There is none, or their dialects differ.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        dialects = {model.dialect for model in models}
        if len(dialects) != 1:
            names = ", ".join(f"{m.name} ({m.dialect})" for m in models) or "none"
            raise ValueError(f"fallback models need one dialect, got {names}; set `dialect`")
        first, *others = models
        self.name, self.dialect = first.name, first.dialect
        self.media_types = tuple(
            t for t in first.media_types if all(t in other.media_types for other in others)
        )
        self.structured = all(model.structured for model in models)
        self._models = tuple(models)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Ask one after the other until one answers."""
        spent, notes = Usage(), list[str]()
        for model in self._models:
            shown = _Shown(on_delta)
            try:
                reply = await model.complete(request, shown)
            except ModelError as exc:
                shown.void()
                spent += exc.usage
                exc.usage = spent
                if not isinstance(exc, _AGAIN) or model is self._models[-1]:
                    raise
                notes.append(f"{model.name} failed: {exc.error_class} ({exc})")
            else:
                if notes:
                    notes.append(f"answered by the fallback {model.name}")
                return _count(reply, spent, notes)
        raise AssertionError("the last model either answers or raises")

    async def aclose(self) -> None:
        """Close all models."""
        for model in self._models:
            await model.aclose()
