"""Puts the chunks of a chat completion together into one reply, however odd the server.

The input are the dicts of the raw ``data:`` lines, or the one dict of a body that was not
streamed (OpenAI's chat completions API, and what other servers made of it).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from agents.errors import BrokenStream, EmptyReply
from agents.messages import AssistantMessage
from agents.models.base import Delta, ModelReply, ModelRequest, ToolSchema
from agents.models.calls import CallCollector
from agents.models.faults import PAID_UNKNOWN, fault, paid
from agents.models.thinking import ThinkSplitter, scrub
from agents.usage import Usage

_FINISH = {"function_call": "tool_calls", "max_tokens": "length", "MAX_TOKENS": "length"}
_NO_DELTAS: tuple[Delta, ...] = ()


def taken_ids(request: ModelRequest) -> set[str]:
    """Return the tool call ids that a conversation already uses."""
    messages = (m for m in request.messages if isinstance(m, AssistantMessage))
    return {call.id for message in messages for call in message.tool_calls}


def _count(usage: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and value >= 0:
            return int(value)
    return None


def read_usage(usage: Any) -> Usage:
    """Return one call's usage; tokens are None where the server did not say.

    A prompt of no tokens is how some servers say that they did not count.
    """
    if not isinstance(usage, dict):
        return PAID_UNKNOWN
    input_tokens = _count(usage, "prompt_tokens", "input_tokens") or None
    output_tokens = _count(usage, "completion_tokens", "output_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else None
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens", "cache_read_input_tokens")
    output_tokens = output_tokens if input_tokens is not None or output_tokens else None
    return Usage(1, 0, input_tokens, output_tokens, min(cached or 0, input_tokens or 0), None)


class Assembler:
    """Assembles one reply; feed it every chunk, then ask for the reply.

    Args:
        model: ``provider/name``, for messages and for the reply.
        taken: Tool call ids that the conversation already uses.
        tools: The tools offered, to tell the model what fits when its arguments do not.
        prefill: Text that the assistant's turn was begun with.

    Attributes:
        finished: Whether the end was seen: a finish reason, ``[DONE]`` or a whole body.
    """

    def __init__(
        self,
        model: str,
        taken: Collection[str] = (),
        *,
        tools: Sequence[ToolSchema] = (),
        prefill: str = "",
    ) -> None:
        self.finished = False
        self._model = model
        self._taken = set(taken)
        self._prefill = prefill
        self._unshown = prefill
        self._text = ThinkSplitter()
        self._reasoning: list[str] = []
        self._calls = CallCollector(tools)
        self._finish = ""
        self._refusal: list[str] = []
        self._usage: Any = None

    def feed(self, chunk: dict[str, Any]) -> Sequence[Delta]:
        """Take a chunk, or a whole body, and return what it makes visible.

        Raises:
            ModelError: The chunk is an error of the server.
        """
        if chunk.get("error"):
            raise fault(self._model, 200, chunk)
        extra = chunk.get("x_groq")
        usage = chunk.get("usage") or (extra.get("usage") if isinstance(extra, dict) else None)
        self._usage = usage or self._usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return _NO_DELTAS
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish, self.finished = finish, True
        delta = choice.get("delta")
        if isinstance(delta, dict):
            return self._take(delta, whole=False)
        message = choice.get("message")
        if not isinstance(message, dict):
            return _NO_DELTAS
        self.finished = True
        return self._take(message, whole=True)

    def end(self) -> None:
        """Note the end marker of the stream, ``[DONE]``."""
        self.finished = True

    def reply(self) -> ModelReply:
        """Return the reply.

        Raises:
            BrokenStream: The end was never seen; nothing of such a stream may run.
            EmptyReply: Neither text nor calls.
        """
        if not self.finished or self._finish == "error":
            raise paid(BrokenStream(f"{self._model}: the stream ended before its end"))
        self._text.finish()
        text = "".join(self._text.visible)
        finish = _FINISH.get(self._finish, self._finish) or "stop"
        calls, notes = self._calls.calls(self._taken, cut=finish == "length")
        usage = read_usage(self._usage)
        if not calls and not text.strip():
            text = scrub("".join(self._refusal))
            if not text.strip():
                raise paid(EmptyReply(self._empty(finish)), usage)
        # What is there decides, not what the server calls it.
        if finish in ("stop", "tool_calls"):
            finish = "tool_calls" if calls else "stop"
        if self._prefill and not text.startswith(self._prefill):
            text = self._prefill + text
        reasoning = scrub("".join([*self._reasoning, *self._text.reasoning])).strip()
        message = AssistantMessage(text, calls, reasoning)
        return ModelReply(message, usage, finish, self._model, tuple(notes))

    def _empty(self, finish: str) -> str:
        why = ""
        if finish == "length":
            why = "; all of max_tokens went into reasoning: raise it"
        elif finish == "content_filter":
            why = "; the provider's content filter withheld the answer"
        return f"{self._model}: neither text nor tool calls came (finish_reason {finish!r}){why}"

    def _take(self, delta: dict[str, Any], *, whole: bool) -> Sequence[Delta]:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str):
            self._reasoning.append(thought)
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusal.append(refusal)
        calls = delta.get("tool_calls")
        if calls:
            for item in calls if isinstance(calls, list) else [calls]:
                self._calls.take(item, whole=whole)
        elif legacy := delta.get("function_call"):
            self._calls.take({"function": legacy}, whole=whole)
        content = delta.get("content")
        if not content:
            return _NO_DELTAS
        return self._show(content if isinstance(content, str) else self._parts(content))

    def _parts(self, content: Any) -> str:
        """Return the text of a content that is a list of parts; keep its reasoning apart."""
        texts: list[str] = []
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, dict) and (thought := part.get("thinking")):
                inner = thought if isinstance(thought, list) else [{"text": thought}]
                self._reasoning += [t for p in inner if (t := _text(p))]
            elif isinstance(part, dict) and part.get("type") != "reasoning":
                texts.append(_text(part))
            elif isinstance(part, dict):
                self._reasoning.append(_text(part))
        return "".join(texts)

    def _show(self, piece: str) -> Sequence[Delta]:
        if not piece:
            return _NO_DELTAS
        splitter = self._text
        voided = splitter.voided
        shown = splitter.feed(piece)
        deltas = []
        if splitter.voided and not voided:
            deltas.append(Delta(discard=True))
            shown, self._unshown = "".join(splitter.visible), self._prefill
        if shown:
            deltas.append(Delta(self._unshown + shown))
            self._unshown = ""
        return deltas


def _text(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    if isinstance(text, dict):
        text = text.get("value")
    return text if isinstance(text, str) else ""
