"""The trace of a run through the command line: whole in both modes, and what it lacks if not."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cause import MAX_NESTED_HOPS
from tests.acceptance.cli_kit import ROOT, Cli, Told, team
from tests.unit.tracing.test_collector import refusing
from tracing.reader import SpanRecord, read_file

MODES = ("orchestration", "choreography")
TEAMS = {
    "countries": {"planner", "analyst", "writer"},
    "incident": {"failures", "jobs", "correlator", "check", "reporter"},
}
FILE = Path(".cadenza/traces.jsonl")


@pytest.fixture
def example(cli: Cli) -> Callable[[str], None]:
    """Brings an example into the folder of the command line."""

    def bring(name: str) -> None:
        left_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "examples" / name, cli.folder, ignore=left_out, dirs_exist_ok=True)

    return bring


def trace_of(told: Told) -> list[SpanRecord]:
    found = re.search(r"^ +trace +(\w{32}) ", told.err, re.MULTILINE)
    assert found is not None, told.err
    return read_file(FILE, found[1])


def above(span: SpanRecord, spans: list[SpanRecord]) -> Iterator[SpanRecord]:
    by_id = {each.span_id: each for each in spans}
    while span.parent_id:
        span = by_id[span.parent_id]
        yield span


def lineage(spans: list[SpanRecord], name: str, service: str) -> list[tuple[str, str, str]]:
    """Return name, service and kind of what is above a span, from itself up."""
    [span] = [each for each in spans if (each.name, each.service) == (name, service)]
    return [(each.name, each.service, each.kind) for each in [span, *above(span, spans)]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TEAMS)
def test_an_example_has_a_whole_trace(
    name: str, mode: str, cli: Cli, example: Callable[[str], None]
) -> None:
    example(name)
    told = cli("run", "pipeline.yaml", "--mode", mode)
    assert told.code == 0
    verified = cli("trace", "verify", told.run)
    assert verified.code == 0, verified.err
    assert verified.err.startswith("    whole  ")
    services = set(verified.err.split("services: ")[1].strip().split(", "))
    own = {name, f"{name}.orchestrator"} if mode == "orchestration" else {name}
    assert services == TEAMS[name] | own
    for span in trace_of(told):
        assert span.attributes["cadenza.mode"] == mode
        assert set(span.attributes) >= {"cadenza.run", "cadenza.mode"}


def test_the_orchestrator_is_the_parent_of_what_its_workers_do(
    cli: Cli, example: Callable[[str], None]
) -> None:
    example("incident")
    spans = trace_of(cli("run", "pipeline.yaml"))
    assert lineage(spans, "execute_tool list_files", "failures") == [
        ("execute_tool list_files", "failures", "internal"),
        ("invoke_agent failures", "failures", "internal"),
        ("process incident.work.failures", "failures", "consumer"),
        ("invoke_agent failures", "incident.orchestrator", "client"),
        ("invoke_workflow incident", "incident", "internal"),
    ]
    assert lineage(spans, "send incident.work.failures", "incident.orchestrator")[1:] == [
        ("invoke_agent failures", "incident.orchestrator", "client"),
        ("invoke_workflow incident", "incident", "internal"),
    ]
    [send] = [span for span in spans if span.name == "send incident.work.failures"]
    [process] = [span for span in spans if span.name == "process incident.work.failures"]
    assert send.links == (send.parent_id,) == (process.parent_id,)
    messaging = {k: v for k, v in process.attributes.items() if k.startswith("messaging.")}
    group = messaging.pop("messaging.consumer.group.name")
    assert group.startswith("incident.failures.orchestration.")
    assert messaging == {
        "messaging.system": "memory",
        "messaging.destination.name": "incident.work.failures",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.message.id": send.attributes["messaging.message.id"],
    }
    assert send.attributes["messaging.operation.type"] == "send"


@pytest.mark.parametrize("parent", ["message", "run"])
def test_a_choreographed_step_hangs_from_its_producer_or_links_to_it(
    parent: str, cli: Cli, example: Callable[[str], None]
) -> None:
    example("incident")
    more = ("--mode", "choreography", "--set", f"tracing.choreography_parent={parent}")
    told = cli("run", "pipeline.yaml", *more)
    assert cli("trace", "verify", told.run).code == 0
    spans = trace_of(told)
    invoked = {s.service: s for s in spans if s.name.startswith("invoke_agent")}
    up = [span.name for span in above(invoked["reporter"], spans)]
    if parent == "run":
        assert up == ["process incident.events", "invoke_workflow incident"]
    else:
        assert up[:3] == [
            "process incident.events",
            "invoke_agent check",
            "process incident.events",
        ]
    wanted = {invoked["correlator"].span_id, invoked["check"].span_id}
    parents = {span.span_id for span in above(invoked["reporter"], spans)}
    assert wanted <= parents | set(invoked["reporter"].links)


def test_reactions_and_the_synthesizer_link_to_what_they_build_on(
    cli: Cli, example: Callable[[str], None]
) -> None:
    example("watch")
    spans = trace_of(cli("run", "pipeline.yaml", "--mode", "orchestration"))
    linked: dict[str, set[str]] = {}
    by_id = {span.span_id: span for span in spans}
    for span in spans:
        if span.kind == "client":
            agent = span.attributes["gen_ai.agent.name"]
            linked.setdefault(agent, set()).update(by_id[link].service for link in span.links)
    assert linked == {
        "scan": set(),
        "triage": {"scan"},
        "enrich": {"triage"},
        "reporter": {"enrich"},
    }


def test_a_long_chain_stops_nesting_and_links_on(cli: Cli) -> None:
    chain = [
        {"id": f"s{n:02}", "agent": "clerk", "after": [f"s{n - 1:02}"] if n else []}
        for n in range(MAX_NESTED_HOPS + 4)
    ]
    cli.write(**team(["Good."], plan=chain, mode="choreography"))
    told = cli("run", "pipeline.yaml", "x")
    assert cli("trace", "verify", told.run).code == 0
    spans = trace_of(told)
    steps = {s.attributes["cadenza.subtask"]: s for s in spans if s.name == "invoke_agent clerk"}
    depths = [sum(1 for _ in above(steps[step["id"]], spans)) for step in chain]
    assert depths == [2 * n for n in range(1, MAX_NESTED_HOPS + 2)] + [2, 2, 2]
    for before, after in zip(chain[-4:], chain[-3:], strict=False):
        assert steps[before["id"]].span_id in steps[after["id"]].links


FLAKY = """
from agents.errors import AgentError
from cadenza import agent

told = []


class Busy(AgentError):
    error_class = "busy"
    retryable = True


@agent
async def work(task: str) -> str:
    told.append(task)
    if len(told) == 1:
        raise Busy("come again")
    return "Good."
"""


def attempts(spans: list[SpanRecord]) -> list[SpanRecord]:
    found = [s for s in spans if (s.name, s.service) == ("invoke_agent clerk", "clerk")]
    return sorted(found, key=lambda span: span.start_ns)


def test_a_retry_links_to_the_attempt_before(cli: Cli) -> None:
    agents = {"clerk": {"use": "flaky:work"}}
    cli.write(**team([], agents=agents, plan=[{"id": "a", "agent": "clerk"}]), flaky__py=FLAKY)
    told = cli("run", "pipeline.yaml", "x")
    assert cli("trace", "verify", told.run).code == 0
    first, second = attempts(trace_of(told))
    assert (first.error, second.error) == ("come again", None)
    assert second.links == (first.span_id,)


def changed(cli: Cli, change: Callable[[dict[str, Any]], bool | None]) -> None:
    """Change each span of the trace file, or drop those for which False is returned."""
    lines = [json.loads(line) for line in FILE.read_text().splitlines()]
    for line in lines:
        for resource in line["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                scope["spans"] = [s for s in scope["spans"] if change(s) is not False]
    (cli.folder / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("lost", "says"),
    [
        ("invoke_workflow", "there are 0 roots: none"),
        ("invoke_agent reporter", "attempt 1 of 'report' has no span"),
        ("invoke_agent reporter", "services without a span: reporter"),
        ("execute_tool grep_files", "'failures' has 1 spans of execute_tool, and 2 in its journal"),
        ("chat", "'cause' has 0 spans of chat, and 1 in its journal"),
        ("invoke_agent failures", "has no parent"),
        ("invoke_agent failures", "which is not there"),
    ],
)
def test_each_lost_span_is_named(
    lost: str, says: str, mode: str, cli: Cli, example: Callable[[str], None]
) -> None:
    example("incident")
    told = cli("run", "pipeline.yaml", "--mode", mode)
    services = "reporter" in says
    changed(
        cli,
        lambda s: not (s["name"].startswith(lost) or (services and "report" in json.dumps(s))),
    )
    verified = cli("trace", "verify", told.run, "--deadline", "0")
    assert verified.code == 1
    assert verified.err.startswith("not whole  ")
    assert says in verified.err


def test_other_faults_are_named(cli: Cli) -> None:
    cli.write(**team(["Good."]))
    told = cli("run", "pipeline.yaml", "x")

    def spoil(span: dict[str, Any]) -> None:
        if span["name"] == "chat replies.yaml":
            span["endTimeUnixNano"] = "0"
            span["attributes"] = [p for p in span["attributes"] if p["key"] != "cadenza.run"]

    changed(cli, spoil)
    verified = cli("trace", "verify", told.run, "--deadline", "0")
    assert verified.code == 1
    assert re.search(r"chat replies.yaml \(\w{16}\) was never ended", verified.err)
    assert re.search(r"chat replies.yaml \(\w{16}\) is of run None", verified.err)


def test_a_run_that_waits_is_not_whole_and_is_not_waited_for(cli: Cli) -> None:
    ask = {"tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}]}
    cli.write(**team([ask, "Good."], '{"ask_human": true}'))
    told = cli("run", "pipeline.yaml", "x")
    assert told.code == 4
    verified = cli("trace", "verify", told.run, "--deadline", "600")
    assert verified.code == 1
    assert "so far; the run has not ended" in verified.err
    assert cli("answer", told.run, told.asked, "The first.").code == 0
    resumed = cli("runs", "resume", told.run)
    assert resumed.code == 0
    verified = cli("trace", "verify", told.run)
    assert verified.code == 0, verified.err
    first, second = attempts(trace_of(resumed))
    assert second.links == (first.span_id,)


def test_where_a_trace_cannot_be_read_says_what_to_do(cli: Cli) -> None:
    cli.write(**team(["Good."]))
    told = cli("run", "pipeline.yaml", "x")
    nobody = refusing()
    both = cli("trace", "verify", told.run, "--file", str(FILE), "--jaeger", nobody)
    assert (both.code, "give one" in both.err) == (2, True)
    missing = cli("trace", "verify", told.run, "--file", "none.jsonl")
    assert (missing.code, "No such file" in missing.err) == (2, True)
    away = cli("trace", "verify", told.run, "--jaeger", nobody)
    assert away.code == 2
    assert "no Jaeger answers" in away.err
    assert "--jaeger or CADENZA_JAEGER_URL" in away.err
    empty = cli.folder / "empty.jsonl"
    empty.touch()
    nothing = cli("trace", "verify", told.run, "--file", "empty.jsonl", "--deadline", "0")
    assert nothing.code == 1
    assert "the trace has no spans" in nothing.err


def test_the_page_in_jaeger_is_printed_where_there_is_one(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.write(**team(["Good."]))
    told = cli("run", "pipeline.yaml", "x")
    trace_id = trace_of(told)[0].trace_id
    assert "/trace/" not in told.err
    opened = cli("trace", "open", told.run)
    assert opened.out == f"http://127.0.0.1:16686/trace/{trace_id}\n"
    there = cli("trace", "open", told.run, "--jaeger", "https://jaeger.example/ui/")
    assert there.out == f"https://jaeger.example/ui/trace/{trace_id}\n"
    monkeypatch.setenv("CADENZA_JAEGER_URL", "https://jaeger.example")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.05")
    again = cli("run", "pipeline.yaml", "x")
    assert again.code == 0
    assert re.search(r"^ +https://jaeger.example/trace/\w{32}$", again.err, re.MULTILINE)
