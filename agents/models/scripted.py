"""A model that replays replies: for tests, examples and recorded runs.

Replies are found by what is asked (agent, subtask, call number, a pattern), never by a cursor,
so concurrent agents, resumed attempts and both modes get the same answers.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from agents.errors import BrokenStream, EmptyReply, ModelRefused
from agents.messages import AssistantMessage, ToolCall
from agents.models.assembler import taken_ids
from agents.models.base import CallKey, Delta, Dialect, ModelReply, ModelRequest, OnDelta
from agents.models.calls import free_id
from agents.models.faults import PAID_UNKNOWN, paid
from agents.models.script import Conversation, ScriptedReply
from agents.models.wire import check_media
from agents.usage import Usage

Replier = Callable[[ModelRequest], Any]

_LABEL = re.compile(r"\s*(?:Thought|Action|Final Answer):")


class ScriptedModel:
    """Answers from a list of replies, or from a function of the request.

    The first reply that fits is taken. A reply in a list that names neither ``call`` nor
    ``match`` answers one call: its call number is how many such replies of the same agent and
    subtask stand before it. Texts and arguments may refer to the conversation (see
    ``Conversation``). In the text dialect a reply with a tool call is written out as
    ``Thought: … Action: … Action Input: …`` and another one, unless it has a label or is
    ``verbatim``, as ``Final Answer: …``, so that one script serves both dialects.

    Args:
        replies: Texts, mappings with the members of ``ScriptedReply``, or a function that
            returns such a reply or a ``ModelReply``; it may be async, and may raise.
        name: For results and messages.
        dialect: How tools are called.
        media_types: Media types it takes beside text.
        structured: Whether agents hand it their output schema.

    Raises:
        ValueError: A reply is malformed.
    """

    def __init__(
        self,
        replies: Sequence[Any] | Replier,
        *,
        name: str = "scripted/replies",
        dialect: Dialect = "native",
        media_types: tuple[str, ...] = ("*/*",),
        structured: bool = True,
    ) -> None:
        self.name = name
        self.dialect: Dialect = dialect
        self.media_types = media_types
        self.structured = structured
        self._replier = replies if callable(replies) else None
        self._replies = () if callable(replies) else tuple(_numbered(replies, name))
        self._tries: dict[CallKey, int] = {}

    @classmethod
    def load(cls, path: Path, *, name: str = "", dialect: Dialect = "native") -> ScriptedModel:
        """Read a script; this reads a file, so call it off the event loop.

        Args:
            path: YAML (a list, or a mapping with ``replies``), or JSON lines in ``*.jsonl``.
            name: By default ``scripted/<path>``.
            dialect: How tools are called.

        Raises:
            ValueError: The file is missing or malformed.
        """
        try:
            raw = path.read_text("utf-8")
            if path.suffix == ".jsonl":
                replies: Any = [json.loads(line) for line in raw.splitlines() if line.strip()]
            else:
                replies = yaml.safe_load(raw)
        except (OSError, ValueError, yaml.YAMLError) as exc:
            raise ValueError(f"the script {str(path)!r} cannot be read: {exc}") from exc
        if isinstance(replies, dict) and set(replies) == {"replies"}:
            replies = replies["replies"]
        if not isinstance(replies, list):
            raise ValueError(f"the script {str(path)!r} needs a list of replies")
        return cls(replies, name=name or f"scripted/{path}", dialect=dialect)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Return the reply that fits the request."""
        check_media(request, self.media_types, self.name)
        if self._replier is None:
            reply = self._find(request)
        else:
            made = self._replier(request)
            made = await made if inspect.isawaitable(made) else made
            if isinstance(made, ModelReply):
                return replace(made, model=made.model or self.name)
            reply = ScriptedReply.read(made, self.name)
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        answer = self._answer(reply, request)
        tries = self._tries.get(request.key, 0)
        error = reply.failure(tries)
        if error is not None:
            self._tries[request.key] = tries + 1
            if isinstance(error, BrokenStream):
                text = answer.message.text
                _stream(text[: len(text) // 2], reply.pieces, on_delta)
                raise paid(error, PAID_UNKNOWN)
            raise error
        if not answer.message.text.strip() and not answer.message.tool_calls:
            raise paid(EmptyReply(f"{self.name}: the scripted reply is empty"), answer.usage)
        _stream(answer.message.text, reply.pieces, on_delta)
        return answer

    async def aclose(self) -> None:
        """Do nothing."""

    def _find(self, request: ModelRequest) -> ScriptedReply:
        last = Conversation(request.messages, None).last
        for reply in self._replies:
            if reply.answers(request.key, last):
                return reply
        key = request.key
        what = f"agent={key.agent!r} subtask={key.subtask!r} call={key.call}"
        if key.generation:
            what += f" generation={key.generation}"
        there = "; ".join(str(reply) for reply in self._replies[:20]) or "none"
        raise ModelRefused(
            f"{self.name} has no reply for {what} with the last text {last[:80]!r}; "
            f"it has {len(self._replies)}: {there}. Add one"
        )

    def _answer(self, reply: ScriptedReply, request: ModelRequest) -> ModelReply:
        text, calls = reply.text, [dict(call) for call in reply.tool_calls]
        if not reply.verbatim:
            conversation = Conversation(request.messages, reply.match)
            text, calls = conversation.fill_text(text), conversation.fill(calls)
        if calls and self.dialect == "text":
            text, calls = self._written(text, calls), []
        elif self.dialect == "text" and text and not (reply.verbatim or _LABEL.match(text)):
            text = f"Thought: I now know the final answer.\nFinal Answer: {text}"
        taken = taken_ids(request)
        tool_calls = tuple(
            ToolCall(
                free_id(call.get("id"), taken),
                call["name"],
                call.get("arguments") or {},
                call.get("error"),
            )
            for call in calls
        )
        finish = reply.finish_reason or ("tool_calls" if tool_calls else "stop")
        usage = Usage.from_json({"llm_calls": 1, **reply.usage})
        message = AssistantMessage(text, tool_calls, reply.reasoning)
        return ModelReply(message, usage, finish, reply.model or self.name)

    def _written(self, text: str, calls: list[dict[str, Any]]) -> str:
        if len(calls) > 1:
            raise ModelRefused(
                f"{self.name}: the text dialect has one action a message, "
                f"the scripted reply has {len(calls)}"
            )
        arguments = json.dumps(calls[0].get("arguments") or {}, ensure_ascii=False)
        thought = f"Thought: {text}\n" if text and not text.startswith("Thought:") else text
        return f"{thought}Action: {calls[0]['name']}\nAction Input: {arguments}"


def _numbered(replies: Iterable[Any], name: str) -> Iterable[ScriptedReply]:
    counts: dict[tuple[str | None, str | None, int | None], int] = {}
    for position, data in enumerate(replies):
        reply = ScriptedReply.read(data, f"{name}: reply {position}")
        if reply.call is None and reply.match is None:
            group = (reply.agent, reply.subtask, reply.generation)
            reply = replace(reply, call=counts.get(group, 0))
            counts[group] = counts.get(group, 0) + 1
        yield reply


def _stream(text: str, pieces: int, on_delta: OnDelta | None) -> None:
    if on_delta is None or not text:
        return
    size = -(-len(text) // max(pieces, 1))
    for at in range(0, len(text), size):
        on_delta(Delta(text[at : at + size]))
