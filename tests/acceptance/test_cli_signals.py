"""Ctrl-C and SIGTERM, at any moment: recorded, told, resumable, and never a traceback."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_kit import Cli, team, until

MODES = ("orchestration", "choreography")
FINAL = ("run.completed", "run.cancelled")
# Three subtasks, eight model calls, four tool calls: about 0.7 s.
SLOW = """
import time
from cadenza import tool

@tool
async def count(n: int) -> int:
    \"\"\"Count.\"\"\"
    return n + 1

@tool
async def blocks(n: int) -> int:
    \"\"\"Block the event loop, as a careless tool does.\"\"\"
    with open("blocks", "w") as begun:
        begun.write("begun")
    time.sleep(60)
    return n

@tool(effect="idempotent")
def sleeps(n: int) -> int:
    \"\"\"Sleep in a thread.\"\"\"
    with open("sleeps", "a") as begun:
        begun.write("begun")
    time.sleep(0.5 if n else 60)
    return n
"""


def slow(cli: Cli, mode: str) -> None:
    calls: list[dict[str, Any]] = [
        {"delay_s": 0.07, "tool_calls": [{"name": "count", "arguments": {"n": n}}]}
        for n in range(2)
    ]
    end = {"delay_s": 0.07, "text": "counted to {{observation.-1}}"}
    steps = [{"id": "a", "agent": "clerk"}, {"id": "b", "agent": "clerk"}]
    steps.append({"id": "c", "agent": "clerk", "after": ["a", "b"]})  # type: ignore[dict-item] # one list of mappings
    agent = '{"tools": ["slow_tools:count"]}'
    cli.write(**team([*calls, end], agent, mode=mode, plan=steps), slow_tools__py=SLOW)


def one_tool(cli: Cli, name: str, n: int = 0) -> None:
    call = {"tool_calls": [{"name": name, "arguments": {"n": n}}]}
    agent = f'{{"tools": [{{"slow_tools:{name}": {{"timeout_s": 120}}}}]}}'
    cli.write(**team([call, "done"], agent, limits={"lease_s": 2}), slow_tools__py=SLOW)


def ledgers(path: Path) -> dict[str, list[str]]:
    """Return the types of the events of each run, after looking into the file itself."""
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found: dict[str, list[str]] = {}
        rows = db.execute("SELECT runs.run, ledger.seq, type FROM runs LEFT JOIN ledger"
                          " ON runs.run = ledger.run ORDER BY runs.run, ledger.seq")  # fmt: skip
        for run, seq, kind in rows:
            events = found.setdefault(run, [])
            if seq is not None:
                assert seq == len(events) + 1
                events.append(kind)
        lost = db.execute("SELECT count(*) FROM journal WHERE run NOT IN (SELECT run FROM runs)")
        assert lost.fetchone() == (0,)
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(15))
def test_ctrl_c_at_a_random_moment_ends_in_130_with_everything_recorded(
    cli: Cli, seed: int, mode: str
) -> None:
    slow(cli, mode)
    process = cli.start("run", "pipeline.yaml", "Count.", "--json")
    until(lambda: "ready" in cli.err())
    began = seed % 3  # a third from the very beginning, the others once the run is there
    if began:
        until(lambda: " · memory bus" in cli.err())
    time.sleep(random.Random(seed).uniform(0, 0.9 if began else 2.5))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    err = cli.err()
    assert "Traceback" not in err
    assert "Exception" not in err
    runs = ledgers(cli.folder / ".cadenza/runs.db")
    if not runs:
        assert process.returncode == 130
        assert "interrupted" in err
        return
    ((run, events),) = runs.items()
    if events and events[-1] in FINAL:
        assert process.returncode == {"run.completed": 0, "run.cancelled": 130}[events[-1]]
        lines = [json.loads(line) for line in out.splitlines()]
        told = [line["type"] for line in lines if "seq" in line]
        assert told == events
        assert lines[-1]["status"] == events[-1].removeprefix("run.")
    else:
        assert process.returncode == 130
        assert "cadenza runs" in err
        done = cli("runs", "resume", run)
        assert (done.code, done.out) == (0, "counted to 2\n")


def test_a_run_that_is_cancelled_says_so_and_stays_so(cli: Cli) -> None:
    one_tool(cli, "sleeps")
    process = cli.start("run", "pipeline.yaml", "Sleep.")
    until((cli.folder / "sleeps").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Ctrl-C again leaves at once" in cli.err()
    assert "cancelled  interrupted by Ctrl-C" in cli.err()
    ((run, events),) = ledgers(cli.folder / ".cadenza/runs.db").items()
    assert events[-1] == "run.cancelled"
    assert cli("runs", "resume", run).code == 1


@pytest.mark.parametrize("tool", ["blocks", "sleeps"])
def test_ctrl_c_twice_leaves_at_once_and_the_run_can_be_resumed(cli: Cli, tool: str) -> None:
    one_tool(cli, tool)
    process = cli.start("run", "pipeline.yaml", "Do it.")
    until((cli.folder / tool).exists)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)  # two signals at once are one
    process.send_signal(signal.SIGINT)
    left = time.monotonic()
    process.communicate(timeout=30)
    assert process.returncode == 130
    if tool == "blocks":
        assert time.monotonic() - left < 5
        ((run, events),) = ledgers(cli.folder / ".cadenza/runs.db").items()
        assert f"go on with: cadenza runs resume {run}" in cli.err()
        assert events[-1] not in FINAL
        source = (cli.folder / "slow_tools.py").read_text()
        cli.write(slow_tools__py=source.replace("time.sleep(60)", "pass"))
        done = cli("runs", "resume", run)
        assert (done.code, done.out) == (0, "done\n")
        assert "its worker is gone" in done.err
        assert "a worker has task/clerk.0; if it is gone, its lease ends within 2 s" in done.err
    assert "Traceback" not in cli.err()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(5))
def test_sigterm_leaves_the_run_for_whoever_resumes_it(cli: Cli, seed: int, mode: str) -> None:
    slow(cli, mode)
    process = cli.start("run", "pipeline.yaml", "Count.")
    until(lambda: " · memory bus" in cli.err())
    time.sleep(random.Random(seed).uniform(0, 0.45))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    ((run, events),) = ledgers(cli.folder / ".cadenza/runs.db").items()
    assert events[-1] not in FINAL
    assert process.returncode == 143
    assert f"terminated; go on with: cadenza runs resume {run}" in cli.err()
    assert "Traceback" not in cli.err()
    done = cli("runs", "resume", run)
    assert (done.code, done.out) == (0, "counted to 2\n")
    assert cli("runs", "show", run).code == 0


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(cli: Cli) -> None:
    one_tool(cli, "sleeps", n=1)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup and `&` in scripts do
    try:
        process = cli.start("run", "pipeline.yaml", "Sleep.")
    finally:
        signal.signal(signal.SIGINT, before)
    until((cli.folder / "sleeps").exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "done\n")
