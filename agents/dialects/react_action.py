"""Reads the Action of a reply in the text format, however the model wrote it."""

from __future__ import annotations

import re
from dataclasses import replace

from agents.dialects.action_input import ReadInput, read_brackets, read_input, wanted
from agents.dialects.base import Parsed
from agents.dialects.json_step import JsonStep, answer_text, is_finish, read_step
from agents.dialects.loose_json import OPENERS, decode
from agents.dialects.react_labels import Label, input_on_line, weak_label
from agents.dialects.react_reply import Reply
from agents.dialects.signatures import resolve
from agents.messages import ToolCall
from agents.tools import Tool

_LEAD = re.compile(r"(?:\s|```\w*|[`*])*")
_JSON = re.compile(r"[\[［]?\s*[{｛]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_CALL = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)[`*\"']*[ \t]?(?=[(\[（［])")
_WORD = re.compile(r"[`*\"'\[<]*(?P<name>[\w.-]+)[`*\"'\]>]*(?:[ \t]*[:：–—(\[（-]|[ \t])[ \t]*")
_FINISH = re.compile(r"(?:final[ _]?answer|finish)\b[ \t]*[:：]?", re.IGNORECASE)


def read_action(reply: Reply, label: Label) -> Parsed:
    """Return the call that the Action at ``label`` asks for, or a hint."""
    text, stop = reply.text, reply.next(label.end)
    at = lead_end(text, label.end)
    if _JSON.match(text, at, max(at, stop.start)):
        step = read_step(text, at, reply.tools)
        if step is None:
            return reply.no_tool(text[at : at + 40], thought=reply.thought(label.start))
        return json_reply(reply, step, label)
    word = _CALL.match(text, at)
    done = _brackets(reply, label, word["name"], word.end()) if word else None
    if done is not None:
        return done
    given = input_on_line(text, at, stop.start)
    if given is not None:
        stop = Label("input", given.start(), given.end())
    line = text[at : stop.start].split("\n", 1)[0] if at < stop.start else ""
    if (finish := _FINISH.match(line)) and not resolve(finish[0].rstrip(" :："), reply.tools):
        start = stop.end if stop.kind == "input" else at + finish.end()
        end = reply.next(start, "thought", "action", "observation").start
        return _finished(reply, label, text[start:end].strip())
    name, after, repairs = _tool_name(reply, line, at, stop)
    if name is None:
        return reply.no_tool(bare_name(line), thought=reply.thought(label.start))
    tool = resolve(name, reply.tools)
    read, more = _input(reply, tool, name, after, stop)
    call = ToolCall(reply.new_id(), name, read.arguments, read.error)
    return reply.call(call, (label.start, read.end), (*repairs, *more, *read.repairs))


def json_reply(reply: Reply, step: JsonStep, label: Label | None = None) -> Parsed:
    """Return what a step in JSON says; ``label`` is the Action before it, if there is one."""
    start = label.start if label else 0
    thought = step.thought or reply.thought(start)
    repairs = ("action_json" if label else "json_reply", *step.repairs)
    if step.fault is not None:
        return reply.hint(f"The JSON cannot be read: {step.fault}.", thought=thought)
    if step.final is not None:
        every = (*reply.repairs, *repairs)
        return Parsed(thought, final=step.final, repairs=every, text=reply.kept(step.end))
    if resolve(step.name, reply.tools) is None and _NAME.fullmatch(step.name) is None:
        return reply.no_tool(step.name, thought=thought)
    read = step.read or ReadInput({}, None, step.end)
    call = ToolCall(reply.new_id(), step.name, read.arguments, read.error)
    return reply.call(call, (start, step.end), repairs, thought=thought)


def bare_name(line: str) -> str:
    """Return a name without the quotes, brackets and full stops around it."""
    return line.strip().strip("`*\"'[]<>「」『』()（）").rstrip(".,;:：。").strip("`*\"' ")


def lead_end(text: str, pos: int) -> int:
    """Return the position after white space and the beginning of a code fence."""
    lead = _LEAD.match(text, pos)
    return lead.end() if lead else pos


def _finished(reply: Reply, label: Label, inner: str) -> Parsed:
    """Return the answer of ``Action: Final Answer`` or ``Action: Finish(…)``."""
    thought = reply.thought(label.start)
    if inner[:1] in ("{", '"', "｛"):
        try:
            got = decode(inner)
            inner = answer_text(got.value) if got.end == len(inner) else inner
        except ValueError:
            return reply.hint("The Final Answer is not complete JSON.", thought=thought)
    if not inner:
        return reply.hint("The Final Answer is empty.", thought=thought)
    repairs = (*reply.repairs, "final_as_action")
    return Parsed(thought, final=inner, repairs=repairs, text=reply.text.strip())


def _tool_name(
    reply: Reply, line: str, at: int, stop: Label
) -> tuple[str | None, int, tuple[str, ...]]:
    """Return the name in an Action's line, the position after it, and repairs."""
    bare = bare_name(line)
    tool = resolve(bare, reply.tools)
    if tool is not None:
        return tool.name, at + len(line), () if bare == tool.name else ("tool_name",)
    word = _WORD.match(line)
    known = resolve(word["name"], reply.tools) if word else None
    if word is not None and known is not None:
        follows = reply.text[at + word.end() : at + word.end() + 1]
        if follows in ("{", "｛"):
            return known.name, at + word.end(), ()
        if stop.kind == "input":
            return known.name, at + len(line), ("tool_name",)
    return (bare if _NAME.fullmatch(bare) else None), at + len(line), ()


def _input(
    reply: Reply, tool: Tool | None, name: str, after: int, stop: Label
) -> tuple[ReadInput, tuple[str, ...]]:
    """Read the input of an Action whose name ends at ``after``."""
    text, hint = reply.text, wanted(name, tool, reply.tools)
    weak = weak_label(text, after, stop.start)
    start = stop.end
    repairs: tuple[str, ...] = ()
    if stop.kind != "input" or (weak is not None and weak.kind == "observation"):
        start, repairs = lead_end(text, after), ("missing_input_label",)
        if weak is not None and weak.kind == "input":
            start = weak.end
        elif start >= stop.start or text[start] not in OPENERS[:2]:
            missing = read_input("null", 0, 4, tool=tool, hint=hint)
            return replace(missing, end=after), ()
    end = reply.next(start).start
    cut = weak_label(text, start, end)
    end = cut.start if cut is not None and cut.kind == "observation" else end
    return read_input(text, start, end, tool=tool, hint=hint), repairs


def _brackets(reply: Reply, label: Label, name: str, at: int) -> Parsed | None:
    """Read ``f(…)``; None if it is none, or an Action Input label says it better."""
    text, stop = reply.text, reply.next(at)
    tool = resolve(name, reply.tools)
    if tool is None and is_finish(name, reply.tools):
        close = max(text.rfind(c, at) for c in (")", "）", "]", "］"))
        return _finished(reply, label, text[at + 1 : close if close > at else None].strip())
    if tool is None and text[at - 1].isspace():
        return None
    hint = wanted(name, tool, reply.tools)
    read = read_brackets(text, at, stop.start, tool=tool, hint=hint)
    given = text[lead_end(text, stop.end) :][:1] in ("{", "｛")
    if stop.kind == "input" and (given or read.error is not None or not read.arguments):
        return None
    call = ToolCall(reply.new_id(), tool.name if tool else name, read.arguments, read.error)
    return reply.call(call, (label.start, read.end), read.repairs)
