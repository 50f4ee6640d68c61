"""The messages of a conversation with a model; frozen, one class a role."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, assert_never

from agents.content import Content, Text, content_from_json, content_to_json


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that a model asked for.

    Attributes:
        id: Unique within the conversation; given by us when the server's is missing or taken.
        name: Tool name as the model wrote it.
        arguments: The parsed JSON object; ``{}`` when ``error`` is set.
        error: Why the arguments could not be read, for the model; None when they could.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Instructions, first in the conversation."""

    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the task, a person or the loop itself tells the model."""

    content: Content


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model said.

    Attributes:
        text: Visible text, reasoning removed.
        tool_calls: Calls in the model's order.
        reasoning: Hidden reasoning, where the server gives it apart.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The observation that answers one tool call."""

    call_id: str
    name: str
    text: str


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def user(text: str) -> UserMessage:
    """Return a user message of one text part."""
    return UserMessage((Text(text),))


def message_to_json(message: Message) -> dict[str, Any]:
    """Return the plain-JSON form, tagged by ``role``."""
    match message:
        case SystemMessage():
            return {"role": "system", "text": message.text}
        case UserMessage():
            return {"role": "user", "content": content_to_json(message.content)}
        case AssistantMessage():
            calls = [
                {"id": c.id, "name": c.name, "arguments": c.arguments, "error": c.error}
                for c in message.tool_calls
            ]
            return {
                "role": "assistant",
                "text": message.text,
                "tool_calls": calls,
                "reasoning": message.reasoning,
            }
        case ToolMessage():
            return {
                "role": "tool",
                "call_id": message.call_id,
                "name": message.name,
                "text": message.text,
            }
        case _:
            assert_never(message)


def message_from_json(data: dict[str, Any]) -> Message:
    """Read the plain-JSON form.

    Raises:
        ValueError: The role is none of system, user, assistant, tool.
    """
    match data["role"]:
        case "system":
            return SystemMessage(data["text"])
        case "user":
            return UserMessage(content_from_json(data["content"]))
        case "assistant":
            calls = tuple(ToolCall(**c) for c in data["tool_calls"])
            return AssistantMessage(data["text"], calls, data.get("reasoning", ""))
        case "tool":
            return ToolMessage(data["call_id"], data["name"], data["text"])
        case role:
            raise ValueError(f"unknown message role {role!r}")


def messages_to_json(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the plain-JSON form of a conversation."""
    return [message_to_json(m) for m in messages]
