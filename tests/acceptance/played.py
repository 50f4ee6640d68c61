"""Plays an example's script through the fake OpenAI-compatible server."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any

from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, user
from agents.models.base import CallKey, ModelReply, ModelRequest
from agents.models.scripted import ScriptedModel
from tests.gear.fake_openai import Shape, call, calls, text

_AGENT = re.compile(r"(?:You are|あなたは) ([\w-]+)(?:\.| です)")


def plays(model: ScriptedModel) -> Callable[[dict[str, Any]], Shape]:
    """Return a script for the server: what the scripted model answers to the same conversation.

    The body names no agent, subtask and call: the agent stands in the system prompt, the call is
    counted, and the examples' scripts do without the subtask.
    """

    def answer(body: dict[str, Any]) -> Shape:
        messages = tuple(_message(item) for item in body["messages"])
        agent = _AGENT.search(body["messages"][0]["content"])
        assert agent is not None
        asked = sum(isinstance(message, AssistantMessage) for message in messages)
        reply = _at_once(model.complete(ModelRequest(messages, CallKey(agent[1], "", asked))))
        entries = [call(c.name, c.arguments, c.id) for c in reply.message.tool_calls]
        return calls(*entries) if entries else text(reply.message.text)

    return answer


def _message(item: dict[str, Any]) -> Message:
    content = item["content"] or ""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    match item["role"]:
        case "system":
            return SystemMessage(content)
        case "tool":
            return ToolMessage(item["tool_call_id"], "", content)
        case "assistant":
            return AssistantMessage(content)
        case _:
            return user(content)


def _at_once(reply: Coroutine[Any, Any, ModelReply]) -> ModelReply:
    try:
        reply.send(None)
    except StopIteration as done:
        value: ModelReply = done.value
        return value
    raise AssertionError("the script waits, which this server cannot")
