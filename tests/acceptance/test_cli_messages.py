"""What ``--messages`` and ``prompts show`` print is, to the byte, what a model was sent."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

from orchestrator.discovery import discover_model
from tests.acceptance.cli_kit import Cli, Told, team

# A model that writes down what it is sent, as JSON lines, and answers from the script.
SPY = '''
import json, threading
from dataclasses import asdict
from pathlib import Path
from agents.messages import messages_to_json
from agents.models.scripted import ScriptedModel
from cadenza import agent, tool

HERE = Path(__file__).parent

class Spy:
    structured = True
    media_types = ()

    def __init__(self, settings):
        self.name = settings.model
        self.dialect = settings.dialect or "native"
        self.inner = ScriptedModel.load(HERE / "replies.yaml", dialect=self.dialect)

    async def complete(self, request, on_delta=None):
        line = {
            **asdict(request.key),
            "messages": messages_to_json(request.messages),
            "tools": [asdict(each) for each in request.tools],
            "tool_choice": request.tool_choice,
            "stop": list(request.stop),
            "response_schema": request.response_schema,
        }
        writing = threading.Thread(target=self.note, args=[json.dumps(line)])
        writing.start()
        writing.join()
        return await self.inner.complete(request, on_delta)

    def note(self, line):
        with (HERE / "sent.jsonl").open("a") as file:
            file.write(line + "\\n")

    async def aclose(self):
        pass

def spy(settings):
    return Spy(settings)

@tool
async def look(page: int) -> str:
    """Look at a page.

    Args:
        page: Its number.
    """
    if page < 0:
        raise ValueError("pages begin at 0")
    return f"page {page}: " + "ありがとう word " * 1_000

@tool(needs_approval=True, reads="untrusted")
async def fetch(page: int) -> str:
    """Fetch a page."""
    return f"fetched {page}"

@agent
async def fails(task: str) -> str:
    raise RuntimeError("on fire")
'''
TOOLS = ["spy_pages:look", "spy_pages:fetch"]


def call(*pages: int, name: str = "look") -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": {"page": page}} for page in pages]}


def spied(cli: Cli, replies: list[Any], *, dialect: str = "native", **more: Any) -> None:
    agent = {"tools": TOOLS, "depth": "deep", "ask_human": True, **more.pop("agent", {})}
    model = {"use": "spy_pages:spy", "dialect": dialect}
    files = team(replies, json.dumps(agent), models={"main": model}, **more)
    pipeline = json.loads(files["pipeline__yaml"])
    pipeline["agents"]["printer"] = {"use": "spy_pages:fails"}
    if not more:
        pipeline["plan"] = [{"id": "a", "agent": "clerk"}]
    cli.write(**{**files, "pipeline__yaml": json.dumps(pipeline)}, spy_pages__py=SPY)


def check(cli: Cli, told: Told, subtask: str) -> list[dict[str, Any]]:
    """Compare what is shown with what was sent; return it."""
    sent = [json.loads(line) for line in (cli.folder / "sent.jsonl").read_text().splitlines()]
    mine = [each for each in sent if each["subtask"] == subtask]
    once = [each for each, _ in groupby(mine)]  # a call that failed is made again, as it was
    shown = cli("runs", "show", told.run, "--messages", subtask, "--json").lines
    assert all(each.pop("replied") for each in shown)
    assert json.dumps(shown, ensure_ascii=False) == json.dumps(once, ensure_ascii=False)
    assert shown
    return shown


@pytest.mark.parametrize("dialect", ["native", "text"])
def test_tools_mistakes_and_a_person_in_between(cli: Cli, dialect: str) -> None:
    replies: list[Any] = [
        {"call": 0, **call(1)},
        {"call": 1, **call(-1)},
        {"call": 2, "text": "Action: look\nAction Input: {broken" if dialect == "text" else "",
         "tool_calls": [] if dialect == "text" else [{"name": "nothing"}]},
        {"call": 3, **call(2, name="fetch")},
        {"call": 4, "text": "cut off", "finish_reason": "length"},
        {"call": 5, "text": "Final Answer: done" if dialect == "text" else "done"},
    ]  # fmt: skip
    spied(cli, replies, dialect=dialect)
    told = cli("run", "pipeline.yaml", "Look.")
    assert told.code == 4
    check(cli, told, "a")
    assert cli("approve", told.run, "--edit", '{"page": 3}').code == 0
    assert cli("runs", "resume", told.run).out == "done\n"
    shown = check(cli, told, "a")
    assert [each["call"] for each in shown] == [0, 1, 2, 3, 4, 5]
    assert "fetched 3" in json.dumps(shown[-1]["messages"])


def test_an_answer_that_does_not_fit_and_the_next_generation(cli: Cli) -> None:
    replies = [
        {"generation": 0, "call": 0, "text": "no JSON"},
        {"generation": 0, "call": 1, "text": "still none"},
        {"generation": 1, **call(1)},
        {"generation": 1, "text": '{"n": 1}'},
    ]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    spied(cli, replies, agent={"output": schema})
    told = cli("run", "pipeline.yaml", "Count.")
    assert json.loads(told.out) == {"n": 1}
    shown = check(cli, told, "a")
    assert [(each["generation"], each["call"]) for each in shown] == [
        (0, 0), (0, 1), (1, 0), (1, 1),
    ]  # fmt: skip


def test_a_memory_that_was_cut_and_a_prompt_that_was_too_long(cli: Cli) -> None:
    replies = [
        *({"call": n, **call(*range(n * 8, n * 8 + 8))} for n in range(6)),
        {"call": 6, "error": "context_overflow"},
        {"call": 7, "text": "done"},
    ]
    spied(cli, replies)
    told = cli("run", "pipeline.yaml", "Look at all.")
    assert told.out == "done\n"
    shown = check(cli, told, "a")
    assert "earlier messages were left out" in json.dumps(shown[-1]["messages"])
    text = cli("runs", "show", told.run, "--messages", "a").out
    assert text.count("━━ request") == 8
    assert "earlier messages were left out" in text


def test_an_agent_that_was_stopped_is_shown_what_forced_its_answer(cli: Cli) -> None:
    spied(cli, [{"match": "Stop here", "text": "enough"}, {"match": ".", **call(1)}])
    told = cli("run", "pipeline.yaml", "Look.")
    assert told.out == "enough\n"
    shown = check(cli, told, "a")
    assert shown[-1]["tool_choice"] == "none"


@pytest.mark.parametrize("mode", ["orchestration", "choreography"])
def test_planners_with_a_review_and_a_replan(cli: Cli, mode: str) -> None:
    def plan(agent: str, after: list[str]) -> str:
        item = {"id": "p", "agent": agent, "task": f"Do by {agent}.", "after": after}
        return json.dumps({"subtasks": [item]})

    replies = [
        {"subtask": "plan", "generation": 0, "text": plan("clerk", [])},
        {"subtask": "plan", "generation": 1, "text": plan("printer", [])},
        {"subtask": "plan/p/replan", "text": plan("clerk", [])},
        {"agent": "clerk", "text": "done"},
    ]
    spied(cli, replies, planner={"model": "main", "review": True})
    told = cli("run", "pipeline.yaml", "Print.", "--mode", mode)
    assert cli("deny", told.run, "--reason", "let the printer do it").code == 0
    for _ in range(2):
        assert cli("runs", "resume", told.run).code == 4
        assert cli("approve", told.run).code == 0
    assert cli("runs", "resume", told.run).out == "done\n"
    shown = check(cli, told, "plan")
    assert [each["generation"] for each in shown] == [0, 1]
    assert "let the printer do it" in json.dumps(shown[1]["messages"])
    shown = check(cli, told, "plan/p/replan")
    assert "on fire" in json.dumps(shown[0]["messages"])
    check(cli, told, "plan/p/replan/p")
    told = cli("runs", "show", told.run, "--messages", "plan/p")
    assert told.code == 2
    assert "'printer' is a function; it asks no model" in told.err


def test_a_request_without_a_reply_is_shown_and_marked(cli: Cli) -> None:
    spied(cli, [call(1), {"error": {"kind": "refused", "message": "no such key"}}])
    told = cli("run", "pipeline.yaml", "Look.")
    assert told.code == 1
    shown = cli("runs", "show", told.run, "--messages", "a", "--json").lines
    assert [each["replied"] for each in shown] == [True, False]
    text = cli("runs", "show", told.run, "--messages", "a").out
    assert "request 2 · clerk · 4 messages, the first 2 as before · NO REPLY was recorded" in text


def test_showing_messages_asks_no_model_and_calls_no_tool(cli: Cli) -> None:
    spied(cli, [call(1), "done"])
    told = cli("run", "pipeline.yaml", "Look.")
    before = (cli.folder / "sent.jsonl").read_text()
    source = (cli.folder / "spy_pages.py").read_text()
    cli.write(spy_pages__py=source.replace("if page < 0:", "raise SystemExit(page)"))
    assert cli("runs", "show", told.run, "--messages", "a").code == 0
    assert (cli.folder / "sent.jsonl").read_text() == before


@pytest.mark.parametrize("dialect", ["native", "text"])
@pytest.mark.parametrize("agent", ["clerk", "planner"])
def test_the_prompt_of_an_agent_is_what_it_sends_first(cli: Cli, dialect: str, agent: str) -> None:
    plan = {"subtasks": [{"id": "p", "agent": "clerk", "task": "Look it up."}]}
    replies = [{"agent": "planner", "text": json.dumps(plan)}, {"agent": "clerk", "text": "ok"}]
    spied(cli, replies, dialect=dialect, planner={"model": "main"})
    told = cli("run", "pipeline.yaml", "Look it up.")
    name = {"clerk": "plan/p", "planner": "plan"}[agent]
    first = check(cli, told, name)[0]
    words = ["prompts", "show", "pipeline.yaml", agent, "--task", "Look it up."]
    shown = cli(*words, "--json").lines[0]
    assert shown["messages"] == first["messages"]
    assert shown["tools"] == first["tools"]
    text = cli(*words).out
    assert first["messages"][0]["text"] in text
    assert all(tool["description"] in text for tool in first["tools"])


def test_prompts_are_shown_where_there_is_no_model_and_not_for_functions(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover_model, "__kwdefaults__", {"servers": ()})
    spied(cli, [])
    pipeline = json.loads((cli.folder / "pipeline.yaml").read_text())
    del pipeline["models"]
    cli.write(pipeline__yaml=json.dumps(pipeline))
    told = cli("prompts", "show", "pipeline.yaml", "clerk")
    assert told.code == 0
    assert "there is no model" in told.err
    assert "You are clerk." in told.out
    assert "── tool look" in told.out
    told = cli("prompts", "show", "pipeline.yaml", "printer")
    assert (told.code, "is a function" in told.err) == (2, True)
