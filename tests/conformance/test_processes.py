"""Several processes' parts on one store, one after the other or at once; in both modes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from agents.context import RunContext
from agents.function import agent
from bus.envelope import MAX_PAYLOAD_BYTES, Envelope
from bus.memory import MemoryBus
from orchestrator.commit import Batch
from orchestrator.store.sqlite import SqliteRunStore
from tests.conformance.cases import EQUAL, double
from tests.conformance.gear import (
    MODES,
    CountingModel,
    differences,
    pipeline_in,
    play,
    until,
)
from tests.conformance.invariants import broken_rules

pytestmark = pytest.mark.parametrize("mode", MODES)


class Spy(MemoryBus):
    """Publishes everything several times and remembers it."""

    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self._times = times
        self.seen: list[tuple[str, Envelope]] = []

    async def publish(self, topic: str, envelope: Envelope, *, key: str) -> None:
        """Remember, and publish."""
        self.seen.append((topic, envelope))
        for _ in range(self._times):
            await super().publish(topic, envelope, key=key)


@pytest.mark.parametrize("name", ["planned", "colleagues", "people"])
async def test_messages_delivered_three_times_change_nothing(
    mode: str, name: str, data_folder: Path
) -> None:
    expected = await play(EQUAL[name], data_folder, mode=mode)
    found = await play(EQUAL[name], data_folder, mode=mode, carrier=Spy(times=3))
    assert differences(expected, found) == []


async def test_two_processes_share_a_run_and_do_no_work_twice(mode: str, data_folder: Path) -> None:
    together = asyncio.Barrier(2)
    done: Counter[str] = Counter()

    @agent
    async def pair(ctx: RunContext, task: str) -> str:
        done[ctx.subtask] += 1
        # One process has one slot: only two of them get past this.
        await together.wait()
        return task

    options: dict[str, Any] = {
        "agents": [pair],
        "plan": [{"id": f"s{i}", "agent": "pair", "task": f"part {i}"} for i in range(4)],
        "limits": {"slots": 1},
    }
    async with (
        pipeline_in(data_folder, mode=mode, **options) as one,
        pipeline_in(data_folder, mode=mode, **options) as other,
        one.start("Share.") as run,
    ):
        async with asyncio.timeout(30):
            result = await run.result()
        ledger = await other.app.store.ledger(run.id)
        workers = {app.runtime.worker.name for app in (one.app, other.app)}
    assert result.output == {f"s{i}": f"part {i}" for i in range(4)}
    assert done == {f"s{i}": 1 for i in range(4)}
    assert workers == {e.data["worker"] for e in ledger if e.type == "subtask.completed"}
    assert broken_rules(ledger) == []


async def test_a_run_goes_on_where_its_process_left_it(mode: str, data_folder: Path) -> None:
    asked = asyncio.Event()
    gate = asyncio.Event()

    async def reply(request: Any) -> Any:
        if request.key.call == 0:
            return {"tool_calls": [{"name": "stock", "arguments": {"sku": "A1"}}]}
        asked.set()
        await gate.wait()
        return {"text": "There are {{observation.-1}}."}

    model = CountingModel(reply)
    options = {**EQUAL["planned"].settings(), "planner": None, "synthesizer": None}
    options["plan"] = [{"id": "a", "agent": "analyst"}, {"id": "b", "agent": "check"}]
    async with (
        pipeline_in(data_folder, mode=mode, model=model, **options) as first,
        first.start("Count.") as run,
    ):
        await asked.wait()
        run.detach()
    gate.set()
    async with pipeline_in(data_folder, mode=mode, model=model, **options) as second:
        async with asyncio.timeout(20):
            result = await second.follow(run.id).result()
        ledger = await second.app.store.ledger(run.id)
    assert result.output == {"a": "There are 7.", "b": {"checked": {}}}
    # What had been answered is taken from the journal; what was cut off is asked again.
    assert {key.call: n for key, n in model.asked.items()} == {0: 1, 1: 2}
    assert "attempt.given_back" in [e.type for e in ledger]
    assert broken_rules(ledger) == []


def cancel_tasks(name: str) -> None:
    for task in asyncio.all_tasks():
        if task.get_name() == name:
            task.cancel()


async def test_a_process_whose_view_is_old_still_takes_over_what_lapsed(
    mode: str, data_folder: Path
) -> None:
    # A process that had seen the run before an attempt was dispatched decided, on that old view,
    # that nothing follows from its lapsed lease; the run hung for ever.
    begun, gate, stuck = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @agent
    async def early() -> str:
        begun.set()
        await gate.wait()
        return "early"

    @agent
    async def late(ctx: RunContext) -> str:
        if ctx.attempt == 1:
            stuck.set()
            await asyncio.Event().wait()
        return f"late, attempt {ctx.attempt}"

    options: dict[str, Any] = {
        "agents": [early, late],
        "plan": [{"id": "a", "agent": "early"}, {"id": "b", "agent": "late", "after": ["a"]}],
        "limits": {"lease_s": 0.6},
    }
    async with (
        pipeline_in(data_folder, mode=mode, **options) as one,
        pipeline_in(data_folder, mode=mode, **options) as other,
    ):
        cancel_tasks("sweeper")  # or the other one may do the work before it is to
        async with one.start("Take over.") as run:
            await begun.wait()
            view = await other.app.runtime.advancer.refresh(run.id)
            assert view.state.subtasks["b"].status == "pending"
            gate.set()
            await stuck.wait()
            cancel_tasks(f"heartbeat {one.app.runtime.worker.name}")  # as good as dead
            async with asyncio.timeout(15):
                while (await other.app.store.run(run.id)).ended is None:
                    await other.app.runtime.sweep()
            result = await other.follow(run.id).result()
    assert result.output == "late, attempt 2"


async def test_large_outputs_and_findings_travel_by_reference(mode: str, data_folder: Path) -> None:
    text = "0123456789abcdef" * (MAX_PAYLOAD_BYTES // 16 + 1)

    @agent
    async def source(ctx: RunContext) -> str:
        ctx.report("large", text)
        return text

    @agent
    async def sink(inputs: dict[str, Any]) -> dict[str, bool]:
        return {name: value == text for name, value in inputs.items()}

    spy = Spy()
    async with spy:
        pipeline = pipeline_in(
            data_folder,
            mode=mode,
            bus=spy,
            agents={"source": source, "sink": {"use": sink, "reacts_to": ["large"]}},
            plan=[
                {"id": "a", "agent": "source"},
                {"id": "b", "agent": "sink", "after": ["a"]},
            ],
            # In choreography a worker with a free slot takes its work without a message.
            limits={"slots": 1},
        )
        async with pipeline, asyncio.timeout(20):
            result = await pipeline.run("Move it.")
    assert result.output == {"a/sink.0": {"large": True}, "b": {"a": True}}
    references = {envelope.type for _, envelope in spy.seen if "ref" in envelope.extra}
    assert {"finding.reported", "subtask.spawned"} <= references
    assert mode == "choreography" or "cadenza.work" in references


async def test_two_hundred_runs_at_once_end(
    mode: str, data_folder: Path, detector: BlockBuster
) -> None:
    # Debug mode and the detector of blocking calls would take most of the time.
    asyncio.get_running_loop().set_debug(False)
    detector.deactivate()
    options: dict[str, Any] = {
        "agents": {"double": double},
        "plan": [{"id": "a", "agent": "double"}, {"id": "b", "agent": "double", "after": ["a"]}],
    }
    async with pipeline_in(data_folder, mode=mode, **options) as pipeline:
        async with asyncio.timeout(50):
            results = await asyncio.gather(*(pipeline.run(f"Run {i}.") for i in range(200)))
    assert {result.status for result in results} == {"completed"}
    assert len({result.run for result in results}) == 200


def test_a_pipeline_may_be_entered_again_on_another_event_loop(
    mode: str, data_folder: Path
) -> None:
    pipeline = pipeline_in(
        data_folder, mode=mode, model=CountingModel([{"text": "Yes."}]), agents={"one": {}}
    )

    async def once() -> Any:
        async with pipeline:
            return (await pipeline.run("Are you there?")).output

    assert [asyncio.run(once()) for _ in range(3)] == ["Yes."] * 3


async def test_a_run_that_cannot_be_helped_does_not_keep_a_sweep_from_the_others(
    mode: str, data_folder: Path
) -> None:
    class Broken(SqliteRunStore):
        bad = ""

        async def take(self, run: str) -> Batch:
            if run == self.bad:
                raise ValueError("unreadable")
            return await super().take(run)

    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(Broken(str(data_folder / "runs.db")))
        pipeline = await stack.enter_async_context(
            pipeline_in(data_folder, mode=mode, store=store, agents=[double])
        )
        waiting = SqliteRunStore(str(data_folder / "runs.db"))
        await stack.enter_async_context(waiting)
        other = pipeline_in(data_folder, mode=mode, store=waiting, agents=[double])
        async with other, other.start("Bad.") as bad, other.start("Good.") as good:
            store.bad = bad.id
            bad.detach()
            good.detach()
        assert (await pipeline.follow(good.id).result()).status == "completed"
        await pipeline.app.runtime.sweep()


async def test_a_run_that_follows_newer_rules_is_left_to_others(
    mode: str, data_folder: Path
) -> None:
    model = CountingModel([{"tool_calls": [{"name": "ask_human", "arguments": {"question": "?"}}]}])
    options: dict[str, Any] = {"model": model, "agents": {"clerk": {"ask_human": True}}}
    async with pipeline_in(data_folder, mode=mode, **options) as pipeline:
        waiting = await pipeline.run("Ask.")

    def age() -> None:
        with closing(sqlite3.connect(data_folder / "runs.db")) as db, db:
            key = '"rules_version":'
            db.execute("UPDATE ledger SET data = replace(data, ?, ?)", (key, f"{key}9"))

    await asyncio.to_thread(age)
    async with pipeline_in(data_folder, mode=mode, **options) as pipeline:
        before = await pipeline.app.store.ledger(waiting.run)
        run = pipeline.follow(waiting.run)
        await run.provide(waiting.inputs[0]["input"], value="yes")
        await run.cancel()
        await pipeline.app.runtime.sweep()
        assert await pipeline.app.store.ledger(waiting.run) == before

        async def inbox_is_kept() -> bool:
            return len((await pipeline.app.store.take(waiting.run)).inbox) == 2

        await until(inbox_is_kept)
