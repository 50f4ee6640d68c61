"""The text dialect: ``Thought: / Action: / Action Input: / Final Answer:``, read with repair.

The first step of a reply counts: an Action is run although a final answer follows it, because
what follows was written without the tool's result. The labels and the order of the steps are
those of ReAct (Yao et al., 2022, https://arxiv.org/abs/2210.03629).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from agents.dialects.base import Parsed, PromptParts
from agents.dialects.embedded import find_calls
from agents.dialects.json_step import read_step
from agents.dialects.loose_json import scrub
from agents.dialects.prompts import Prompts
from agents.dialects.react_action import bare_name, json_reply, lead_end, read_action
from agents.dialects.react_labels import Label, find_labels
from agents.dialects.react_reply import STEPS, Reply
from agents.dialects.signatures import resolve, tool_names
from agents.dialects.thinking import strip_thinking
from agents.messages import AssistantMessage, Message, ToolCall, user
from agents.models.base import ToolSchema
from agents.tools import Tool

_FENCED = re.compile(r"\s*```\w*[ \t]*\r?\n(.*?)\r?\n?```\s*", re.DOTALL)
_NO_ACTION = re.compile(
    r"(?:none|null|n/?a|no (?:action|tool)[^\n]*|not (?:needed|necessary)|なし|無し|不要|-)?[.。]?",
    re.IGNORECASE,
)


class TextDialect:
    """The text format for models without tool calls, above all small local ones."""

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts

    @property
    def name(self) -> Literal["text"]:
        """Return ``text``."""
        return "text"

    @property
    def stop(self) -> tuple[str, ...]:
        """Return the observation labels at a line start; servers take four at most."""
        return ("\nObservation:", "\nObservation [", "\n観察:", "\n観察：")

    def system(self, prompt: PromptParts) -> str:
        """Return the system prompt, with the tools and the format in it."""
        return self._prompts.system("text", prompt)

    def tools(self, tools: Sequence[Tool]) -> tuple[ToolSchema, ...]:
        """Return none: the tools are in the prompt."""
        return ()

    def parse(
        self, message: AssistantMessage, tools: Sequence[Tool], *, new_id: Callable[[], str]
    ) -> Parsed:
        """Read a reply: its first Action, or its final answer, or what is wrong with it."""
        if message.tool_calls:
            return _native(message, tools, new_id)
        raw = scrub(message.text)
        text = strip_thinking(raw, everywhere=True)
        repairs: tuple[str, ...] = ("think_removed",) if text != raw else ()
        fenced = _FENCED.fullmatch(text)
        if fenced is not None and [label.start for label in find_labels(fenced[1])][:1] == [0]:
            text, repairs = fenced[1], (*repairs, "code_fence")
        reply = Reply(text, find_labels(text), tools, new_id, repairs)
        parsed = _parse(reply) if tools else _parse_plain(reply)
        kept = parsed.text or raw.strip()
        return replace(parsed, repairs=tuple(dict.fromkeys(parsed.repairs)), text=kept)

    def assistant(self, message: AssistantMessage, parsed: Parsed) -> AssistantMessage:
        """Return the part of the reply that counts, as text."""
        return AssistantMessage(parsed.text, (), message.reasoning)

    def observation(self, call: ToolCall, text: str) -> Message:
        """Return the observation as a user message; ``text`` may bring its own label."""
        return user(text if text.startswith("Observation") else f"Observation: {text}")

    def nudge(self, hint: str) -> Message:
        """Return the hint as a user message."""
        return user(hint)


def _parse(reply: Reply) -> Parsed:
    at = lead_end(reply.text, 0)
    step = (
        read_step(reply.text, at, reply.tools) if reply.text[at : at + 1] in ("{", "｛") else None
    )
    if step is not None:
        return json_reply(reply, step)
    label = reply.next(0, *STEPS)
    if label.kind in ("end", "input"):
        inline = replace(reply, labels=find_labels(reply.text, inline=True))
        if inline.next(0, *STEPS) != label:
            reply = replace(inline, repairs=(*reply.repairs, "inline_label"))
            label = reply.next(0, *STEPS)
    while label.kind == "action":
        following = reply.next(label.end)
        line = reply.text[label.end : following.start].strip()
        if following.kind == "input" or _NO_ACTION.fullmatch(line) is None:
            return read_action(reply, label)
        label = reply.next(label.end, *STEPS)
    if label.kind == "final":
        return reply.final(label)
    return _nameless(reply, label) if label.kind == "input" else _unlabelled(reply)


def _parse_plain(reply: Reply) -> Parsed:
    """Read the reply of an agent without tools, whose plain text is the answer."""
    text = reply.text.strip()
    first, final = reply.next(0), reply.next(0, "final")
    if first.kind in ("end", "observation") or reply.text[: first.start].strip():
        # Labels in the middle of an answer are part of it.
        final = Label("final", 0, 0)
    elif final.kind == "end" and reply.next(0, "action", "input").kind != "end":
        hint = 'No tool can be called now. Write "Final Answer:" and the answer.'
        return Parsed(reply.thought(len(text)), repairs=reply.repairs, hint=hint, text=text)
    elif final.kind == "end":
        final = first
    answer = reply.text[final.end :].strip()
    if final.bold and answer.endswith(final.bold):
        answer = answer[: -len(final.bold)].rstrip()
    if not answer:
        hint = "Your reply was empty. Write the answer."
        return Parsed(repairs=reply.repairs, hint=hint, text=text)
    thought = reply.thought(final.start)
    return Parsed(thought, final=answer, repairs=reply.repairs, text=text)


def _nameless(reply: Reply, label: Label) -> Parsed:
    before = reply.text[: label.start].rstrip()
    start = before.rfind("\n") + 1
    if resolve(bare_name(before[start:]), reply.tools) is None:
        names = tool_names(reply.tools)
        return reply.hint(f"Action Input came without an Action; the tools are: {names}.")
    repaired = replace(reply, repairs=(*reply.repairs, "missing_action_label"))
    return read_action(repaired, Label("action", start, start))


def _unlabelled(reply: Reply) -> Parsed:
    found = find_calls(reply.text, reply.tools, reply.new_id)
    if found is not None and found.calls:
        repairs = (*reply.repairs, *found.repairs)
        dropped = ("second_action_dropped",) if len(found.calls) > 1 else ()
        return _rewritten(found.before, found.calls[0], (*repairs, *dropped))
    if found is not None and found.fault is not None:
        return reply.hint(found.fault)
    if not reply.text.strip():
        return reply.hint("Your reply was empty.")
    if reply.next(0, "thought").kind == "thought":
        thought = reply.thought(len(reply.text))
        return reply.hint("A Thought alone is not a step.", thought=thought)
    return reply.hint("Your reply has neither an Action nor a Final Answer.")


def _native(message: AssistantMessage, tools: Sequence[Tool], new_id: Callable[[], str]) -> Parsed:
    # Some servers read calls on their own; the history must stay in the text format.
    first = message.tool_calls[0]
    tool = resolve(first.name, tools)
    call = replace(first, id=new_id(), name=tool.name if tool else first.name)
    dropped = ("second_action_dropped",) if len(message.tool_calls) > 1 else ()
    return _rewritten(scrub(message.text).strip(), call, ("native_call", *dropped))


def _rewritten(before: str, call: ToolCall, repairs: tuple[str, ...]) -> Parsed:
    labels = find_labels(before)
    said = before[labels[0].end :].strip() if labels and labels[0].start == 0 else before
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    text = f"Thought: {said}\n" if said else ""
    text = f"{text}Action: {call.name}\nAction Input: {arguments}"
    return Parsed(said, (call,), repairs=repairs, text=text)
