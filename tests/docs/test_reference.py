"""The reference says what the code says: nothing is missing, nothing is there no more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from opentelemetry.sdk import environment_variables as otel

from agents.emitter import Emitter
from agents.events import AgentEvent, AgentEventType
from agents.models.scripted import ScriptedModel
from agents.tool_decorator import tool
from orchestrator.cli.commands import cli
from orchestrator.cli.exits import OF_STATUS
from orchestrator.discovery import PROVIDERS
from orchestrator.pipeline import Pipeline
from orchestrator.result import RunResult
from orchestrator.state import FINAL_EVENTS, Event
from tests.docs.generated import pages_with_parts, written
from tests.docs.page import DOCS, ROOT
from tests.house.source import PACKAGES, python_files

EVENTS = (DOCS / "reference" / "events.md").read_text("utf-8")
ENVIRONMENT = (DOCS / "reference" / "environment.md").read_text("utf-8")
PARTS = pages_with_parts()


@pytest.mark.parametrize("page", PARTS, ids=lambda page: page.name)
def test_parts_from_the_code_are_up_to_date(page: Path) -> None:
    text = page.read_text("utf-8")
    assert written(text) == text, "run: python -m tests.docs.generated"


def test_all_parts_are_in_the_pages() -> None:
    assert sorted(name for names in PARTS.values() for name in names) == [
        "built-in-tools", "commands", "pipeline-keys", "python-names", "tool-options",
    ]  # fmt: skip


def test_every_command_has_its_section() -> None:
    text = (DOCS / "reference" / "command-line.md").read_text("utf-8")
    assert [name for name in cli.commands if f"## cadenza {name}\n" not in text] == []


def test_every_exit_code_is_told() -> None:
    text = (DOCS / "reference" / "command-line.md").read_text("utf-8")
    told = set(map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE)))
    source = (ROOT / "orchestrator/cli/exits.py").read_text()
    named = re.search(r"= ((?:\d+, )+\d+)$", source, re.MULTILINE)
    assert named is not None
    assert told == set(map(int, named[1].split(", "))) >= set(OF_STATUS.values())


def table(text: str) -> dict[str, tuple[set[str], set[str]]]:
    """Return, by type of event, the keys that are always there, and the others."""
    found = {}
    for kind, data in re.findall(r"^\| `([\w.]+)` \| (.*?) \|", text, re.MULTILINE):
        sometimes = set(re.findall(r"\(`(\w+)`\)", data))
        found[kind] = (set(re.findall(r"`(\w+)`", data)) - sometimes, sometimes)
    return found


LEDGER = table(EVENTS.partition("## Agent events")[0])
AGENT = table(EVENTS.partition("## Agent events")[2])


def emitted() -> Iterator[tuple[str, set[str]]]:
    """Yield the types of events that the rules emit, with the keys that stand in the call."""
    for path, text in python_files():
        if path.parts[0] != "orchestrator":
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(ast.Attribute(attr="emit"), [ast.Constant(str(kind))], keywords):
                    yield kind, {keyword.arg for keyword in keywords if keyword.arg}


def test_every_ledger_event_is_told_with_its_data() -> None:
    calls = list(emitted())
    assert {kind for kind, _ in calls} | FINAL_EVENTS == set(LEDGER)
    for kind, keys in calls:
        always, sometimes = LEDGER[kind]
        assert keys <= always | sometimes, kind


def test_every_agent_event_is_told_with_its_data() -> None:
    assert set(AGENT) == set(get_args(AgentEventType))
    told = re.findall(r"``(\w+)``: ([^\n.]*)", Emitter.__doc__ or "")
    data = {kind: set(re.findall(r"\b[a-z_]+\b", keys)) for kind, keys in told}
    for kind, (always, _) in AGENT.items():
        if kind != "tool_error":  # "the same, with error"
            assert always <= data[kind], kind


@tool(needs_approval=True)
def sell(pieces: int) -> int:
    """Sell.

    Args:
        pieces: How many.
    """
    if pieces > 9:
        raise ValueError("too many")
    return pieces


def settings(**more: object) -> dict[str, object]:
    return {"model": "main", **more}


BUSY = {
    "seller": settings(tools=[sell], reacts_to=["task"], can_ask=["helper"]),
    "helper": settings(),
    "watcher": settings(reacts_to=["sold"]),
}
REPLIES = [
    {"agent": "seller", "tool_calls": [{"name": "sell", "arguments": {"pieces": 3}}] * 2},
    {"agent": "seller", "tool_calls": [{"name": "sell", "arguments": {"pieces": 12}}]},
    {
        "agent": "seller",
        "tool_calls": [
            {"name": "report_finding", "arguments": {"kind": "sold", "data": 3}},
            {"name": "ask_agent", "arguments": {"agent": "helper", "task": "Well?"}},
        ],
    },
    {"agent": "seller", "text": "Sold."},
    {"agent": "helper", "text": "Well."},
    {"agent": "watcher", "error": {"kind": "unavailable", "message": "busy"}},
]


async def test_events_of_a_busy_run_have_the_data_that_is_told(tmp_path: Path) -> None:
    pipeline = Pipeline(
        BUSY, models={"main": ScriptedModel(REPLIES)}, store=":memory:", folder=tmp_path,
        limits={"attempts": 2}, tracing={"file": "traces.jsonl"},
    )  # fmt: skip
    seen: set[str] = set()
    async with pipeline, pipeline.start("Sell something.") as run:
        async for event in run:
            always, sometimes = (AGENT if isinstance(event, AgentEvent) else LEDGER)[event.type]
            assert always <= set(event.data) <= always | sometimes, event.type
            seen.add(event.type)
            if isinstance(event, Event) and event.type == "input.requested":
                await run.provide(event.data["input"], approve=True)
        result: RunResult = await run.result()
    assert result.status == "failed"
    assert {
        "run.submitted", "run.ending", "run.failed", "subtask.parked", "subtask.child_ended",
        "subtask.retry_scheduled", "subtask.failed", "finding.reported", "input.provided",
        "tool_start", "tool_result", "tool_error", "tool_duplicate", "agent_end", "error",
    } <= seen  # fmt: skip


def test_every_variable_that_is_read_is_told_and_no_other() -> None:
    read = {
        name
        for path, text in python_files()
        if path.parts[0] in PACKAGES
        for name in re.findall(
            r"\"((?:OTEL|OPENAI|OLLAMA)_[A-Z_]+|NO_COLOR|CADENZA_[A-Z_]+[A-Z])\"", text
        )
    }
    told = set(re.findall(r"`([A-Z]+(?:_+[A-Z]+)+)`", ENVIRONMENT))
    assert read - told == set()
    known = read | {name for name in vars(otel) if name.startswith("OTEL_")}
    assert {name for name in told - known if not name.startswith("CADENZA_")} == {
        key for key, _ in PROVIDERS
    } - known


def test_providers_are_told_in_their_order() -> None:
    told = re.findall(r"^\| `(\w+_API_KEY)` \| `(\S+)` \|", ENVIRONMENT, re.MULTILINE)
    assert tuple(told) == PROVIDERS
