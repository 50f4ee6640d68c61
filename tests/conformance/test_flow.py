"""What runs at once, what waits for what, and what a cancel reaches; in both modes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents.function import agent
from agents.tool_decorator import tool
from orchestrator.state import Event
from tests.conformance.cases import call
from tests.conformance.gear import MODES, CountingModel, pipeline_in, until

pytestmark = pytest.mark.parametrize("mode", MODES)


async def test_what_depends_on_a_short_subtask_starts_before_an_unrelated_long_one_ends(
    mode: str, data_folder: Path
) -> None:
    dependent_started = asyncio.Event()

    @agent
    async def short() -> str:
        return "short"

    @agent
    async def long() -> str:
        await dependent_started.wait()
        return "long"

    @agent
    async def dependent(inputs: dict[str, Any]) -> Any:
        dependent_started.set()
        return inputs

    plan = [
        {"id": "a", "agent": "short"},
        {"id": "b", "agent": "long"},
        {"id": "c", "agent": "dependent", "after": ["a"]},
    ]
    agents = [short, long, dependent]
    async with pipeline_in(data_folder, mode=mode, agents=agents, plan=plan) as pipeline:
        async with asyncio.timeout(20):
            result = await pipeline.run("Go.")
    assert result.output == {"b": "long", "c": {"a": "short"}}


async def test_agents_that_ask_each_other_in_a_circle_need_one_slot_only(
    mode: str, data_folder: Path
) -> None:
    def ask(name: str) -> dict[str, Any]:
        return {"tool_calls": [call("ask_agent", agent=name, task="Tell me.")]}

    model = CountingModel(
        [
            {"subtask": "a", **ask("right")},
            {"subtask": "a", "text": "left heard {{observation.-1}}"},
            {"subtask": "a/right-0", **ask("left")},
            {"subtask": "a/right-0", "text": "right heard {{observation.-1}}"},
            {"subtask": "a/right-0/left-0", "text": "the word"},
        ]
    )
    pipeline = pipeline_in(
        data_folder,
        mode=mode,
        model=model,
        agents={"left": {"can_ask": ["right"]}, "right": {"can_ask": ["left"]}},
        plan=[{"id": "a", "agent": "left"}],
        limits={"slots": 1},
    )
    async with pipeline, asyncio.timeout(20):
        result = await pipeline.run("Ask around.")
    assert result.output == "left heard right heard the word"


async def test_no_more_subtasks_of_an_agent_run_at_once_than_it_has_slots(
    mode: str, data_folder: Path
) -> None:
    running: set[str] = set()
    most: list[int] = []
    two = asyncio.Event()

    @agent
    async def worker(task: str) -> str:
        running.add(task)
        most.append(len(running))
        if len(running) == 2:
            two.set()
        await two.wait()  # both slots are used, or nothing goes on
        running.remove(task)
        return task

    plan = [{"id": f"s{i}", "agent": "worker", "task": f"part {i}"} for i in range(9)]
    pipeline = pipeline_in(data_folder, mode=mode, agents=[worker], plan=plan, limits={"slots": 2})
    async with pipeline, asyncio.timeout(20):
        result = await pipeline.run("Go.")
    assert result.output == {f"s{i}": f"part {i}" for i in range(9)}
    assert max(most) == 2


async def test_a_cancel_stops_an_async_tool_at_once(mode: str, data_folder: Path) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def wait_for_rain() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "it rains"

    model = CountingModel([{"tool_calls": [call("wait_for_rain")]}])
    agents = {"farmer": {"tools": [wait_for_rain]}}
    async with (
        pipeline_in(data_folder, mode=mode, model=model, agents=agents) as pipeline,
        pipeline.start("Wait for rain.") as run,
    ):
        await started.wait()
        await run.cancel("the harvest is in")
        # Far below the lease of 30 s, after which a worker that does not answer is given up.
        async with asyncio.timeout(8):
            result = await run.result()
        assert stopped.is_set()
    assert (result.status, result.stop_reason) == ("cancelled", "cancelled")
    assert result.message == "the harvest is in"


async def test_a_cancel_reaches_a_worker_in_another_process_with_its_next_heartbeat(
    mode: str, data_folder: Path
) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @agent
    async def forever() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    options: dict[str, Any] = {"agents": [forever], "limits": {"lease_s": 3.0}}
    async with (
        pipeline_in(data_folder, mode=mode, **options) as theirs,
        theirs.start("Work.") as run,
    ):
        await started.wait()
        run.detach()
        async with pipeline_in(data_folder, mode=mode, **options) as ours:
            other = ours.follow(run.id)
            await other.cancel("told from elsewhere")
            async with asyncio.timeout(10):
                result = await other.result()
    assert result.status == "cancelled"
    assert stopped.is_set()


async def test_leaving_the_block_cancels_and_detaching_does_not(
    mode: str, data_folder: Path
) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    @agent
    async def waiter() -> str:
        begun.set()
        await gate.wait()
        return "waited"

    async with pipeline_in(data_folder, mode=mode, agents=[waiter]) as pipeline:
        store = pipeline.app.store
        async with pipeline.start("Left.") as left:
            await begun.wait()
        assert (await store.run(left.id)).status == "cancelled"
        begun.clear()
        async with pipeline.start("Detached.") as detached:
            await begun.wait()
            assert detached.detach() == detached.id
        assert (await store.run(detached.id)).status == "running"
        gate.set()

        async def ended() -> bool:
            return (await store.run(detached.id)).status == "completed"

        await until(ended)


async def test_a_run_is_told_completely_and_in_order_and_ends_without_delay(
    mode: str, data_folder: Path
) -> None:
    @agent
    async def quick() -> str:
        return "done"

    loop = asyncio.get_running_loop()
    plan = [{"id": f"s{i}", "agent": "quick"} for i in range(5)]
    async with (
        pipeline_in(data_folder, mode=mode, agents=[quick], plan=plan) as pipeline,
        pipeline.start("Tell.") as run,
    ):
        told = [(event, loop.time()) async for event in run]
        end = loop.time()
        ledger = await pipeline.app.store.ledger(run.id)
    events = [event for event, _ in told if isinstance(event, Event)]
    assert events == ledger
    assert len([e for e, _ in told if e.type == "agent_end"]) == 5
    assert end - told[-1][1] < 0.4  # one poll takes 0.5 s
