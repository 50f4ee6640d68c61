"""What people do wrong on the command line: a clear line, the right exit code, no traceback."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.cli_kit import COMMAND, Cli, environment, team

GOOD = "models: {main: {model: scripted/x}}\nagents: {clerk: {model: main}}\n"


def with_clerk(entry: str) -> str:
    return GOOD.replace("{model: main}", "{" + entry + "}")


NO_MODEL = "agents: {clerk: {model: mian}}\nmodels: {main: {model: a/b}}\n"
BROKEN = {
    "a tab": ("agents:\n\tclerk: {}\n", "pipeline.yaml:2:1: ", "tab"),
    "no mapping": ("- a\n- b\n", "pipeline.yaml:1", "mapping"),
    "nothing": ("", "pipeline.yaml", "agents"),
    "a key twice": (GOOD + "agents: {x: {}}\n", "pipeline.yaml:3:1", "'agents'"),
    "a bracket left open": ("agents: {clerk: {\n", "pipeline.yaml:", "expected"),
    "not text": ("agents: \x00\n", "pipeline.yaml", "character"),
    "an unknown key": (GOOD + "agnets: {}\n", "pipeline.yaml:3:1", "did you mean 'agents'?"),
    "a wrong type": (GOOD + "budget: {usd: much}\n", "pipeline.yaml:3:", "number"),
    "an unknown model": (NO_MODEL, ":1:", "'main'"),
    "an unknown tool": (with_clerk("model: main, tools: [sqll]"), "did you mean 'sql'?"),
    "a missing module": (with_clerk("use: 'no:one'"), "no module 'no'", "beside the pipeline"),
    "an unset variable": (GOOD.replace("scripted/x", '"${MY_MODEL}"'), "MY_MODEL", "not set"),
    "an unset secret": (GOOD.replace("x}", "x, api_key: '${MY_KEY}'}"), "export MY_KEY"),
    "another store": (GOOD + "store: {url: 'postgres://x'}\n", "postgres://x", "SQLite"),
    "another bus": (GOOD + "bus: {kind: mqtt}\n", "mqtt", "memory"),
    "a script that is not there": (GOOD, "/x'", "No such file"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_pipeline_file_is_told_with_its_place(cli: Cli, kind: str) -> None:
    text, *words = BROKEN[kind]
    cli.write(pipeline__yaml=text, **({} if "not there" in kind else {"x": "[]"}))
    told = cli("run", "pipeline.yaml", "Do it.")
    assert told.code == 2
    assert told.out == ""
    assert told.err.startswith("cadenza: ")
    assert [word for word in words if word not in told.err] == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "none.yaml", "x"], "none.yaml: cannot be read: No such file"),
        (["run", ".", "x"], "cannot be read: Is a directory"),
        (["run", "pipeline.yaml"], 'a line "# task: …"'),
        (["run", "pipeline.yaml", "x", "--detach"], "--bus kafka"),
        (["worker", "pipeline.yaml"], "reaches no other process"),
        (["up", "pipeline.yaml"], "reaches no other process"),
        (["orchestrator", "pipeline.yaml"], "reaches no other process"),
        (["worker", "pipeline.yaml", "-a", "clrk", "--bus", "kafka"], "did you mean 'clerk'?"),
        (
            ["orchestrator", "pipeline.yaml", "--bus", "kafka", "--mode", "choreography"],
            "nobody conducts",
        ),
        (["run", "pipeline.yaml", ""], "the task is empty"),
        (["run", "pipeline.yaml", " \n "], "the task is empty"),
        (["run", "pipeline.yaml", "x", "-f", "none.txt"], "'none.txt' cannot be read"),
        (["run", "pipeline.yaml", "x", "-f", "."], "'.' cannot be read: Is a directory"),
        (["run", "pipeline.yaml", "x", "-i", "novalue"], "--input 'novalue' needs the form"),
        (["run", "pipeline.yaml", "x", "--set", "novalue"], "--set 'novalue' needs the form"),
        (["run", "pipeline.yaml", "x", "--set", "limits.lase_s=1"], "did you mean 'lease_s'"),
        (["run", "pipeline.yaml", "x", "--set", "limits.lease_s=soon"], "number"),
        (["prompts", "show", "pipeline.yaml", "clrek"], "did you mean 'clerk'?"),
        (["runs", "list"], "there is no run store at"),
        (["runs", "show", "x"], "there is no run store at"),
        (["runs", "resume", "x"], "give --store PATH"),
        (["approve", "x"], "there is no run store at"),
        (["trace", "show", "x"], "there is no run store at"),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(cli: Cli, words: list[str], hint: str) -> None:
    cli.write(**team(["Good."]))
    told = cli(*words)
    assert told.code == 2
    assert hint in told.err
    assert told.out == ""


def test_a_run_that_is_not_there_is_told_with_near_ones(cli: Cli) -> None:
    cli.write(**team(["Good."]))
    run = cli("run", "pipeline.yaml", "x").run
    assert f"did you mean {run}?" in cli("runs", "show", run[:-2] + "zz").err
    assert f"the latest: {run}" in cli("runs", "resume", "nothing").err
    other = cli("run", "pipeline.yaml", "y").run
    both = run[: next(n for n in range(16) if run[n] != other[n])]
    told = cli("runs", "show", both)
    assert told.code == 2
    assert run in told.err
    assert other in told.err
    told = cli("runs", "show", run, "--messages", "clrek.0")
    assert told.code == 2
    assert "did you mean 'task/clerk.0'?" in told.err


def test_a_picture_for_a_model_that_takes_none_costs_nothing(cli: Cli) -> None:
    model = {"model": "openai/small", "api_base": "http://127.0.0.1:9/v1"}
    cli.write(**team([], models={"main": model}))
    (cli.folder / "photo.png").write_bytes(b"\x89PNG")
    told = cli("run", "pipeline.yaml", "What is on it?", "-f", "photo.png", "--json")
    assert told.code == 1
    result = told.lines[-1]
    assert result["stop_reason"] == "unsupported_media"
    assert (result["usage"]["llm_calls"], result["usage"]["cost_usd"]) == (0, 0.0)
    told = cli("run", "pipeline.yaml", "What is on it?", "-f", "photo.png")
    assert "does not take image/png ('photo.png')" in told.err


@pytest.mark.parametrize("command", [["runs", "list"], ["run", "pipeline.yaml", "x"]])
def test_a_file_that_is_no_run_store_is_left_alone(cli: Cli, command: list[str]) -> None:
    cli.write(**team(["Good."]), text__db="no database at all, but long enough to be looked at")
    told = cli(*command, "--store", "text.db")
    assert told.code == 2
    assert "text.db" in told.err
    assert (cli.folder / "text.db").read_text().startswith("no database")
    with closing(sqlite3.connect("theirs.db")) as db:
        db.execute("CREATE TABLE songs (name)")
    told = cli(*command, "--store", "theirs.db")
    assert told.code == 2
    assert "not a run store of Cadenza" in told.err
    told = cli(*command, "--store", ".")
    assert told.code == 2
    assert "is a folder" in told.err


def test_a_run_store_of_a_newer_version_is_left_alone(cli: Cli) -> None:
    cli.write(**team(["Good."]))
    cli("run", "pipeline.yaml", "x")
    with closing(sqlite3.connect(".cadenza/runs.db")) as db, db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    for command in (["runs", "list"], ["run", "pipeline.yaml", "x"]):
        told = cli(*command)
        assert told.code == 2
        assert "has version 99" in told.err
        assert "upgrade Cadenza" in told.err


def test_a_folder_without_permission_is_told(cli: Cli) -> None:
    cli.write(**team(["Good."]))
    closed = cli.folder / "closed"
    closed.mkdir(mode=0o500)
    if os.geteuid() == 0:  # root may write anywhere but where the kernel itself says no
        closed = Path("/proc/self")
    told = cli("run", "pipeline.yaml", "x", "--store", str(closed / "runs.db"))
    assert told.code == 2
    assert f"cannot open the run store '{closed}/runs.db'" in told.err
    assert "rights" in told.err


def test_whoever_reads_the_answer_may_leave(cli: Cli) -> None:
    cli.write(**team(["Good."]))
    piped = subprocess.run(
        ["bash", "-c", f"{' '.join(COMMAND)} run pipeline.yaml x --json | true"],
        cwd=cli.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in piped.stderr
    assert "Exception" not in piped.stderr
    assert "completed" in cli("runs", "list").out


def test_bytes_that_are_no_text_and_terminals_that_cannot_show_it_are_no_error(cli: Cli) -> None:
    cli.write(**team(["Über 日本"]))
    done = subprocess.run(
        [*COMMAND, "run", "pipeline.yaml", b"caf\xe9"],
        cwd=cli.folder,
        env=environment({"PYTHONIOENCODING": "latin-1"}),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"\xdcber \\u65e5\\u672c\n"
