"""Code as a user writes it; the test type-checks it strictly and runs it in a folder of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cadenza import (
    AgentEvent,
    AgentSettings,
    Event,
    FaultyBus,
    LoopState,
    MemoryBus,
    Model,
    ModelRequest,
    ModelSettings,
    Pipeline,
    RunContext,
    RunResult,
    ScriptedModel,
    SettingsError,
    StopCondition,
    Usage,
    agent,
    tool,
)

HERE = Path(__file__).parent


class Shelves:
    """A database, as the tools see it."""

    def __init__(self, rows: dict[str, int]) -> None:
        self._rows = rows

    async def pieces(self, sku: str) -> int | None:
        return self._rows.get(sku)


@asynccontextmanager
async def open_db() -> AsyncIterator[Shelves]:
    yield Shelves({"A1": 7})


async def from_a_file() -> None:
    """Load a pipeline with resources, follow a run, and answer what it asks."""
    async with Pipeline.load(
        HERE / "pipeline.yaml", resources={"db": open_db}, overrides={"store.url": ":memory:"}
    ) as pipeline:
        async with pipeline.start(
            "How many A1 are there?", session="u1", files=[HERE / "note.txt"], tags={"from": "docs"}
        ) as run:
            seen: list[str] = []
            async for event in run:
                seen.append(event.type)
                if isinstance(event, AgentEvent):
                    continue
                if event.type == "input.requested":
                    show(event)
                    await run.provide(
                        event.data["input"], approve=True, value={"sku": "A1", "pieces": 5}
                    )
            result: RunResult = await run.result()
        print("ended:", result.status, result.stop_reason, list(result.warnings))
        print("answer:", str(result.output).partition(" under")[0])
        usage: Usage = result.usage
        cost: float | None = result.cost
        print("spent:", usage.llm_calls, usage.tool_calls, cost, len(result.trace_id))
        print("seen:", "tool_start" in seen, seen[-1])


def show(event: Event) -> None:
    print("asked:", event.data["kind"], event.data["rendered"])


@tool
async def double(number: int, ctx: RunContext) -> int:
    """Double a number.

    Args:
        number: The number.
    """
    return number * 2


@agent
async def words(task: str) -> dict[str, int]:
    """Count the words of the task."""
    return {"words": len(task.split())}


@agent(name="shout", description="repeats loudly")
def loud(task: str, inputs: dict[str, Any]) -> str:
    return task.upper()


class AfterTwo:
    """Stops after two model calls."""

    def check(self, state: LoopState) -> str | None:
        return "two_calls" if state.iterations >= 2 else None


def replies(request: ModelRequest) -> str | dict[str, Any]:
    if request.key.call == 0:
        return {"tool_calls": [{"name": "double", "arguments": {"number": 21}}]}
    return "It is {{observation.0}}."


async def in_python() -> None:
    """Say a pipeline in Python, on a bus with faults."""
    stop: StopCondition = AfterTwo()
    model: Model = ScriptedModel(replies)
    async with (
        FaultyBus(MemoryBus(), seed=7, duplicate=0.3, reorder=0.3) as bus,
        Pipeline(
            agents={
                "calculator": AgentSettings(model="main", instructions="Double it."),
                "helper": {"model": "main", "tools": [double], "stops": [stop]},
                "words": words,
            },
            models={"main": model},
            plan=[
                {"id": "count", "agent": "words"},
                {"id": "work", "agent": "helper", "after": ["count"]},
            ],
            mode="choreography",
            store=":memory:",
            bus=bus,
        ) as pipeline,
    ):
        result = await pipeline.run("Double twenty-one.", inputs={"unit": "none"})
        print("in python:", result.status, result.output)


async def functions_only() -> None:
    """Give agents as a list; what is decorated can still be called."""
    async with Pipeline([words], store=":memory:") as pipeline:
        result = await pipeline.run("one two three")
        print("functions:", result.output)
    print("called:", await double(4, RunContext("r", "s", "a", 1)), words.name, loud.description)


def settings_are_checked() -> None:
    """Get an error that names what is wrong, before anything is opened."""
    try:
        Pipeline({"a": {"modle": "main"}}, models={"main": ModelSettings(model="ollama/gemma3:4b")})
    except SettingsError as exc:
        print("wrong:", exc)


async def main() -> None:
    await from_a_file()
    await in_python()
    await functions_only()
    settings_are_checked()


if __name__ == "__main__":
    asyncio.run(main())
