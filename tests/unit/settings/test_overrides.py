"""Overrides: flags beat the environment, the environment beats the file."""

from pathlib import Path

import pytest

from orchestrator.pipeline_file import load_settings
from orchestrator.settings import PipelineSettings
from orchestrator.settings_errors import SettingsError

FILE = """name: shop
budget: {usd: 1}
models: {main: &m {model: a/b}, other: *m}
agents:
  Price-check: {model: main}
  writer: {model: main, reacts_to: [task]}
plan: [{id: a, agent: writer}]
"""


def load(
    folder: Path, env: dict[str, str] | None = None, flags: dict[str, str] | None = None
) -> PipelineSettings:
    path = folder / "p.yaml"
    path.write_text(FILE)
    return load_settings(path, env=env or {}, overrides=flags or {}).settings


def test_flags_beat_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    env = {"CADENZA_MODE": "choreography", "CADENZA_BUDGET__USD": "2", "CADENZA_BUS__KIND": "mqtt"}
    settings = load(tmp_path, env, {"bus.kind": "kafka"})
    assert settings.mode == "choreography"
    assert settings.budget.usd == 2
    assert settings.bus.kind == "kafka"


def test_names_in_the_environment_ignore_case_and_dashes(tmp_path: Path) -> None:
    settings = load(tmp_path, {"CADENZA_AGENTS__PRICE_CHECK__DEPTH": "deep"})
    assert settings.agents["Price-check"].depth == "deep"


def test_lists_and_mappings_are_written_in_flow_style(tmp_path: Path) -> None:
    flags = {
        "agents.writer.reacts_to": "[task, no]",
        "limits": "{attempts: 5}",
        "plan.0.task": "Do {it}",
    }
    settings = load(tmp_path, flags=flags)
    assert settings.agents["writer"].reacts_to == ("task", "no")
    assert settings.limits.attempts == 5
    assert settings.plan[0].task == "Do {it}"


def test_a_number_stays_text_where_text_is_expected(tmp_path: Path) -> None:
    assert load(tmp_path, {"CADENZA_PLANNER": ""}).planner is None
    assert (
        load(tmp_path, flags={"agents.writer.instructions": "12"}).agents["writer"].instructions
        == "12"
    )


def test_an_override_of_an_alias_changes_one_place_only(tmp_path: Path) -> None:
    settings = load(tmp_path, flags={"models.main.model": "c/d"})
    assert settings.models["main"].model == "c/d"
    assert settings.models["other"].model == "a/b"


def test_other_variables_are_left_alone(tmp_path: Path) -> None:
    env = {"CADENZA_MODEL": "x", "CADENZA_SERVICE_HOST": "10.0.0.1", "CADENZA_PORT": "80"}
    assert load(tmp_path, env) == load(tmp_path)


@pytest.mark.parametrize(
    ("env", "flags", "said"),
    [
        (
            {"CADENZA_MODDE": "x"},
            {},
            "CADENZA_MODDE: no setting is named 'modde'\n  did you mean 'mode'",
        ),
        ({"CADENZA_FOO__BAR": "x"}, {}, "CADENZA_FOO__BAR: no setting is named 'foo'"),
        (
            {"CADENZA_BUS__KIN": "x"},
            {},
            "CADENZA_BUS__KIN: unknown key 'kin' in bus\n  did you mean 'kind'",
        ),
        (
            {"CADENZA_BUS__KIND": "nats"},
            {},
            "CADENZA_BUS__KIND: bus.kind: should be 'memory', 'kafka'",
        ),
        (
            {"CADENZA_BUDGET__USD": "much"},
            {},
            "CADENZA_BUDGET__USD: budget.usd: should be a valid number",
        ),
        (
            {"CADENZA_MODELS__NEW__TIMEOUT_S": "3"},
            {},
            "CADENZA_MODELS__NEW__TIMEOUT_S: the key 'model' is missing",
        ),
        (
            {},
            {"buss.kind": "x"},
            "--set buss.kind: no setting is named 'buss'\n  did you mean 'bus'",
        ),
        ({}, {"bus..kind": "x"}, "--set bus..kind: bus holds nothing named ''"),
        ({}, {"name.x": "x"}, "--set name.x: name holds nothing named 'x'"),
        ({}, {"plan.7.id": "x"}, "--set plan.7.id: plan holds nothing named '7'"),
        (
            {},
            {"plan.0.agent": "riter"},
            "--set plan.0.agent: subtask 'a': no agent is named 'riter'",
        ),
        ({}, {"limits": "[a"}, "--set limits: while parsing a flow sequence"),
        ({}, {"models.main.api_key": "sk-123"}, "--set models.main.api_key: a key does not belong"),
    ],
)
def test_unknown_ones_are_errors_that_name_their_source(
    tmp_path: Path, env: dict[str, str], flags: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, env, flags)
    assert said in str(caught.value)
    assert "sk-123" not in str(caught.value).replace("--set models.main.api_key", "")
