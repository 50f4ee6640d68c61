"""Odd replies seen from real servers, and what must come of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from agents.messages import user
from agents.models.base import CallKey, ModelRequest, ToolSchema
from tests.gear.fake_openai import Shape, call, calls, chunk, deltas, text

PARIS, OSLO = {"city": "Paris"}, {"city": "Oslo"}
TOOLS = tuple(
    ToolSchema(name, name, {"type": "object", "properties": {field: {"type": "string"}}})
    for name, field in (("get_weather", "city"), ("ping", "x"), ("send_email", "to"))
)


def request(*messages: Any, **options: Any) -> ModelRequest:
    """Return a request with the tools of the shapes."""
    key = options.pop("key", CallKey("agent", "subtask", 0))
    tools = options.pop("tools", TOOLS)
    return ModelRequest(messages or (user("What is the weather?"),), key, tools, **options)


@dataclass(frozen=True)
class Case:
    """A shape and the reply it must become.

    Attributes:
        calls: Name and arguments of each call; None where they are an error.
        streamed: Only as a stream (True), or also as a body.
    """

    name: str
    shape: Shape
    calls: list[tuple[str, Any]] = field(default_factory=list)
    text: str = ""
    reasoning: str = ""
    finish: str = "tool_calls"
    only_stream: bool = False


def part(index: int | None = None, **members: Any) -> dict[str, Any]:
    """Return a delta with one entry of ``tool_calls``; id, name, args as given."""
    entry: dict[str, Any] = {} if index is None else {"index": index}
    if "id" in members:
        entry["id"] = members["id"]
    entry["function"] = {k: v for k, v in members.items() if k in ("name", "arguments")}
    return {"tool_calls": [entry]}


ODD_OBJECTS: list[Any] = ["null", '["Paris"]', '"Paris"', "7", ["Paris"], 7, True, '{"x": NaN}']
NOTHING: list[Any] = ["", None, [], "  ", "{}", "[]", '""']
P, O_ = json.dumps(PARIS), json.dumps(OSLO)
W = "get_weather"
BOTH = [(W, PARIS), (W, OSLO)]


def stream(name: str, *items: dict[str, Any], calls: Any, **options: Any) -> Case:
    """Return a case that exists as a stream only."""
    return Case(name, deltas(*items, **options), calls, only_stream=True)


CASES = [
    Case("A1 parallel calls with one id", calls(call(W, PARIS, W), call(W, OSLO, W)), BOTH),
    Case("A3 null id", calls(call(W, PARIS, None)), [(W, PARIS)]),
    Case("A3 empty ids", calls(call(W, PARIS, ""), call(W, OSLO, "")), BOTH),
    Case("A3 a number as id", calls(call(W, PARIS, 7)), [(W, PARIS)]),
    stream(
        "A3 empty ids without index, heads and tails",
        part(id="", name=W, arguments=""),
        part(arguments=P),
        part(id="", name=W, arguments=""),
        part(arguments=O_),
        calls=BOTH,
    ),
    stream(
        "A3 null ids without index, whole",
        part(id=None, name=W, arguments=P),
        part(id=None, name=W, arguments=O_),
        calls=BOTH,
    ),
    stream(
        "A4 no index, one call",
        part(id="c1", name=W, arguments=""),
        part(arguments='{"city": "Par'),
        part(arguments='is"}'),
        calls=[(W, PARIS)],
    ),
    stream(
        "A5 no index, two calls",
        part(id="c1", name=W, arguments=P),
        part(id="c2", name=W, arguments=O_),
        calls=BOTH,
    ),
    stream(
        "A5 no index, heads and tails",
        part(id="c1", name=W, arguments=""),
        part(arguments=P),
        part(id="c2", name=W, arguments=""),
        part(arguments=O_),
        calls=BOTH,
    ),
    stream(
        "A6 all under index 0",
        part(0, id="c1", name=W, arguments=P),
        part(0, id="c2", name=W, arguments=O_),
        calls=BOTH,
    ),
    stream(
        "A6 all under index 0, in pieces with their ids",
        part(0, id="c1", name=W, arguments=""),
        part(0, id="c2", name=W, arguments=""),
        part(0, id="c1", arguments=P),
        part(0, id="c2", arguments=O_),
        calls=BOTH,
    ),
    stream(
        "A6 all under index 0 without ids",
        part(0, name=W, arguments=P),
        part(0, name="ping", arguments="{}"),
        part(0, name=W, arguments=O_),
        calls=[(W, PARIS), ("ping", {}), (W, OSLO)],
    ),
    stream(
        "A7 head under 0, tail under 1",
        part(0, id="c1", name=W, arguments=""),
        part(0, arguments=P),
        part(0, id="c2", name=W, arguments=""),
        part(1, arguments='{"city": '),
        part(1, arguments='"Oslo"}'),
        calls=BOTH,
    ),
    stream(
        "A8 indexes from 1",
        part(1, id="c1", name=W, arguments=P),
        part(2, id="c2", name=W, arguments=O_),
        calls=BOTH,
    ),
    stream(
        "A8 interleaved",
        part(0, id="c1", name=W, arguments=""),
        part(1, id="c2", name=W, arguments=""),
        part(0, arguments=P),
        part(1, arguments=O_),
        calls=BOTH,
    ),
    stream(
        "A9 name and id in every delta",
        part(0, id="c1", name=W, arguments='{"ci'),
        part(0, id="c1", name=W, arguments='ty": "Par'),
        part(0, id="c1", name=W, arguments='is"}'),
        part(0, id="c1", name=W, arguments=""),
        calls=[(W, PARIS)],
    ),
    stream(
        "A9 name in every delta, no index, no id",
        part(name=W, arguments='{"ci'),
        part(name=W, arguments='ty": "Paris"}'),
        calls=[(W, PARIS)],
    ),
    stream(
        "A9 whole arguments said again at the end",
        part(0, id="c1", name=W, arguments=""),
        part(0, arguments=P),
        part(0, id="c1", name=W, arguments=P),
        calls=[(W, PARIS)],
    ),
    stream(
        "A9 name in pieces",
        part(0, id="c1", name="get_"),
        part(0, name="weather", arguments=P),
        calls=[(W, PARIS)],
    ),
    stream(
        "A11 late id, arguments null first",
        part(0, name=W, arguments=None),
        part(0, id="c1", name=None, arguments=P),
        calls=[(W, PARIS)],
    ),
    stream(
        "A11 late id under another index",
        part(0, name=W, arguments=None),
        part(1, id="c1", name=None, arguments=P),
        calls=[(W, PARIS)],
    ),
    stream(
        "A11 late id without index",
        part(name=W, arguments=None),
        part(id="c1", arguments=P),
        calls=[(W, PARIS)],
    ),
    *(
        Case(f"A13 no arguments as {raw!r}", calls(call("ping", raw)), [("ping", {})])
        for raw in NOTHING
    ),
    *(Case(f"A14 arguments {raw!r}", calls(call(W, raw)), [(W, None)]) for raw in ODD_OBJECTS),
    Case("A15 truncated arguments", calls(call(W, '{"city": "Par')), [(W, None)]),
    Case("A17 double-encoded", calls(call(W, json.dumps(P))), [(W, PARIS)]),
    Case(
        "A19 arguments as an object",
        calls(call(W, {}) | {"function": {"name": W, "arguments": PARIS}}),
        [(W, PARIS)],
    ),
    Case(
        "A21 unknown and known",
        calls(call("nope", {}), call(W, PARIS, "c2")),
        [("nope", {}), (W, PARIS)],
    ),
    Case(
        "A23 five identical calls",
        calls(*(call("send_email", {"to": "a"}, f"c{n}") for n in range(5))),
        [("send_email", {"to": "a"})] * 5,
    ),
    Case("A26 finish stop with calls", calls(call(W, PARIS), finish="stop"), [(W, PARIS)]),
    Case(
        "A26 finish tool_calls with none",
        text("Sunny.", finish="tool_calls"),
        text="Sunny.",
        finish="stop",
    ),
    Case(
        "A27 content as parts",
        text([{"type": "text", "text": "Sun"}, {"type": "text", "text": "ny."}, "!"]),
        text="Sunny.!",
        finish="stop",
    ),
    Case(
        "A27 thinking among the parts",
        text(
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "Sunny."},
            ]
        ),
        text="Sunny.",
        reasoning="hm",
        finish="stop",
    ),
    Case(
        "legacy function_call",
        Shape(
            message={"content": None, "function_call": {"name": W, "arguments": P}},
            finish="function_call",
        ),
        [(W, PARIS)],
    ),
    Case("one call not in a list", Shape(message={"tool_calls": call(W, PARIS)}), [(W, PARIS)]),
    Case(
        "think block",
        text("<think>\nhm\n</think>\n\nSunny."),
        text="Sunny.",
        reasoning="hm",
        finish="stop",
    ),
    Case(
        "think block without its opening tag",
        text("hm\n</think>\nSunny."),
        text="Sunny.",
        reasoning="hm",
        finish="stop",
    ),
    Case(
        "quoted think tags are text",
        text("Close with `</think>`, open with `<think>`."),
        text="Close with `</think>`, open with `<think>`.",
        finish="stop",
    ),
    Case(
        "reasoning_content",
        Shape(message={"content": "Sunny.", "reasoning_content": "hm"}),
        text="Sunny.",
        reasoning="hm",
        finish="stop",
    ),
    Case(
        "a refusal is text",
        Shape(message={"content": None, "refusal": "I will not."}),
        text="I will not.",
        finish="stop",
    ),
    Case(
        "B28 cut at the limit",
        calls(call("send_email", {"to": "a"}), finish="length"),
        [("send_email", None)],
        finish="length",
    ),
    Case(
        "B29 cut within the arguments",
        calls(call("send_email", '{"to": "a", "bo'), finish="length"),
        [("send_email", None)],
        finish="length",
    ),
    Case(
        "B42 lone surrogate in arguments",
        calls(call(W, '{"city": "x\\ud83dy"}')),
        [(W, {"city": "x\ufffdy"})],
    ),
    Case("B42 lone surrogate in text", text("x\ud83dy"), text="x\ufffdy", finish="stop"),
    Case(
        "B42 surrogate pair over two deltas",
        Shape((chunk({"content": "x\ud83d"}), chunk({"content": "\ude00y"}))),
        text="x\U0001f600y",
        finish="stop",
        only_stream=True,
    ),
]
