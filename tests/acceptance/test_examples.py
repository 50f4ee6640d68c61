"""The examples: the same in both modes, true to their data, over HTTP, and on a real model."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agents.models.base import Dialect
from agents.models.lock import unlock_models
from agents.models.scripted import ScriptedModel
from examples import demo
from examples.countries.density import Density
from orchestrator.canonical import canonical, canonical_hash
from orchestrator.pipeline import Pipeline
from orchestrator.result import RunResult
from tests.acceptance.played import plays
from tests.gear.fake_openai import FakeOpenAI

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FILES = (
    "countries/pipeline.yaml",
    "incident/pipeline.yaml",
    "classic/pipeline.yaml",
    "classic/pipeline.ja.yaml",
    "watch/pipeline.yaml",
)
MODES = ("orchestration", "choreography")
NOON = datetime(2026, 11, 5, 3, 0, tzinfo=UTC)
SAYS = {
    "countries/pipeline.yaml": "1. Mauritius: 646.0",
    "incident/pipeline.yaml": "8 of 8 errors",
    "classic/pipeline.yaml": "it is 2026-11-05T12:00:00+09:00, a Thursday, and 12 × (3 + 7) = 120",
    "classic/pipeline.ja.yaml": "今 2026-11-05T12:00:00+09:00 です。12 × (3 + 7) は 120 です。",
    "watch/pipeline.yaml": "- high: 24 refused logins from 127.0.0.66 (printer-3)",
}


def replies_of(file: str) -> Path:
    found = re.search(r"scripted/([\w.]+)\}", (EXAMPLES / file).read_text("utf-8"))
    assert found is not None
    return (EXAMPLES / file).with_name(found[1])


async def run(
    file: str, folder: Path, overrides: dict[str, str]
) -> tuple[RunResult, list[dict[str, Any]], str]:
    """Run an example in this process; return result, canonical ledger and its hash."""
    place = {"store.url": str(folder / "runs.db"), **overrides}
    pipeline = await asyncio.to_thread(
        Pipeline.load,
        EXAMPLES / file,
        overrides=place,
        resources={"clock": lambda: lambda: NOON},
    )
    async with pipeline:
        result = await pipeline.run(demo.task_of(EXAMPLES / file))
        ledger = await pipeline.app.store.ledger(result.run)
    return result, canonical(ledger), canonical_hash(ledger)


@pytest.mark.parametrize("file", FILES)
async def test_an_example_gives_the_same_answer_and_ledger_in_both_modes(
    file: str, data_folder: Path
) -> None:
    found = [await run(file, data_folder, {"mode": mode}) for mode in MODES]
    (one, ledger, hashed), (other, other_ledger, other_hashed) = found
    assert one.status == other.status == "completed", (one.message, other.message)
    assert SAYS[file] in one.output
    assert one.output == other.output
    assert ledger == other_ledger
    assert hashed == other_hashed
    assert one.warnings == other.warnings == ()


@pytest.mark.parametrize("stream", ["true", "false"])
@pytest.mark.parametrize("dialect", ["native", "text"])
@pytest.mark.parametrize("file", FILES)
async def test_an_example_answers_through_an_openai_compatible_server(
    file: str, dialect: Dialect, stream: str, data_folder: Path
) -> None:
    model = await asyncio.to_thread(ScriptedModel.load, replies_of(file), dialect=dialect)
    async with FakeOpenAI(plays(model)) as server:
        overrides = {
            "models.main.model": "openai/some-model",
            "models.main.api_base": server.base,
            "models.main.dialect": dialect,
            "models.main.stream": stream,
        }
        result, *_ = await run(file, data_folder, overrides)
    assert result.status == "completed", result.message
    assert SAYS[file] in result.output
    assert {bool(body.get("stream")) for body in server.requests} == {stream == "true"}
    assert any("tools" in body for body in server.requests) == (dialect == "native")


@pytest.mark.heavy
@pytest.mark.timeout(3_600)
async def test_examples_on_a_real_model_and_how_many_are_answered(
    data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = os.environ.get("CADENZA_TEST_MODEL_URL")
    if url is None:
        pytest.skip("CADENZA_TEST_MODEL_URL names no server, for example http://127.0.0.1:8080/v1")
    unlock_models()
    model = os.environ.get("CADENZA_TEST_MODEL", "default")
    told = []
    for file in FILES:
        overrides = {
            "models.main.model": f"openai/{model}",
            "models.main.api_base": url,
            "models.main.timeout_s": "600",
        }
        result, *_ = await run(file, data_folder, overrides)
        told.append((file, result.status, result.message or str(result.output)[:200]))
    good = sum(status == "completed" for _, status, _ in told)
    with capsys.disabled():
        print(f"\n{model}: {good} of {len(told)} examples answered")
        for file, status, text in told:
            print(f"  {file:<26} {status:<10} {' '.join(text.split())}")


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """Copies an example to a folder of the test's own."""

    def copy(name: str) -> Path:
        left_out = shutil.ignore_patterns("__pycache__")
        return Path(shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=left_out))

    return copy


def answer(folder: Path, mode: str) -> str:
    """Run an example through the command line and return its answer."""
    command = [*demo.CADENZA, "run", "pipeline.yaml", "--mode", mode, "--quiet"]
    where = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=where
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


@pytest.mark.parametrize("mode", MODES)
def test_another_table_gives_another_answer(copied: Callable[[str], Path], mode: str) -> None:
    folder = copied("countries")
    table = folder / "data" / "countries.csv"
    edit(table, "Algeria,Algiers,Africa,47735685,2381740", "Algeria,Algiers,Africa,47735685,47735")
    said = answer(folder, mode)
    assert "1. Algeria: 1000.0\n2. Mauritius: 646.0" in said
    assert "Uganda" not in said
    assert "Africa as a whole has 56.5" in said


@pytest.mark.parametrize("mode", MODES)
def test_other_logs_give_another_report(copied: Callable[[str], Path], mode: str) -> None:
    folder = copied("incident")
    edit(folder / "data" / "jobs.log", "job=restock", "job=reindex")
    edit(folder / "data" / "app.log", "database is locked", "disk I/O error")
    said = answer(folder, mode)
    assert 'Orders failed with "OperationalError: disk I/O error"' in said
    assert "The cause is the job reindex" in said
    assert "8 of 8 errors" in said


def test_a_suspicion_that_the_clock_refutes_is_not_reported_as_the_cause(
    copied: Callable[[str], Path],
) -> None:
    folder = copied("incident")
    jobs = folder / "data" / "jobs.log"
    jobs.write_text(re.sub(r"T04:37", "T09:37", jobs.read_text("utf-8")), "utf-8")
    said = answer(folder, "choreography")
    assert "The cause is not known" in said
    assert "0 of 8 errors" in said


@pytest.mark.parametrize("mode", MODES)
def test_other_log_lines_raise_other_alerts(copied: Callable[[str], Path], mode: str) -> None:
    folder = copied("watch")
    log = folder / "data" / "access.log"
    lines = [x for x in log.read_text("utf-8").splitlines(True) if "127.0.0.66" not in x]
    log.write_text("".join(lines), "utf-8")
    edit(folder / "data" / "hosts.csv", "127.0.0.99,scanner-1,security\n", "")
    assert answer(folder, mode) == (
        "- low: 12 missing pages from 127.0.0.99 (unknown). Tell unknown.\n"
    )
    log.write_text("".join(x for x in lines if "127.0.0.99" not in x), "utf-8")
    assert answer(folder, mode) == "Nothing needs attention in 24 lines.\n"


def test_a_density_that_does_not_follow_from_its_figures_is_refused() -> None:
    place = {"name": "A", "population": 100, "land_km2": 10.0, "per_km2": 10.0}
    assert Density.model_validate({"places": [place]}).places[0].per_km2 == 10.0
    with pytest.raises(ValueError, match=r"has 10\.0 people per km2, not 11\.0"):
        Density.model_validate({"places": [{**place, "per_km2": 11.0}]})
    denser = {**place, "population": 200, "per_km2": 20.0}
    with pytest.raises(ValueError, match="not in order"):
        Density.model_validate({"places": [place, denser]})


@pytest.mark.timeout(300)  # it starts some forty processes
def test_the_demo_shows_three_examples_with_equal_ledgers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.demo", "--store", str(tmp_path / "runs.db")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr
    assert re.findall(r"^ledgers +(.+)$", done.stdout, re.MULTILINE) == ["equal"] * 3
    assert "RECORDED" in done.stdout
    assert done.stdout.count("invoke_workflow") >= 6
    assert "3 of 3 examples went well" in done.stdout


@pytest.mark.timeout(300)
def test_the_demo_fails_when_two_ledgers_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stub = tmp_path / "stub.py"
    stub.write_text(
        "import os, sys\n"
        "print('42')\n"
        "for line in ('cost  0', 'run  r1 · x', f'ledger  {os.getpid()}'):\n"
        "    print('   ', line, file=sys.stderr)\n",
        "utf-8",
    )
    monkeypatch.setattr(demo, "CADENZA", (sys.executable, str(stub)))
    assert demo.main([]) == 1
    assert capsys.readouterr().out.count("ledgers        NOT EQUAL\nanswers        equal") == 3


@pytest.mark.parametrize("name", ["countries", "incident", "classic", "watch"])
def test_an_example_says_what_it_is_and_where_its_data_comes_from(name: str) -> None:
    folder = EXAMPLES / name
    assert (folder / "README.md").read_text("utf-8").startswith("# ")
    assert demo.task_of(folder / "pipeline.yaml")
    if (folder / "data").is_dir():
        source = (folder / "data" / "SOURCE.md").read_text("utf-8")
        for file in (folder / "data").iterdir():
            assert file.name == "SOURCE.md" or file.name in source
        assert "Licence" in source
