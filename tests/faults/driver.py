"""Drives the pipeline of these tests in a process of its own: ``python -m tests.faults.driver``.

``run FOLDER MODE [POINT N]`` submits a run and follows it, ``resume FOLDER MODE [POINT N]`` goes
on with it, and ``join FOLDER MODE`` opens the same pipeline and follows the run once there is one.
All write ``result-<pid>``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from orchestrator.errors import InputClosed
from orchestrator.pipeline import Pipeline
from orchestrator.result import RunResult
from orchestrator.run import Run
from orchestrator.state import Event
from tests.conformance.gear import until
from tests.faults.bombs import Bomb, BombStore, bomb_bus
from tests.faults.incident import watched

FILE = Path(__file__).with_name("incident") / "pipeline.yaml"
LEASE_S = 2.0


def overrides(folder: Path, mode: str) -> dict[str, str]:
    """Return what the tests change of the pipeline file."""
    return {"mode": mode, "store.url": str(folder / "runs.db"), "limits.lease_s": str(LEASE_S)}


async def answer_doubts(run: Run) -> None:
    """Answer as a person who can look whether a report is out."""
    async for event in run:
        if isinstance(event, Event) and event.type == "input.requested":
            done = watched.noted("published")
            try:
                if done:
                    await run.provide(event.data["input"], approve=False, value="Report is out")
                else:
                    await run.provide(event.data["input"], approve=True)
            except InputClosed:
                continue  # the other process was faster


async def follow(pipeline: Pipeline, run: Run) -> RunResult:
    """Wait for the end, and until it is published."""
    people = asyncio.create_task(answer_doubts(run))
    result = await run.result()
    await people
    store = pipeline.app.store

    async def published() -> bool:
        return await store.published(run.id) >= (await store.run(run.id)).seq

    await until(published)
    return result


async def drive(what: str, folder: Path, mode: str, bomb: Bomb) -> RunResult:
    """Submit a run, or go on with it, in a process that may kill itself."""
    async with BombStore(str(folder / "runs.db"), bomb) as store, bomb_bus(bomb) as bus:
        pipeline = Pipeline.load(FILE, overrides=overrides(folder, mode), store=store, bus=bus)
        async with pipeline:
            # The pipeline's own import of the module is another object than ours.
            sys.modules["watched"].crash.bomb = bomb
            if what == "resume":
                (row,) = await store.runs()
                return await follow(pipeline, pipeline.follow(row.run))
            async with pipeline.start("What happened?") as run:
                return await follow(pipeline, run)


async def join(folder: Path, mode: str) -> RunResult:
    """Open the pipeline, and follow the run that another process has submitted."""
    async with Pipeline.load(FILE, overrides=overrides(folder, mode)) as pipeline:
        (folder / "joined").touch()
        store = pipeline.app.store

        async def submitted() -> bool:
            return bool(await store.runs())

        await until(submitted)
        (row,) = await store.runs()
        return await follow(pipeline, pipeline.follow(row.run))


def main() -> None:
    """Do what the arguments say."""
    what, folder, mode, *rest = sys.argv[1:]
    where = Path(folder)
    point, n = (rest[0], int(rest[1])) if rest else ("", 0)
    if what == "join":
        result = asyncio.run(join(where, mode))
    else:
        result = asyncio.run(drive(what, where, mode, Bomb(where, point, n)))
    told = where / f"result-{os.getpid()}"
    new = where / f"new-{os.getpid()}"
    new.write_text(json.dumps(asdict(result)))
    new.rename(told)


if __name__ == "__main__":
    main()
