"""Where spans go: the file, several writers at once, the environment, sampling."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry import trace

from tracing.reader import SpanRecord, read_file
from tracing.setup import Tracing, open_tracing
from tracing.spans import Span, TraceContext, new_trace_context

ROOT = Path(__file__).parents[3]


async def opened(*, namespace: str, file: Path | None, capture_content: bool = False) -> Tracing:
    """Open tracing as processes do: off the event loop."""
    return await asyncio.to_thread(
        open_tracing, namespace=namespace, file=file, capture_content=capture_content
    )


def family(place: TraceContext) -> list[Span]:
    """Return an attempt and one call of it, ended."""
    attempt = Span("invoke_agent a", "analyst", place.child("s"), place)
    attempt.set({"cadenza.run": "r1", "n": 3, "share": 0.5, "yes": True, "list": ["x", "y"]})
    attempt.links.append((place, "retry"))
    chat = Span("chat m", "analyst", attempt.context.child(), attempt.context, kind="client")
    chat.fail("model_error", "no\nanswer")
    for span in (attempt, chat):
        span.end()
    return [attempt, chat]


async def written(tracing: Tracing, spans: list[Span], file: Path) -> list[SpanRecord]:
    await tracing.emit(spans)
    await tracing.close()
    return read_file(file, spans[0].context.trace_id)


async def test_what_is_written_to_the_file_reads_back(tmp_path: Path) -> None:
    file = tmp_path / "new" / "traces.jsonl"
    spans = family(new_trace_context())
    attempt, chat = await written(await opened(namespace="stock", file=file), spans, file)
    assert (attempt.name, attempt.service) == ("invoke_agent a", "analyst")
    assert spans[0].parent is not None
    assert attempt.parent_id == attempt.links[0] == spans[0].parent.span_id
    assert attempt.attributes == {
        "cadenza.run": "r1",
        "n": 3,
        "share": 0.5,
        "yes": True,
        "list": ["x", "y"],
    }
    assert chat.parent_id == attempt.span_id
    assert (chat.error, chat.attributes["error.type"]) == ("no\nanswer", "model_error")
    assert abs(attempt.start_ns / 1e9 - spans[0].start_s) < 1e-5


async def test_a_group_is_one_whole_line_whatever_the_services(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    spans = [*family(new_trace_context()), Span("send", "other", new_trace_context(), None)]
    await written(await opened(namespace="stock", file=file), spans, file)
    [line] = file.read_text().splitlines()
    assert len(json.loads(line)["resourceSpans"]) == 2


async def test_spans_that_are_not_sampled_are_not_written(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    spans = family(new_trace_context(sampled=False))
    assert await written(await opened(namespace="stock", file=file), spans, file) == []


async def test_a_root_is_exported_under_the_place_fixed_when_the_run_was_submitted(
    tmp_path: Path,
) -> None:
    file = tmp_path / "traces.jsonl"
    place = new_trace_context()
    root = Span("invoke_workflow stock", "stock", place, None, start_s=1_000.0, end_s=1_002.5)
    [record] = await written(await opened(namespace="stock", file=file), [root], file)
    assert (record.trace_id, record.span_id, record.parent_id) == (
        place.trace_id,
        place.span_id,
        "",
    )
    assert record.end_ns - record.start_ns == 2_500_000_000


async def test_an_end_before_the_start_becomes_the_start(tmp_path: Path) -> None:
    # Another host's clock may be behind; such a trace is whole all the same.
    file = tmp_path / "traces.jsonl"
    late = Span("plan", "a", new_trace_context(), None, start_s=1_000.0, end_s=999.0)
    [record] = await written(await opened(namespace="stock", file=file), [late], file)
    assert record.end_ns == record.start_ns


WRITER = """
import asyncio, sys
from pathlib import Path
from tracing.setup import open_tracing
from tracing.spans import Span, TraceContext

async def main():
    tracing = open_tracing(namespace="stock", file=Path(sys.argv[1]))
    place = TraceContext(sys.argv[2], "00f067aa0ba902b7")
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(150):
        span = Span(f"chat {n}", sys.argv[3], place.child(f"{sys.argv[3]}{n}"), place)
        span.set({"text": "x" * 20_000})
        span.end()
        await tracing.emit([span])
    await tracing.close()

asyncio.run(main())
"""


def test_two_processes_that_append_at_once_write_whole_lines(tmp_path: Path) -> None:
    file, trace_id = tmp_path / "traces.jsonl", new_trace_context().trace_id
    command = [sys.executable, "-c", WRITER, str(file), trace_id]
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen([*command, name], stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
        for name in "ab"
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        assert (writer.communicate(timeout=50), writer.returncode)[1] == 0
    for line in file.read_text().splitlines():
        json.loads(line)
    assert len(read_file(file, trace_id)) == 300


async def test_a_line_torn_by_a_killed_process_costs_that_line_only(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text('{"resourceSpans":[{"scopeSp')
    spans = family(new_trace_context())
    assert len(await written(await opened(namespace="stock", file=file), spans, file)) == 2


async def test_a_file_that_cannot_be_written_is_said_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    tracing = await opened(namespace="stock", file=blocked / "traces.jsonl")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await tracing.emit(family(new_trace_context()))
        await tracing.close()
    assert len([r for r in caplog.records if r.name != "asyncio"]) <= 1


async def test_closing_twice_and_emitting_afterwards_are_harmless(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    tracing = await opened(namespace="stock", file=file)
    await tracing.close()
    await tracing.close()
    assert await written(tracing, family(new_trace_context()), file) == []


async def resource(file: Path) -> dict[str, str]:
    await written(await opened(namespace="stock", file=file), family(new_trace_context()), file)
    text = await asyncio.to_thread(file.read_text)
    pairs = json.loads(text)["resourceSpans"][0]["resource"]["attributes"]
    return {pair["key"]: pair["value"]["stringValue"] for pair in pairs}


async def test_an_agent_is_a_service_in_the_pipelines_namespace(tmp_path: Path) -> None:
    found = await resource(tmp_path / "traces.jsonl")
    assert (found["service.name"], found["service.namespace"]) == ("analyst", "stock")
    assert found["host.name"]


async def test_resource_attributes_of_the_environment_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "host.name=rack7,service.namespace=shop,team=ops"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", said)
    found = await resource(tmp_path / "traces.jsonl")
    assert (found["host.name"], found["service.namespace"], found["team"]) == (
        "rack7",
        "shop",
        "ops",
    )
    assert found["service.name"] == "analyst"


async def test_a_service_name_of_the_environment_names_the_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    found = await resource(tmp_path / "traces.jsonl")
    assert (found["service.name"], found["service.namespace"]) == ("analyst", "shop")


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")]
)
async def test_the_environment_switches_tracing_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    file = tmp_path / "traces.jsonl"
    tracing = await opened(namespace="stock", file=file)
    assert not tracing.on
    await tracing.emit(family(new_trace_context()))
    await tracing.close()
    assert not file.exists()


async def test_the_sampler_of_the_environment_decides_about_new_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sampler, sampled in (("always_off", False), ("always_on", True)):
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
        tracing = await opened(namespace="stock", file=tmp_path / "traces.jsonl")
        assert tracing.new_trace("invoke_workflow stock").sampled is sampled
        await tracing.close()


@pytest.mark.parametrize(
    ("said", "argument", "captures"),
    [
        (None, False, False),
        (None, True, True),
        ("true", False, True),
        ("SPAN_ONLY", False, True),
        ("false", True, False),
        ("no_content", True, False),
    ],
)
async def test_the_environment_decides_about_content(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: str | None,
    argument: bool,
    captures: bool,
) -> None:
    if said is not None:
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", said)
    file = tmp_path / "traces.jsonl"
    tracing = await opened(namespace="stock", file=file, capture_content=argument)
    assert tracing.captures_content is captures
    await tracing.close()


async def test_no_global_provider_is_set(tmp_path: Path) -> None:
    before = trace.get_tracer_provider()
    await (await opened(namespace="stock", file=tmp_path / "traces.jsonl")).close()
    assert trace.get_tracer_provider() is before
