"""``cadenza run`` and ``runs``: the answer, exit codes, JSON, resuming, in both modes."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import Any

import pytest

from agents.models.scripted import ScriptedModel
from orchestrator.pipeline import Pipeline
from tests.acceptance.cli_kit import Cli, team

MODES = ("orchestration", "choreography")
TOOLS = """
from cadenza import agent, tool

@tool
async def stock(sku: str) -> int:
    \"\"\"Count what is left.

    Args:
        sku: The item.
    \"\"\"
    if sku == "none":
        raise ValueError("there is no such item")
    return 7

@agent
async def fails(task: str) -> str:
    raise RuntimeError("the printer is on fire")
"""
CALLS: list[Any] = [
    {"tool_calls": [{"name": "stock", "arguments": {"sku": "A1"}}]},
    {"tool_calls": [{"name": "stock", "arguments": {"sku": "none"}}]},
    "There are {{observation.0}}.",
]
STOCK = '{"tools": ["shop:stock"]}'


@pytest.mark.parametrize("mode", MODES)
def test_the_answer_is_all_that_standard_output_has(cli: Cli, mode: str) -> None:
    cli.write(**team(CALLS, STOCK), shop__py=TOOLS)
    told = cli("run", "pipeline.yaml", "How many?", "--mode", mode)
    assert (told.code, told.out) == (0, "There are 7.\n")
    for line in (
        f"run  {told.run} · pipeline · {mode} · memory bus",
        "RECORDED replies",
        'tool  task/clerk.0: stock(sku="A1")',
        "stock → 7",
        "stock → error: ValueError: there is no such item",
        "done  task/clerk.0 (clerk)",
        "3 model calls, 2 tool calls",
        f"cadenza runs show {told.run}",
    ):
        assert line in told.err
    told = cli("run", "pipeline.yaml", "How many?", "--mode", mode, "--quiet")
    assert (told.code, told.out, told.err) == (0, "There are 7.\n", "")


@pytest.mark.parametrize("mode", MODES)
def test_json_lines_are_the_events_and_the_result(cli: Cli, mode: str) -> None:
    cli.write(**team(CALLS, STOCK), shop__py=TOOLS)
    told = cli("run", "pipeline.yaml", "How many?", "--json", "--mode", mode)
    *events, result = told.lines
    ledger = [event for event in events if "seq" in event]
    assert [event["seq"] for event in ledger] == list(range(1, len(ledger) + 1))
    assert ledger[-1]["type"] == "run.completed"
    assert [e["type"] for e in events if e["type"].startswith("tool_")] == [
        "tool_start", "tool_result", "tool_start", "tool_error",
    ]  # fmt: skip
    assert result["type"] == "result"
    assert result["output"] == "There are 7."
    assert result["usage"]["llm_calls"] == 3
    assert result["run"] == told.run
    assert ledger == cli("runs", "show", told.run, "--json").lines


def test_a_run_that_fails_ends_in_1_and_tells_why(cli: Cli) -> None:
    cli.write(
        pipeline__yaml=json.dumps({"agents": {"printer": {"use": "shop:fails"}}}), shop__py=TOOLS
    )
    told = cli("run", "pipeline.yaml", "Print it.")
    assert (told.code, told.out) == (1, "")
    assert "RuntimeError: the printer is on fire" in told.err
    assert "failed" in cli("runs", "list").out
    quiet = cli("run", "pipeline.yaml", "Print it.", "-q")
    assert quiet.code == 1
    assert quiet.err.count("\n") == 1


def test_a_run_that_its_budget_stops_ends_in_3(cli: Cli) -> None:
    cli.write(**team(CALLS, STOCK, budget={"llm_calls": 1}), shop__py=TOOLS)
    told = cli("run", "pipeline.yaml", "How many?")
    assert told.code == 3
    assert "over_budget" in told.err


@pytest.mark.parametrize("way", ["argument", "standard input", "file"])
def test_the_task_comes_as_an_argument_by_standard_input_or_from_the_file(
    cli: Cli, way: str
) -> None:
    files = team([{"match": "Wie viele?", "text": "Sieben."}])
    if way == "file":
        files["pipeline__yaml"] = "# task:  Wie viele? \n" + files["pipeline__yaml"]
    cli.write(**files)
    words = {"argument": ["Wie viele?"], "standard input": ["-"], "file": []}[way]
    told = cli("run", "pipeline.yaml", *words, stdin=b"Wie viele?\n")
    assert told.out == "Sieben.\n"


def test_a_task_of_a_megabyte_works_and_is_shown_cut(cli: Cli) -> None:
    cli.write(**team(["Long."]))
    told = cli("run", "pipeline.yaml", "-", stdin=b"word " * 210_000)
    assert told.out == "Long.\n"
    assert len(told.err) < 3_000
    story = cli("runs", "show", told.run)
    assert "more characters)" in story.out
    assert len(story.out) < 5_000
    assert len(cli("runs", "list").out) < 300
    assert len(cli("runs", "show", told.run, "--messages", "clerk.0").out) > 1_000_000
    told = cli("run", "pipeline.yaml", "-", stdin=b"word " * 1_000_000)
    assert told.code == 2
    assert "longer than 4 MiB" in told.err


def test_files_and_values_come_with_the_run(cli: Cli) -> None:
    cli.write(**team([{"match": r"- notes\.txt \(text/plain\)", "text": "Read."}]), notes__txt="a")
    told = cli("run", "pipeline.yaml", "Read.", "-f", "notes.txt", "-i", "a=b=c", "--session", "s")
    assert told.out == "Read.\n"
    story = cli("runs", "show", told.run).out
    assert "files  notes.txt" in story
    assert 'values  {"a": "b=c"}' in story


def test_replies_can_be_recorded_and_played_again(cli: Cli) -> None:
    cli.write(**team(CALLS, STOCK), shop__py=TOOLS)
    assert cli("run", "pipeline.yaml", "x", "--record", "tape.jsonl").code == 0
    told = cli("run", "pipeline.yaml", "x", "--set", "models.main.model=scripted/tape.jsonl")
    assert told.out == "There are 7.\n"


def test_a_run_that_has_ended_is_shown_again(cli: Cli) -> None:
    cli.write(**team(CALLS, STOCK), shop__py=TOOLS)
    told = cli("run", "pipeline.yaml", "How many?")
    (cli.folder / "pipeline.yaml").unlink()
    again = cli("runs", "resume", told.run[:12])
    assert (again.code, again.out) == (0, told.out)
    assert "has ended" in again.err
    assert cli("runs", "resume", told.run, "--json").lines[-1]["output"] == "There are 7."
    assert "has already ended: completed" in cli("runs", "cancel", told.run).err


def test_runs_are_listed_for_people_and_for_programs(cli: Cli) -> None:
    cli.write(**team(["Good."]))
    runs = [cli("run", "pipeline.yaml", f"task {n}").run for n in range(3)]
    listed = cli("runs", "list", "--limit", "2").out.splitlines()
    assert [line.split()[0] for line in listed] == runs[:0:-1]
    assert listed[0].split()[3:] == ["completed", "orchestration", "pipeline", "task", "2"]
    rows = cli("runs", "list", "--json").lines
    assert [row["task"] for row in rows] == ["task 2", "task 1", "task 0"]
    assert {row["status"] for row in rows} == {"completed"}


def test_the_hints_name_the_store_where_it_is_not_the_usual_one(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.write(**team(["Good."], store={"url": "data dir/runs.db"}))
    told = cli("run", "pipeline.yaml", "x")
    assert f"cadenza runs show {told.run} --store 'data dir/runs.db'\n" in told.err
    assert told.run in cli("runs", "list", "--store", "data dir/runs.db").out
    monkeypatch.setenv("CADENZA_STORE__URL", "data dir/runs.db")
    assert told.run in cli("runs", "list").out
    told = cli("run", "pipeline.yaml", "x", "--store", ".cadenza/runs.db")
    assert f"cadenza runs show {told.run}\n" in told.err


@pytest.mark.parametrize("mode", MODES)
def test_the_story_of_a_run_tells_who_did_what_and_why_it_ended(cli: Cli, mode: str) -> None:
    plan = [
        {"id": "count", "agent": "clerk", "task": "Count."},
        {"id": "print", "agent": "printer", "task": "Print {{count}}", "after": ["count"]},
    ]
    instead = [{"id": "read", "agent": "clerk", "task": "Read it out.", "after": ["count"]}]
    replies: list[Any] = [
        {"subtask": "plan", "text": json.dumps({"subtasks": plan})},
        {"subtask": "plan/print/replan", "text": json.dumps({"subtasks": instead})},
        *({"subtask": "plan/count", **call} for call in CALLS[:2]),
        {"subtask": "plan/count", "text": CALLS[2]},
        {"subtask": "plan/print/replan/read", "text": "Seven."},
    ]
    files = team(replies, STOCK, planner={"model": "main"})
    pipeline = json.loads(files["pipeline__yaml"])
    pipeline["agents"]["printer"] = {"use": "shop:fails"}
    cli.write(**{**files, "pipeline__yaml": json.dumps(pipeline)}, shop__py=TOOLS)
    told = cli("run", "pipeline.yaml", "How many?", "--mode", mode)
    assert told.out == "Seven.\n", told.err
    story = cli("runs", "show", told.run).out
    words = [
        f"run  {told.run} · pipeline · {mode} · completed",
        "task  How many?",
        "subtasks",
        "plan/count (clerk)",
        "plan/print (printer)",
        "failed after plan/count",
        "plan/print/replan (planner)",
        "instead of plan/print",
        "what happened",
        "done  plan (planner)",
        "start  plan/count (clerk)",
        'tool  plan/count: stock(sku="A1")',
        "stock → error: ValueError: there is no such item",
        "done  plan/count (clerk)",
        "→ There are 7.",
        "failed  plan/print (printer): agent_raised: RuntimeError: the printer is on fire",
        "start  plan/print/replan/read (clerk)",
        "how it ended",
        "answer  Seven.",
    ]
    place = 0
    for word in words:
        place = story.find(word, place)
        assert place >= 0, f"{word!r} is missing, or in the wrong place, in:\n{story}"
    assert cli("runs", "show", told.run, "--canonical").lines[-1]["terminal"] == "completed"


def test_a_run_keeps_its_pinned_pipeline_and_says_what_is_otherwise_now(cli: Cli) -> None:
    agent = '{"tools": ["shop:stock"], "ask_human": true, "instructions": "First."}'
    ask = {"tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}]}
    cli.write(**team([ask, {"match": "the red one", "text": "Red."}], agent), shop__py=TOOLS)
    told = cli("run", "pipeline.yaml", "Which?", "--set", "limits.slots=2")
    assert told.code == 4
    cli("answer", told.run, told.asked, "the red one")
    changed = team([ask, "Blue."], agent.replace("First", "Second"))
    cli.write(pipeline__yaml=changed["pipeline__yaml"])
    again = cli("runs", "resume", told.run)
    assert again.out == "Red.\n"
    assert "now otherwise: agents.clerk.instructions, limits" in again.err


def test_a_run_that_was_said_in_python_or_lost_its_folder_says_so(cli: Cli) -> None:
    async def said() -> str:
        ask = {"tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}]}
        agents = {"clerk": {"ask_human": True}}
        store = str(cli.folder / ".cadenza/runs.db")
        async with Pipeline(
            agents, models={"main": ScriptedModel([ask])}, store=store, folder=cli.folder
        ) as pipeline:
            return (await pipeline.run("Find it.")).run

    run = asyncio.run(said())
    for words in (["resume", run], ["show", run, "--messages", "clerk.0"]):
        told = cli("runs", *words)
        assert told.code == 2
        assert "was said in Python" in told.err
    assert "Which?" in cli("runs", "show", run).out
    assert cli("trace", "show", run).code == 0
    here = Cli(cli.folder / "here")
    here.folder.mkdir()
    agent = '{"ask_human": true}'
    here.write(
        **team([{"tool_calls": [{"name": "ask_human", "arguments": {"question": "?"}}]}], agent)
    )
    run = cli("run", "here/pipeline.yaml", "Find it.").run
    shutil.rmtree(here.folder)
    told = cli("runs", "resume", run)
    assert told.code == 2
    assert "here', which is gone" in told.err
