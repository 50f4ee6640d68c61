"""Pipeline files: what is allowed, what is refused on which line, and what pins a run."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agents.outcome import PlannedSubtask
from agents.usage import Budget
from orchestrator.pipeline_file import load_settings, validate_settings
from orchestrator.pipeline_schema import pipeline_schema
from orchestrator.settings import (
    AgentEntry,
    ModelEntry,
    PipelineSettings,
    from_json,
    pipeline_hash,
    to_json,
)
from orchestrator.settings_errors import Problem, SettingsError, suggest
from orchestrator.yaml_source import YamlSource

WHOLE = """
name: stock
mode: choreography
bus: {kind: memory}
models:
  main:
    {model: "${CADENZA_MODEL}", fallbacks: [ollama/gemma3:4b, big], temperature: 0,
     api_key: "${KEY}"}
  big: {model: openai/x, retries: 0}
agents:
  analyst:
    model: main
    instructions: Answer by SQL.
    tools: [sql, {"shop:stock": {timeout_s: 5}}]
    output: "shop:Finding"
  check: {use: "shop:validate"}
  writer:
    {reacts_to: [shortage, off], can_ask: [analyst], output: {type: object}, budget: {usd: 0.1}}
planner: {model: main, review: true}
synthesizer: writer
output: schemas/report.json
budget: {usd: 0.50, llm_calls: 40, wall_s: 90}
limits: {attempts: 2}
"""
ENV = {"CADENZA_MODEL": "ollama/qwen3", "KEY": "sk-very-secret"}
ONE = "agents: {a: {}}\n"
FAULTS = (Path(__file__).parent / "faults.txt").read_text("utf-8").split("====\n")[1:]


def load(folder: Path, text: str, env: dict[str, str] | None = None) -> PipelineSettings:
    path = folder / "p.yaml"
    path.write_text(text, "utf-8")
    return load_settings(path, env=ENV if env is None else env).settings


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(folder, textwrap.dedent(text))
    return [str(p).replace(f"{folder}/", "") for p in caught.value.problems]


def test_the_whole_example_is_understood(tmp_path: Path) -> None:
    settings = load(tmp_path, WHOLE)
    assert settings.models["main"].model == "ollama/qwen3"
    assert settings.models["main"].api_key == "${KEY}"
    assert settings.agents["writer"].reacts_to == ("shortage", "off")
    assert settings.agents["analyst"].tools == ("sql", {"shop:stock": {"timeout_s": 5}})
    assert [entry.sort for entry in settings.agents.values()] == ["react", "function", "react"]
    assert settings.model_alias(settings.agents["writer"].model) == "main"
    assert settings.budget.budget() == Budget(llm_calls=40, usd=0.5, wall_s=90)
    shape = settings.shape()
    assert shape.agents == {"analyst": (), "check": (), "writer": ("shortage", "off")}
    assert (shape.planner, shape.synthesizer, shape.plan) == ("planner", "writer", ())
    assert (shape.limits.attempts, shape.limits.wall_s) == (2, 90)


def test_the_least_pipeline_is_one_agent_that_reacts_to_the_task(tmp_path: Path) -> None:
    settings = load(tmp_path, ONE)
    assert settings.name == "p"
    assert (settings.mode, settings.bus.kind) == ("orchestration", "memory")
    assert settings.store.url is None
    assert settings.shape().agents == {"a": ("task",)}
    assert settings.model_alias(None) == "main"


def test_the_only_model_is_used_whatever_its_alias(tmp_path: Path) -> None:
    settings = load(tmp_path, "models: {small: {model: a/b}}\nagents: {a: {}}")
    assert settings.model_alias(None) == "small"


def test_a_static_plan_gives_each_step_the_task_of_the_run(tmp_path: Path) -> None:
    text = "agents: {a: {}, b: {}}\nsynthesizer: {instructions: Be brief.}\n"
    text += "plan: [{id: x, agent: a}, {id: y, agent: b, after: [x], join: any}]\n"
    settings = load(tmp_path, text)
    assert settings.shape().plan == (
        PlannedSubtask("x", "a", "{{task}}"),
        PlannedSubtask("y", "b", "{{task}}", ("x",), "any"),
    )
    assert settings.shape().synthesizer == "synthesizer"
    assert settings.shape().agents == {"a": (), "b": ()}


@pytest.mark.parametrize("block", FAULTS)
def test_each_fault_names_its_line(tmp_path: Path, block: str) -> None:
    text, said = block.split("\n-->\n")
    found = problems(tmp_path, text + "\n")
    expected = re.split(r"\n(?! )", said.strip("\n"))
    assert [f[: len(e)] for f, e in zip(found, expected, strict=True)] == expected


def test_a_number_from_a_variable_is_text_where_text_is_expected(tmp_path: Path) -> None:
    text = "models:\n  main:\n    model: ${M}\n    temperature: ${T}\n"
    text += "agents:\n  a:\n    instructions: ${T}\n"
    settings = load(tmp_path, text, {"M": "4711", "T": "1"})
    assert (settings.models["main"].model, settings.models["main"].temperature) == ("4711", 1.0)
    assert settings.agents["a"].instructions == "1"


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"No such file(?s:.*)cadenza new"):
        load_settings(tmp_path / "none.yaml", env={})


def test_the_loaded_pipeline_knows_its_folder_and_its_text(tmp_path: Path) -> None:
    path = tmp_path / "my shop.v2.yaml"
    path.write_text(ONE)
    loaded = load_settings(path, env={})
    assert (loaded.folder, loaded.path, loaded.settings.name) == (tmp_path, path, "my-shop-v2")
    path.write_text(ONE + "# more\n")
    assert load_settings(path, env={}).text_hash != loaded.text_hash


def test_the_plain_json_form_round_trips_without_secrets(tmp_path: Path) -> None:
    settings = load(tmp_path, WHOLE)
    data = json.loads(json.dumps(to_json(settings)))
    assert from_json(data) == settings
    assert pipeline_hash(from_json(data)) == pipeline_hash(settings)
    assert "sk-very-secret" not in json.dumps(data) + repr(settings)


def test_the_hash_ignores_form_place_and_secrets_and_sees_the_rest(tmp_path: Path) -> None:
    base = pipeline_hash(load(tmp_path, WHOLE))
    assert pipeline_hash(load(tmp_path, WHOLE, {**ENV, "KEY": "other"})) == base
    same = WHOLE.replace("name: stock\n", "") + "store: {url: x.db}\nname: 'stock' # same\n"
    assert pipeline_hash(load(tmp_path, same)) == base
    assert (
        pipeline_hash(
            load(tmp_path, WHOLE.replace("choreo", "orche").replace("orchegraphy", "orchestration"))
        )
        == base
    )
    for old, new in [
        ("0.50", "0.51"),
        ("shortage", "surplus"),
        ("Answer by SQL", "Answer"),
        ("attempts: 2", "attempts: 3"),
    ]:
        assert pipeline_hash(load(tmp_path, WHOLE.replace(old, new))) != base


def test_the_hash_of_a_pipeline_never_changes_by_itself() -> None:
    # Runs in flight are pinned to it: a change here leaves them without workers.
    settings = PipelineSettings(
        name="x",
        agents={"a": AgentEntry(reacts_to=("task",))},
        models={"m": ModelEntry(model="a/b")},
    )
    assert pipeline_hash(settings) == HASH


HASH = "991201fcb3d647290f143780d880b7f9ba38c2b1c7cfa0906bde3edfa73d3608"


def test_settings_can_be_made_in_code_from_lists_and_are_frozen() -> None:
    settings = PipelineSettings.model_validate({"agents": {"a": {"reacts_to": ["x"]}}})
    assert settings.agents["a"].reacts_to == ("x",)
    with pytest.raises(ValueError, match="frozen"):
        settings.name = "y"  # type: ignore[misc]  # that is the point


def test_a_tree_made_in_code_is_checked_like_a_file() -> None:
    tree = {"agents": {"a": {"stops": ("m:S",)}}, "models": {"m": {"use": "my:model"}}}
    settings = validate_settings(YamlSource.of_python(tree))
    assert (settings.agents["a"].stops, settings.models["m"].use) == (("m:S",), "my:model")
    with pytest.raises(SettingsError, match=r"^unknown key 'agent'\n  did you mean 'agents'\?$"):
        validate_settings(YamlSource.of_python({**tree, "agent": {}}))


def test_the_json_schema_accepts_what_loads_and_describes_every_key() -> None:
    schema = pipeline_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    yaml_tree: dict[str, Any] = {
        "agents": {"a": {"tools": ["x"], "max_iterations": "${N}"}},
        "planner": {"review": True},
    }
    jsonschema.validate(yaml_tree, schema)
    with pytest.raises(jsonschema.ValidationError, match="nonsense"):
        jsonschema.validate({**yaml_tree, "nonsense": 1}, schema)
    sections = [schema, *schema["$defs"].values()]
    bare = [n for s in sections for n, f in s["properties"].items() if not f.get("description")]
    assert bare == []


def test_problems_print_place_message_and_hint() -> None:
    assert str(Problem("bad", "p.yaml", 3, 7, "fix it")) == "p.yaml:3:7: bad\n  fix it"
    assert str(SettingsError("bad", hint="fix it")) == "bad\n  fix it"
    assert suggest("Writr", ["reader", "Writer"]) == "did you mean 'Writer'?"
    assert suggest("q", []) == ""


def test_settings_import_without_heavy_libraries() -> None:
    code = (
        "import orchestrator.pipeline_file, orchestrator.discovery, orchestrator.references, sys;"
    )
    code += "print({'litellm', 'aiohttp', 'opentelemetry'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
