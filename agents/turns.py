"""One turn: ask the model, or take from the journal what it said to an earlier attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.emitter import Emitter
from agents.errors import AgentError, ContextOverflow, EmptyReply, ModelError
from agents.journal import Reserve
from agents.limits import Spans
from agents.memory import estimate_tokens, size
from agents.messages import AssistantMessage, message_from_json, message_to_json
from agents.models.base import Delta, Model, ModelReply, ModelRequest
from agents.models.faults import PAID_UNKNOWN
from agents.replay import Tape
from agents.usage import Usage


class OutOfTime(AgentError):
    """The attempt's time was up in the middle of a model call."""

    error_class = "wall_time"


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model said.

    Attributes:
        n: Number of the call in the journal, from 0.
        message: The reply; empty with ``error``.
        finish_reason: As in ``ModelReply``.
        stop: Why this was the last, tool-less question; None for an ordinary turn.
        error: ``context_overflow`` or ``empty_reply``: told by the server instead of a reply.
    """

    n: int
    message: AssistantMessage
    finish_reason: str = "stop"
    stop: str | None = None
    error: str | None = None


class Turns:
    """The model calls of one attempt.

    ``on_request`` is told every request, also one whose reply is on the tape.

    Attributes:
        tokens: Input and output tokens of the journal, estimated where the server did not say.
    """

    def __init__(
        self,
        model: Model,
        tape: Tape,
        emitter: Emitter,
        *,
        spans: Spans,
        reply_tokens: int,
        clock: Callable[[], float],
        on_request: Callable[[ModelRequest], None] | None = None,
    ) -> None:
        self._model = model
        self._tape = tape
        self._emitter = emitter
        self._spans = spans
        self._reply_tokens = reply_tokens
        self._clock = clock
        self._on_request = on_request
        self.tokens = (0, 0)

    async def ask(self, request: ModelRequest, *, stop: str | None, ends: float) -> Turn:
        """Return turn ``request.key.call``, recorded or new.

        Args:
            request: What to ask.
            stop: Why this is the last question, or None.
            ends: Seconds since the epoch at which the attempt's time is up.

        Raises:
            Halt: The gate said stop.
            ModelError: The model's own retries and fallbacks are used up.
            OutOfTime: Time was up before the reply was there.
        """
        if self._on_request is not None:
            self._on_request(request)
        n = request.key.call
        prompt = estimate_tokens(request.messages)
        if n not in self._tape.replies:
            await self._tape.gate(Reserve(llm_calls=1, tokens=prompt + self._reply_tokens))
            await self._live(n, request, stop, ends)
        else:
            self._tape.total += Usage.from_json(self._tape.replies[n]["usage"])
        return self._read(n, prompt=prompt)

    async def _live(self, n: int, request: ModelRequest, stop: str | None, ends: float) -> None:
        error: str | None = None
        try:
            reply = await self._complete(request, ends)
        except (ContextOverflow, EmptyReply) as exc:
            reply, error = ModelReply(AssistantMessage(), exc.usage), exc.error_class
        except ModelError as exc:
            self._tape.spend(exc.usage)
            raise
        self._tape.spend(reply.usage)
        self._tape.put(
            "model_reply",
            {
                "turn": n,
                "message": message_to_json(reply.message),
                "usage": reply.usage.to_json(),
                "model": reply.model or self._model.name,
                "finish_reason": reply.finish_reason,
                "notes": list(reply.notes),
                "stop": stop,
                "error": error,
            },
        )
        for note in reply.notes:
            self._emitter.emit("parse_repair", {"iteration": n + 1, "repair": note})

    async def _complete(self, request: ModelRequest, ends: float) -> ModelReply:
        iteration = request.key.call + 1

        def on_delta(delta: Delta) -> None:
            if delta.discard:
                self._emitter.emit("text_discard", {"iteration": iteration})
            else:
                self._emitter.emit("text_delta", {"iteration": iteration, "text": delta.text})

        limit = asyncio.timeout(None if ends == float("inf") else max(0, ends - self._clock()))
        try:
            async with limit:
                with self._spans.chat(self._model.name, request) as tell:
                    reply = await self._model.complete(request, on_delta)
                    tell(reply)
                    return reply
        except TimeoutError as exc:
            if not limit.expired():
                raise
            self._tape.spend(PAID_UNKNOWN)
            raise OutOfTime from exc

    def _read(self, n: int, *, prompt: int) -> Turn:
        data = self._tape.replies[n]
        message = message_from_json(data["message"])
        assert isinstance(message, AssistantMessage)
        usage = Usage.from_json(data["usage"])
        spent = (usage.input_tokens, usage.output_tokens)
        guessed = (prompt, size(message) // 4)
        self.tokens = (
            self.tokens[0] + (guessed[0] if spent[0] is None else spent[0]),
            self.tokens[1] + (guessed[1] if spent[1] is None else spent[1]),
        )
        return Turn(n, message, data["finish_reason"], data.get("stop"), data.get("error"))

    def usage(self) -> Usage:
        """Return what the journal has cost, with unknown tokens estimated."""
        tokens_in, tokens_out = self.tokens
        return replace(self._tape.total, input_tokens=tokens_in, output_tokens=tokens_out)
