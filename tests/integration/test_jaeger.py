"""Traces in a real Jaeger: whole in both modes, and after processes are killed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from examples import demo
from tests.acceptance.cli_kit import Cli, Told, team, until
from tests.gear.programs import JaegerAt
from tests.house.source import ROOT
from tracing.jaeger import read_jaeger
from tracing.reader import SpanRecord

MODES = ("orchestration", "choreography")
TEAMS = {
    "countries": {"planner", "analyst", "writer"},
    "incident": {"failures", "jobs", "correlator", "check", "reporter"},
}
SLOW = """
import pathlib, time

from cadenza import agent


@agent
async def first(task: str) -> str:
    return "Counted."


@agent
def second(task: str) -> str:
    begun = pathlib.Path("begun")
    if not begun.exists():
        begun.touch()
        time.sleep(600)
    return "Done."
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture
def env(jaeger: JaegerAt) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": jaeger.otlp, "CADENZA_JAEGER_URL": jaeger.query}


def verified(cli: Cli, run: str, jaeger: JaegerAt) -> set[str]:
    """Verify a trace in Jaeger and return its services."""
    told = cli.process("trace", "verify", run, "--jaeger", jaeger.query)
    assert told.code == 0, told.err
    return set(told.err.split("services: ")[1].strip().split(", "))


def trace_id(told: Told) -> str:
    [address] = [line.split()[-1] for line in told.err.splitlines() if "/trace/" in line]
    return address.rpartition("/")[2]


def attempts(told: Told, jaeger: JaegerAt, service: str) -> list[SpanRecord]:
    """Return the attempts of an agent in the order they began."""
    spans = read_jaeger(jaeger.query, trace_id(told))
    found = [s for s in spans if (s.name, s.service) == (f"invoke_agent {service}", service)]
    return sorted(found, key=lambda span: span.start_ns)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TEAMS)
def test_an_example_has_a_whole_trace_with_a_service_for_each_agent(
    name: str, mode: str, cli: Cli, env: dict[str, str], jaeger: JaegerAt
) -> None:
    file = ROOT / "examples" / name / "pipeline.yaml"
    task = demo.task_of(file)
    told = cli.process("run", str(file), task, "--mode", mode, env=env)
    assert told.code == 0, told.err
    own = {name, f"{name}.orchestrator"} if mode == "orchestration" else {name}
    assert verified(cli, told.run, jaeger) == TEAMS[name] | own
    # The environment alone says where to look, and that there is no file.
    assert cli.process("trace", "verify", told.run, env=env).code == 0
    shown = cli.process("trace", "show", told.run, env=env)
    assert shown.out.startswith(f"invoke_workflow {name}  [{name}]")
    opened = cli.process("trace", "open", told.run, env=env)
    assert opened.out == f"{jaeger.query}/trace/{trace_id(told)}\n"
    assert not (cli.folder / ".cadenza/traces.jsonl").exists()


@pytest.mark.parametrize("mode", MODES)
def test_a_trace_is_whole_after_its_process_was_killed(
    mode: str, cli: Cli, env: dict[str, str], jaeger: JaegerAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the first step sent must be there: in choreography the second hangs from it, and the
    # process is killed long before the next batch is due.
    agents = {name: {"use": f"slow:{name}"} for name in ("first", "second")}
    plan = [{"id": "a", "agent": "first"}, {"id": "b", "agent": "second", "after": ["a"]}]
    files = team([], agents=agents, mode=mode, plan=plan, limits={"lease_s": 1})
    cli.write(**files, slow__py=SLOW)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    running = cli.start("run", "pipeline.yaml", "x")
    until((cli.folder / "begun").exists)
    running.send_signal(signal.SIGKILL)
    running.wait()
    if running.stdout is not None:
        running.stdout.close()
    run = Told(0, "", cli.err()).run
    assert cli.process("trace", "verify", run, "--deadline", "0").code == 1
    told = cli.process("runs", "resume", run)
    assert told.code == 0, told.err
    assert verified(cli, run, jaeger) >= {"first", "second"}
    lost, again = attempts(told, jaeger, "second")
    assert lost.attributes["cadenza.status"] == "lost"
    assert lost.span_id in again.links


def test_an_approval_and_a_retry_leave_a_whole_trace(
    cli: Cli, env: dict[str, str], jaeger: JaegerAt
) -> None:
    ask = {"tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}]}
    cli.write(**team([ask, "Good."], '{"ask_human": true}'))
    told = cli.process("run", "pipeline.yaml", "x", env=env)
    assert told.code == 4, told.err
    assert cli.process("answer", told.run, told.asked, "The first.").code == 0
    told = cli.process("runs", "resume", told.run, env=env)
    assert told.code == 0, told.err
    verified(cli, told.run, jaeger)
    parked, again = attempts(told, jaeger, "clerk")
    assert parked.attributes["cadenza.status"] == "parked"
    assert again.links == (parked.span_id,)


def test_verify_waits_for_spans_that_come_late(cli: Cli, jaeger: JaegerAt) -> None:
    cli.write(**team(["Good."]))
    told = cli.process("run", "pipeline.yaml", "x")
    where = ("trace", "verify", told.run, "--jaeger", jaeger.query, "--deadline")
    early = cli.process(*where, "0")
    assert early.code == 1
    assert "the trace has no spans" in early.err
    waiting = cli.start(*where, "40")
    until(lambda: cli.err() == "ready\n")
    send_file(cli.folder / ".cadenza/traces.jsonl", jaeger)
    out, _ = waiting.communicate(timeout=50)
    assert (waiting.returncode, out) == (0, ""), cli.err()


def send_file(file: Path, jaeger: JaegerAt) -> None:
    """Send a trace file, whose lines are requests of OTLP in JSON."""
    for line in file.read_bytes().splitlines():
        headers: dict[str, Any] = {"Content-Type": "application/json"}
        with urlopen(Request(f"{jaeger.otlp}/v1/traces", line, headers)) as answer:
            assert answer.status == 200
