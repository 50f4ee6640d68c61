"""The words of the command line: help, near misses, completion; nothing slow is imported."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from orchestrator.bus_settings import BusEntry
from orchestrator.cli.commands import Action
from orchestrator.cli.commands import cli as root
from orchestrator.settings import PipelineSettings
from tests.acceptance.cli_kit import Cli, environment, team

SLOW = ("pydantic", "aiohttp", "litellm", "opentelemetry", "yaml", "orchestrator.app")


def actions(group: click.Group, *before: str) -> Iterator[tuple[str, Action]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from actions(command, *before, name)
        else:
            assert isinstance(command, Action)
            yield " ".join((*before, name)), command


ACTIONS = dict(actions(root))


@pytest.mark.parametrize("name", ACTIONS)
def test_what_a_command_does_takes_what_the_command_is_given(name: str) -> None:
    command = ACTIONS[name]
    taken = inspect.signature(command.action()).parameters
    assert set(taken) == {str(parameter.name) for parameter in command.params}


@pytest.mark.parametrize("name", ["", *ACTIONS, "runs", "trace"])
def test_every_command_has_help_with_a_short_first_sentence(cli: Cli, name: str) -> None:
    told = cli(*name.split(), "--help")
    assert told.code == 0
    assert told.out.startswith(f"Usage: cadenza {name}".rstrip())
    assert "..." not in told.out.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["run", "--help"], 0),
        (["runs", "show", "--help"], 0),
        (["completion", "zsh"], 0),
        (["--version"], 0),
        ([], 2),
        (["run"], 2),
        (["rnus", "list"], 2),
        (["run", "x.yaml", "--no-such-option"], 2),
    ],
)
def test_help_and_usage_errors_import_nothing_that_is_slow(words: list[str], code: int) -> None:
    look = f"""
import sys
from orchestrator.cli.main import main
try:
    main({words!r})
except SystemExit as exc:
    print([name for name in {SLOW!r} if name in sys.modules], exc.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", look], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == f"[] {code}"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rnu"], "Did you mean 'run'?"),
        (["runs", "shwo"], "Did you mean 'show'?"),
        (["run", "x.yaml", "--jso"], "Did you mean one of: '--json'"),
        (["run", "x.yaml", "--mode", "orchestrate"], "'orchestration', 'choreography'"),
        (["runs", "list", "--limit", "0"], "0 is not in the range"),
        (["run"], "Missing argument 'PIPELINE'"),
        (["answer", "a", "b"], "Missing argument 'TEXT'"),
    ],
)
def test_a_near_miss_is_told_what_was_meant(cli: Cli, words: list[str], hint: str) -> None:
    told = cli(*words)
    assert told.code == 2
    assert hint in told.err
    assert told.out == ""


def test_the_choices_are_those_of_the_settings() -> None:
    options = {p.name: p.type for p in ACTIONS["run"].params}
    for name, model, key in (("mode", PipelineSettings, "mode"), ("bus", BusEntry, "kind")):
        choice = options[name]
        assert isinstance(choice, click.Choice)
        literal = model.model_fields[key].annotation
        assert list(choice.choices) == list(getattr(literal, "__args__", ()))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_each_shell_is_printed(cli: Cli, shell: str) -> None:
    told = cli("completion", shell)
    assert told.code == 0
    assert f"_CADENZA_COMPLETE={shell}_complete" in told.out


def complete(cli: Cli, shell: str, *words: str) -> str:
    line = " ".join(["cadenza", *words])
    env = {
        "_CADENZA_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": line if shell != "fish" else "cadenza " + " ".join(words[:-1]),
        "COMP_CWORD": str(len(words)) if shell != "fish" else words[-1],
    }
    return cli.process(env=env).out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_and_their_options_are_completed(cli: Cli, shell: str) -> None:
    assert "runs" in complete(cli, shell, "ru")
    assert "resume" in complete(cli, shell, "runs", "res")
    assert "--messages" in complete(cli, shell, "runs", "show", "--m")
    assert "choreography" in complete(cli, shell, "run", "--mode", "cho")


def test_run_ids_are_completed_from_the_store_that_is_meant(cli: Cli) -> None:
    cli.write(**team(["Good."]))
    here = cli("run", "pipeline.yaml", "first").run
    there = cli("run", "pipeline.yaml", "second", "--store", "other.db").run
    assert complete(cli, "bash", "runs", "show", here[:4]).split() == [f"plain,{here}"]
    assert f"plain,{here}" in complete(cli, "bash", "approve", "")
    found = complete(cli, "bash", "runs", "show", "--store", "other.db", there[:4])
    assert found.split() == [f"plain,{there}"]
    assert "completed: second" in complete(
        cli, "zsh", "trace", "show", "--store", "other.db", there[:4]
    )
    cli.write(broken__db="no database")
    assert complete(cli, "bash", "runs", "show", "--store", "broken.db", "").strip() == ""


def test_the_schema_is_that_of_pipeline_files(cli: Cli) -> None:
    schema = json.loads(cli("schema").out)
    assert set(schema["properties"]) == set(PipelineSettings.model_fields)


def test_no_color_is_written_where_none_is_wanted(cli: Cli) -> None:
    cli.write(**team(["Good."]))
    plain = cli.process("run", "pipeline.yaml", "x", env={"NO_COLOR": "1"})
    assert "\x1b" not in plain.err + plain.out
    assert "\x1b" not in cli.process("run", "pipeline.yaml", "x").err
