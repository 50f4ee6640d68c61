"""The native dialect: tool calls as the provider's API carries them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from agents.dialects.base import Parsed, PromptParts
from agents.dialects.embedded import find_calls
from agents.dialects.loose_json import scrub
from agents.dialects.prompts import Prompts
from agents.dialects.signatures import resolve
from agents.dialects.thinking import strip_thinking
from agents.messages import AssistantMessage, Message, ToolCall, ToolMessage, user
from agents.models.base import ToolSchema
from agents.tools import Tool

_AGAIN = "Call the tool with a complete JSON object of arguments, or answer in plain text."
_EMPTY = "Your reply was empty. Call a tool or write the answer."


def _safe_name(name: str) -> str:
    # Servers answer 400 when a replayed name breaks their pattern.
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


class NativeDialect:
    """Tool calls in the API's own fields; calls left in the text are understood too."""

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts

    @property
    def name(self) -> Literal["native"]:
        """Return ``native``."""
        return "native"

    @property
    def stop(self) -> tuple[str, ...]:
        """Return no stop sequences."""
        return ()

    def system(self, prompt: PromptParts) -> str:
        """Return the system prompt."""
        return self._prompts.system("native", prompt)

    def tools(self, tools: Sequence[Tool]) -> tuple[ToolSchema, ...]:
        """Return the schema of each tool."""
        return tuple(tool.schema() for tool in tools)

    def parse(
        self, message: AssistantMessage, tools: Sequence[Tool], *, new_id: Callable[[], str]
    ) -> Parsed:
        """Read a reply: its calls, else calls written into the text, else the text."""
        raw = scrub(message.text)
        text = strip_thinking(raw)
        repairs = ("think_removed",) if text != raw else ()
        text = text.strip()
        if message.tool_calls:
            calls = tuple(_renamed(call, tools, new_id) for call in message.tool_calls)
            if [c.name for c in calls] != [c.name for c in message.tool_calls]:
                repairs = (*repairs, "tool_name")
            return Parsed(text, calls, repairs=repairs, text=text)
        found = find_calls(text, tools, new_id) if tools else None
        if found is None:
            if not text:
                return Parsed(repairs=repairs, hint=_EMPTY, text=raw.strip())
            return Parsed(final=text, repairs=repairs, text=text)
        repairs = tuple(dict.fromkeys((*repairs, *found.repairs)))
        if found.calls:
            return Parsed(found.before, found.calls, repairs=repairs, text=found.before)
        hint = f"{found.fault} {_AGAIN}"
        return Parsed(found.before, repairs=repairs, hint=hint, text=text)

    def assistant(self, message: AssistantMessage, parsed: Parsed) -> AssistantMessage:
        """Return the reply with our ids, and with names that every server takes back."""
        calls = tuple(replace(call, name=_safe_name(call.name)) for call in parsed.calls)
        return AssistantMessage(parsed.text, calls, message.reasoning)

    def observation(self, call: ToolCall, text: str) -> Message:
        """Return the tool message that answers ``call``."""
        return ToolMessage(call.id, _safe_name(call.name), text)

    def nudge(self, hint: str) -> Message:
        """Return the hint as a user message."""
        return user(hint)


def _renamed(call: ToolCall, tools: Sequence[Tool], new_id: Callable[[], str]) -> ToolCall:
    # Servers repeat ids within a message and across turns, or leave them out.
    tool = resolve(call.name, tools)
    return replace(call, id=new_id(), name=tool.name if tool else call.name)
