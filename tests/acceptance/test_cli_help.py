"""``cadenza new``, ``doctor`` and ``trace``: what helps to begin, and to see what happened."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from orchestrator.discovery import discover_model
from tests.acceptance.cli_kit import Cli, environment, team

MODES = ("orchestration", "choreography")


@pytest.fixture
def starter(cli: Cli) -> Cli:
    told = cli("new", "shop/first")
    assert told.code == 0
    assert "cadenza run shop/first/pipeline.yaml" in told.err
    return cli


@pytest.mark.parametrize("mode", MODES)
def test_the_starter_runs_at_once_and_says_how_to_ask_a_real_model(starter: Cli, mode: str) -> None:
    told = starter("run", "shop/first/pipeline.yaml", "--mode", mode)
    assert (told.code, told.out) == (0, "130 items need 11 boxes of 12.\n")
    assert "RECORDED replies" in told.err
    assert "--set models.main.model=" in told.err
    assert starter("runs", "show", told.run, "--messages", "pack").code == 0


def test_the_starters_own_tests_pass_and_it_is_well_kept(starter: Cli) -> None:
    folder = starter.folder / "shop/first"
    for words in (
        ["-m", "pytest", "-q", "-p", "no:cacheprovider"],
        ["-m", "ruff", "check", "--isolated", "."],
        ["-m", "ruff", "format", "--isolated", "--line-length", "100", "--check", "."],
    ):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_starter_is_not_put_over_what_is_there(starter: Cli) -> None:
    told = starter("new", "shop/first")
    assert told.code == 2
    assert "is not empty" in told.err
    told = starter("new", "shop/first/pipeline.yaml")
    assert told.code == 2
    assert "cannot be made" in told.err


def test_the_starters_files_belong_to_the_package(starter: Cli) -> None:
    told = starter("doctor", "shop/first/pipeline.yaml")
    assert told.code == 0
    assert "ok  agent       packer: tools boxes" in told.out
    assert "ok  agent       check: a function" in told.out
    assert "ok  model       main: scripted/replies.yaml" in told.out


def test_doctor_says_what_is_there_and_what_to_do_about_the_rest(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover_model, "__kwdefaults__", {"servers": ()})
    told = cli("doctor")
    assert told.code == 0
    assert "--  models      no model: " in told.out
    assert "export OPENAI_API_KEY=" in told.out
    assert "will be made" in told.out
    assert "ok  time zones" in told.out
    assert not (cli.folder / ".cadenza").exists()
    monkeypatch.setenv("MISTRAL_API_KEY", "secret-words")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    told = cli("doctor")
    assert "ok  models      mistral/" in told.out
    assert "MISTRAL_API_KEY is set" in told.out
    assert "go to http://127.0.0.1:4318" in told.out
    assert "secret-words" not in told.out


def test_doctor_imports_no_provider_library(cli: Cli) -> None:
    look = (
        "import sys\nfrom orchestrator.cli.main import main\n"
        "try:\n    main(['doctor'])\nexcept SystemExit:\n    print('litellm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", look],
        cwd=cli.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ({"model": "mian"}, "no model has the alias 'mian'"),
        ({"tools": ["sqll"]}, "did you mean 'sql'?"),
        ({"tools": ["nowhere:tool"]}, "no module 'nowhere'"),
        ({"output": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_doctor_ends_in_2_for_a_pipeline_that_cannot_run(
    cli: Cli, entry: dict[str, object], hint: str
) -> None:
    cli.write(**team([], json.dumps(entry)))
    told = cli("doctor", "pipeline.yaml")
    assert told.code == 2
    assert hint in told.out


def test_doctor_looks_into_the_run_store(cli: Cli) -> None:
    cli.write(**team(["Good."]), other__db="no database, but long enough to be looked at closely")
    cli("run", "pipeline.yaml", "x")
    assert "runs.db, 1 run" in cli("doctor", "pipeline.yaml").out
    told = cli("doctor", "pipeline.yaml", "--store", "other.db")
    assert told.code == 2
    assert "--  run store" in told.out


@pytest.mark.parametrize("mode", MODES)
def test_the_trace_of_a_run_is_drawn_and_whole(cli: Cli, mode: str) -> None:
    steps = [{"id": "a", "agent": "clerk"}, {"id": "b", "agent": "clerk", "after": ["a"]}]
    cli.write(**team(["Good."], plan=steps))
    told = cli("run", "pipeline.yaml", "x", "--mode", mode)
    shown = cli("trace", "show", told.run)
    assert shown.code == 0
    assert shown.out.startswith("invoke_workflow pipeline  [pipeline]")
    delegated = 2 if mode == "orchestration" else 0
    assert shown.out.count("─ invoke_agent clerk  [pipeline.orchestrator]") == delegated
    assert shown.out.count("─ invoke_agent clerk  [clerk]") == 2
    assert shown.out.count("─ chat replies.yaml  [clerk]") == 2
    assert f"whole  {len(shown.out.splitlines())} spans of trace" in shown.err
    assert cli("trace", "show", told.run, "--file", ".cadenza/traces.jsonl").out == shown.out


def test_a_trace_that_is_not_whole_is_shown_with_what_is_missing(cli: Cli) -> None:
    cli.write(**team(["Good."], tracing={"file": "here.jsonl"}))
    told = cli("run", "pipeline.yaml", "x")
    lines = (cli.folder / "here.jsonl").read_text().splitlines()
    assert "invoke_workflow" in lines[-1]
    cli.write(here__jsonl="\n".join(lines[:-1]))
    shown = cli("trace", "show", told.run)
    assert shown.code == 0
    assert "not whole" in shown.err
    assert "there are 0 roots" in shown.err
    cli.write(here__jsonl="")
    shown = cli("trace", "show", told.run)
    assert shown.code == 2
    assert "has no span of trace" in shown.err
    (cli.folder / "here.jsonl").unlink()
    shown = cli("trace", "show", told.run)
    assert shown.code == 2
    assert "No such file" in shown.err
    assert "no Jaeger answers" in shown.err


def test_the_trace_of_a_run_that_waits_is_shown_so_far(cli: Cli) -> None:
    ask = {"tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}]}
    cli.write(**team([ask], '{"ask_human": true}'))
    told = cli("run", "pipeline.yaml", "x")
    shown = cli("trace", "show", told.run)
    assert shown.code == 0
    assert "so far; the run has not ended" in shown.err
