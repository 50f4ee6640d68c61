"""How runs wait for people and how they end, in both modes."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

from agents.assignment import Answer
from agents.context import RunContext
from agents.function import agent
from agents.tool_decorator import tool
from orchestrator.app import open_app
from orchestrator.errors import InputClosed, InputUnknown, UsageError
from orchestrator.run import Run, provide, submit
from orchestrator.store.sqlite import SqliteRunStore
from tests.conformance.cases import call, check, stock
from tests.conformance.gear import MODES, CountingModel, pipeline_in
from tests.conformance.racing import forever

pytestmark = pytest.mark.parametrize("mode", MODES)

ASKING: dict[str, Any] = {"agents": {"clerk": {"ask_human": True}}}


def _asking() -> CountingModel:
    question = {"tool_calls": [call("ask_human", question="Which colour?")]}
    return CountingModel([question, {"text": "It is {{observation.-1}}."}])


async def test_a_run_that_only_people_can_move_returns_as_waiting_and_goes_on_when_answered(
    mode: str, data_folder: Path
) -> None:
    async with pipeline_in(data_folder, mode=mode, model=_asking(), **ASKING) as pipeline:
        waiting = await pipeline.run("Paint it.")
        assert (waiting.status, waiting.output) == ("waiting", None)
        (asked,) = waiting.inputs
        assert (asked["kind"], asked["rendered"]) == ("question", "Which colour?")
        async with pipeline.follow(waiting.run) as run:
            with pytest.raises(InputUnknown, match="no input request 'zz'"):
                await run.provide("zz", value="red")
            with pytest.raises(UsageError, match="must be JSON"):
                await run.provide(asked["input"], value=math.nan)
            await run.provide(asked["input"][:12], value="red")
            with pytest.raises(InputClosed):
                await run.provide(asked["input"], value="blue")
            result = await run.result()
        assert result.output == "It is red."


async def test_an_answer_that_was_laid_down_by_another_process_is_taken_before_waiting(
    mode: str, data_folder: Path
) -> None:
    # `cadenza approve` writes to the store and ends; `cadenza runs resume` then once said that
    # the run was still waiting, since nobody had advanced it yet.
    model = _asking()
    async with (
        pipeline_in(data_folder, mode=mode, model=model, **ASKING) as pipeline,
        SqliteRunStore(str(data_folder / "runs.db")) as store,
    ):
        waiting = await pipeline.run("Paint it.")
        await provide(store, waiting.run, waiting.inputs[0]["input"], Answer(value="green"))
        result = await pipeline.follow(waiting.run).result(wait_for_people=False)
    assert (result.status, result.output) == ("completed", "It is green.")
    assert set(model.asked.values()) == {1}


async def test_a_question_is_closed_when_the_run_no_longer_asks_it(
    mode: str, data_folder: Path
) -> None:
    async with pipeline_in(data_folder, mode=mode, model=_asking(), **ASKING) as pipeline:
        waiting = await pipeline.run("Paint it.")
        run = pipeline.follow(waiting.run)
        await run.cancel()
        assert (await run.result()).inputs == ()
        with pytest.raises(InputClosed):
            await run.provide(waiting.inputs[0]["input"], value="red")


async def test_a_question_nobody_answers_is_denied(mode: str, data_folder: Path) -> None:
    pipeline = pipeline_in(
        data_folder, mode=mode, model=_asking(), limits={"approval_s": 0.3}, **ASKING
    )
    async with pipeline, pipeline.start("Paint it.") as run:
        async with asyncio.timeout(15):
            result = await run.result()
    assert "nobody answered in time" in result.output


async def test_an_agent_that_nobody_serves_fails_after_the_grace(
    mode: str, data_folder: Path
) -> None:
    pipeline = pipeline_in(data_folder, mode=mode, agents=[check], limits={"grace_s": 1.5})
    async with open_app(pipeline.source, hosts=()) as app:
        loop = asyncio.get_running_loop()
        started = loop.time()
        run = Run(app, await submit(app, "Anybody?"))
        async with asyncio.timeout(15):
            result = await run.result()
        assert loop.time() - started > 1.4
    assert (result.status, result.stop_reason) == ("failed", "unroutable")


async def test_workers_that_come_back_after_an_outage_have_the_grace_to_do_so(
    mode: str, data_folder: Path
) -> None:
    # The orchestrator once came back first and failed all that had waited through the outage.
    options: dict[str, Any] = {"agents": [check], "limits": {"grace_s": 1.5}}
    pipeline = pipeline_in(data_folder, mode=mode, **options)
    async with open_app(pipeline.source, hosts=()) as app:
        run_id = await submit(app, "Wait for us.")
    await asyncio.sleep(1.6)  # the outage: longer than the grace, and nobody is there
    async with open_app(pipeline.source, hosts=()) as app:
        await app.runtime.sweep()
        assert (await app.store.run(run_id)).status == "running"
    async with open_app(pipeline.source) as app, asyncio.timeout(20):
        result = await Run(app, run_id).result()
    assert result.status == "completed"


async def test_wall_time_ends_a_run(mode: str, data_folder: Path) -> None:
    pipeline = pipeline_in(data_folder, mode=mode, agents=[forever], budget={"wall_s": 0.5})
    async with pipeline, asyncio.timeout(15):
        result = await pipeline.run("Take your time.")
    assert (result.status, result.stop_reason) == ("failed", "wall_time")


async def test_a_budget_in_dollars_ends_a_run_with_what_was_found_so_far(
    mode: str, data_folder: Path
) -> None:
    costs = {"usage": {"cost_usd": 0.01}}
    model = CountingModel(
        [{"call": i, "tool_calls": [call("stock", sku=f"A{i}")], **costs} for i in range(9)]
    )
    pipeline = pipeline_in(
        data_folder,
        mode=mode,
        model=model,
        agents={"analyst": {"tools": [stock], "depth": "deep"}, "check": check},
        plan=[
            {"id": "first", "agent": "check"},
            {"id": "then", "agent": "analyst", "after": ["first"]},
        ],
        budget={"usd": 0.025},
    )
    async with pipeline, asyncio.timeout(15):
        result = await pipeline.run("Count it all.")
    assert (result.status, result.stop_reason) == ("over_budget", "budget")
    assert result.partial == {"first": {"checked": {}}}
    assert result.cost == pytest.approx(0.03)  # the call that went over it was paid for
    assert sum(model.asked.values()) == 3


@pytest.mark.parametrize("where", ["output", "finding"])
async def test_an_output_or_finding_that_is_not_json_fails_its_subtask_at_once(
    mode: str, where: str, data_folder: Path
) -> None:
    # The outcome could not be written, so the attempt expired twenty times before it failed.
    @agent
    async def odd(ctx: RunContext) -> Any:
        ctx.report("odd", math.nan if where == "finding" else 1)
        return math.nan if where == "output" else 1

    async with pipeline_in(data_folder, mode=mode, agents=[odd]) as pipeline:
        async with asyncio.timeout(15):
            result = await pipeline.run("Be odd.")
    assert (result.status, result.stop_reason) == ("failed", "invalid_output")


async def test_secrets_of_the_environment_reach_neither_store_nor_traces(
    mode: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "correct-horse-battery-staple"
    monkeypatch.setenv("SHOP_DB_PASSWORD", secret)

    @tool
    async def settings() -> dict[str, str]:
        """Show the settings."""
        return {"url": f"postgres://shop:{secret}@db/shop", "password": secret}

    model = CountingModel(
        [{"tool_calls": [call("settings")]}, {"text": "I saw {{observation.-1}}"}]
    )
    pipeline = pipeline_in(
        data_folder, mode=mode, model=model, agents={"clerk": {"tools": [settings]}}
    )
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    async with pipeline:
        result = await pipeline.run("What are the settings?")
    assert "[redacted]" in result.output

    def kept() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in data_folder.iterdir()}

    files = await asyncio.to_thread(kept)
    assert b"execute_tool settings" in files["traces.jsonl"]
    assert b"[redacted]" in files["traces.jsonl"]
    assert [name for name, data in files.items() if secret.encode() in data] == []
