"""Pipelines and scripts that the suite plays in every combination."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from agents.context import RunContext
from agents.errors import AgentError
from agents.function import agent
from agents.tool_decorator import tool
from tests.conformance.gear import Case


class Busy(AgentError):
    """Comes right when it is tried again."""

    error_class = "busy"
    retryable = True


@tool
async def stock(sku: str) -> int:
    """How many pieces there are.

    Args:
        sku: The article.
    """
    return 7 if sku == "A1" else 0


@tool(effect="idempotent")
async def order(sku: str, pieces: int, ctx: RunContext) -> str:
    """Order an article.

    Args:
        sku: The article.
        pieces: How many.
    """
    return f"{pieces} of {sku} ordered"


@tool(effect="guarded", needs_approval=True)
async def pay(euros: int) -> str:
    """Pay a bill.

    Args:
        euros: How much.
    """
    return f"{euros} euros paid"


@agent
async def check(task: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Verify what others found."""
    return {"checked": inputs}


@agent
async def double(inputs: dict[str, Any]) -> Any:
    """Double what it is given."""
    return {name: f"{value}{value}" for name, value in sorted(inputs.items())}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a tool call of a script."""
    return {"name": name, "arguments": arguments}


def plan(*steps: tuple[str, str, str, list[str]], **more: Any) -> dict[str, str]:
    """Return a planner's reply: id, agent, task and dependencies of each subtask."""
    subtasks = [{"id": i, "agent": a, "task": t, "after": after} for i, a, t, after in steps]
    for step in subtasks:
        step.update(more.get(str(step["id"]), {}))
    return {"text": json.dumps({"subtasks": subtasks})}


def _planned() -> dict[str, Any]:
    agents = {"analyst": {"tools": [stock]}, "check": check, "writer": {"kind": "model"}}
    return {"agents": agents, "planner": {}, "synthesizer": "writer"}


PLANNED = Case(
    _planned,
    lambda: [
        {"agent": "planner"}
        | plan(
            ("a", "analyst", "Count A1.", []),
            ("b", "analyst", "Count B2.", []),
            ("c", "check", "Verify {{a}} and {{b}}.", ["a", "b"]),
            ("d", "analyst", "Say it again: {{a}}", ["a"]),
        ),
        {"subtask": "plan/a", "tool_calls": [call("stock", sku="A1")]},
        {"subtask": "plan/b", "tool_calls": [call("stock", sku="B2"), call("stock", sku="C3")]},
        {"subtask": "plan/d", "text": "Again."},
        {"agent": "analyst", "match": "Observation", "text": "There are {{observation.-1}}."},
        {"agent": "writer", "text": "Report: {{user.0}}"},
    ],
)


def _functions() -> dict[str, Any]:
    return {
        "agents": {"check": check, "double": double},
        "plan": [
            {"id": "a", "agent": "check"},
            {"id": "b", "agent": "double", "after": ["a"]},
            {"id": "c", "agent": "double", "after": ["a"]},
            {"id": "d", "agent": "check", "after": ["b", "c"]},
        ],
    }


FUNCTIONS = Case(_functions)


def _wide() -> dict[str, Any]:
    return {"agents": {"double": double, "check": check}, "planner": {}, "limits": {"slots": 2}}


WIDE = Case(
    _wide,
    lambda: [
        {"agent": "planner"}
        | plan(
            *((f"s{i}", "double", f"Part {i}.", []) for i in range(12)),
            ("end", "check", "Join.", [f"s{i}" for i in range(12)]),
        )
    ],
)


@agent
async def buyer(inputs: dict[str, Any], ctx: RunContext) -> dict[str, Any]:
    """Buy what is short."""
    ctx.report("bought", {"of": inputs})
    return {"bought": inputs}


@agent
async def auditor(inputs: dict[str, Any]) -> dict[str, Any]:
    """Look at what was bought."""
    return {"seen": inputs}


def _reactions() -> dict[str, Any]:
    return {
        "agents": {
            "scout": {"reacts_to": ["task"]},
            "buyer": {"use": buyer, "reacts_to": ["shortage"]},
            "auditor": {"use": auditor, "reacts_to": ["bought", "shortage"]},
            "writer": {"reacts_to": ["bought"]},
        }
    }


def _report(data: Any) -> dict[str, Any]:
    return call("report_finding", kind="shortage", data=data)


REACTIONS = Case(
    _reactions,
    lambda: [
        {"agent": "scout", "tool_calls": [_report({"sku": "A1"}), _report({"sku": "B2"})]},
        {"agent": "scout", "text": "Two articles are short."},
        {"agent": "writer", "text": "Written."},
    ],
)


def _people() -> dict[str, Any]:
    return {
        "agents": {
            "clerk": {"tools": [pay], "ask_human": True},
            "check": check,
        },
        "plan": [
            {"id": "a", "agent": "clerk", "task": "Pay the first bill."},
            {"id": "b", "agent": "clerk", "task": "Pay the second bill."},
            {"id": "c", "agent": "check", "after": ["a", "b"]},
        ],
    }


def _decide(asked: Mapping[str, Any]) -> dict[str, Any]:
    if asked["kind"] == "question":
        return {"value": "from the blue account"}
    euros = asked["about"]["arguments"]["euros"]
    if euros > 100:
        return {"approve": True, "value": {"euros": 100}}
    return {"approve": euros > 1, "reason": "too little", "by": "test"}


PEOPLE = Case(
    _people,
    lambda: [
        {"subtask": "a", "tool_calls": [call("ask_human", question="From which account?")]},
        {"subtask": "a", "tool_calls": [call("pay", euros=250)]},
        {"subtask": "a", "text": "{{observation.0}}: {{observation.-1}}"},
        {"subtask": "b", "tool_calls": [call("pay", euros=1), call("pay", euros=20)]},
        {"subtask": "b", "text": "{{observation.0}} {{observation.1}}"},
    ],
    people=_decide,
)


def _colleagues() -> dict[str, Any]:
    return {
        "agents": {
            "lead": {"can_ask": ["analyst", "check"], "can_hand_off": ["writer"]},
            "analyst": {"tools": [stock], "can_ask": ["check"]},
            "writer": {"can_ask": ["analyst"]},
            "check": check,
        },
        "plan": [
            {"id": "a", "agent": "lead", "task": "Ask."},
            {"id": "b", "agent": "lead", "task": "Hand off."},
        ],
        "limits": {"slots": 1},
    }


def _ask(name: str, task: str) -> dict[str, Any]:
    return call("ask_agent", agent=name, task=task)


COLLEAGUES = Case(
    _colleagues,
    lambda: [
        {"subtask": "a", "tool_calls": [_ask("analyst", "Count."), _ask("check", "Look.")]},
        {"subtask": "a", "tool_calls": [_ask("analyst", "Count again.")]},
        {"subtask": "a", "text": "{{observation.0}} | {{observation.1}} | {{observation.2}}"},
        {"subtask": "a/analyst-0", "tool_calls": [call("stock", sku="A1")]},
        {"subtask": "a/analyst-0", "tool_calls": [_ask("check", "Is it so?")]},
        {"subtask": "a/analyst-0", "text": "{{observation.0}} pieces"},
        {"subtask": "a/analyst-2", "text": "still 7"},
        {
            "subtask": "b",
            "tool_calls": [call("hand_off", agent="writer", task="Write it all.")],
        },
        {"subtask": "b/writer-0", "tool_calls": [_ask("analyst", "What is there?")]},
        {"subtask": "b/writer-0", "text": "I wrote: {{observation.-1}}"},
        {"subtask": "b/writer-0/analyst-0", "text": "nothing"},
    ],
)


@agent
async def broken(task: str) -> str:
    """Never works."""
    raise RuntimeError("it is broken")


def _replanned() -> dict[str, Any]:
    return {
        "agents": {"broken": broken, "double": double, "writer": {"kind": "model"}},
        "planner": {},
        "synthesizer": "writer",
    }


REPLANNED = Case(
    _replanned,
    lambda: [
        {"agent": "planner", "subtask": "plan"}
        | plan(
            ("a", "double", "First.", []),
            ("b", "broken", "Second {{a}}.", ["a"]),
            ("c", "double", "Third {{b}}.", ["b"]),
        ),
        {"agent": "planner", "subtask": "plan/b/replan"}
        | plan(("again", "double", "Instead of the second.", ["plan/a"])),
        {"agent": "writer", "text": "All: {{user.0}}"},
    ],
)


def _retried() -> dict[str, Any]:
    tries: Counter[str] = Counter()

    @agent
    async def moody(ctx: RunContext) -> str:
        """Works the second time."""
        tries[ctx.subtask] += 1
        if tries[ctx.subtask] < 2:
            raise Busy("come again")
        return f"done in {ctx.subtask}"

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    return {
        "agents": {
            "analyst": {"tools": [stock, order]},
            "typed": {"output": schema},
            "moody": moody,
            "check": check,
        },
        "plan": [
            {"id": "a", "agent": "analyst"},
            {"id": "b", "agent": "typed"},
            {"id": "c", "agent": "moody"},
            {"id": "d", "agent": "check", "after": ["a", "b", "c"]},
        ],
    }


RETRIED = Case(
    _retried,
    lambda: [
        {"subtask": "a", "tool_calls": [call("order", sku="A1", pieces=3)]},
        {
            "subtask": "a",
            "text": "Ordered: {{observation.0}}",
            "error": {"kind": "unavailable", "times": 2},
        },
        {"subtask": "b", "generation": 0, "text": "no number"},
        {"subtask": "b", "generation": 0, "text": "still none"},
        {"subtask": "b", "generation": 1, "text": '{"n": 4}'},
    ],
)


def _reviewed() -> dict[str, Any]:
    return {"agents": {"double": double, "check": check}, "planner": {"review": True}}


def _review(asked: Mapping[str, Any]) -> dict[str, Any]:
    steps = [step["id"] for step in asked["about"]["plan"]["subtasks"]]
    return {"approve": True} if "b" in steps else {"approve": False, "reason": "Verify it."}


REVIEWED = Case(
    _reviewed,
    lambda: [
        {"agent": "planner", "generation": 0} | plan(("a", "double", "Do it.", [])),
        {"agent": "planner", "generation": 1}
        | plan(("a", "double", "Do it.", []), ("b", "check", "Verify {{a}}.", ["a"])),
    ],
    people=_review,
)

EQUAL = {
    "planned": PLANNED,
    "functions": FUNCTIONS,
    "wide": WIDE,
    "reactions": REACTIONS,
    "people": PEOPLE,
    "colleagues": COLLEAGUES,
    "replanned": REPLANNED,
    "retried": RETRIED,
    "reviewed": REVIEWED,
}
