"""``cadenza run``: one task, from here to its answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import click

from orchestrator.app import Source
from orchestrator.canonical import canonical_hash
from orchestrator.cli.exits import ANSWER, INTERRUPTED, OF_STATUS, TERMINATED
from orchestrator.cli.progress import line
from orchestrator.cli.screen import Screen
from orchestrator.cli.signals import Signals
from orchestrator.cli.sources import load_source, pairs, store_option
from orchestrator.errors import UsageError
from orchestrator.pipeline import Pipeline
from orchestrator.result import RunResult
from orchestrator.run import Run, submit
from orchestrator.runtime import ORCHESTRATOR
from orchestrator.store.base import Scope
from orchestrator.team import names_of

Begin = Callable[[Pipeline], Awaitable[str]]


async def run_task(
    pipeline: str,
    task: str | None,
    files: tuple[str, ...],
    inputs: tuple[str, ...],
    session: str | None,
    record: str | None,
    mode: str | None,
    bus: str | None,
    settings: tuple[str, ...],
    store: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    wait: bool,
    detach: bool,
) -> int:
    """Run a task through a pipeline file and return the exit code."""
    screen = Screen(as_json=as_json, quiet=quiet, verbose=verbose, wait=wait)
    flags = {"mode": mode, "bus.kind": bus}
    source = await asyncio.to_thread(load_source, pipeline, settings, flags, store)
    if record is not None:
        source = replace(source, record=Path(record))
    values = pairs(inputs, "--input")
    text = await asyncio.to_thread(_task, source, task)

    async def begin(opened: Pipeline) -> str:
        return await submit(opened.app, text, session=session, files=files, values=values)

    if detach:
        return await _detached(screen, source, begin)
    return await Drive(screen, wait=wait).drive(source, begin)


async def _detached(screen: Screen, source: Source, begin: Begin) -> int:
    """Submit a run, print its id, and leave it to the processes that serve its pipeline."""
    if source.settings.bus.kind == "memory":
        hint = "give --bus kafka, or say so in the file, and start `cadenza up`"
        raise UsageError(f"with the memory bus a run lives in this process alone; {hint}")
    async with Pipeline.of(source, serves=False) as pipeline:
        run = await begin(pipeline)
        for told in await _missing(pipeline):
            screen.say(line("note", told, "yellow"))
        option = await store_option(pipeline.app.store)
    screen.say(line("watch", f"cadenza runs watch {run}{option}"))
    click.echo(run)
    return ANSWER


async def _missing(pipeline: Pipeline) -> list[str]:
    settings = pipeline.source.settings
    scope = Scope(pipeline.source.hash, settings.mode)
    there = await pipeline.app.store.present(scope, within_s=settings.limits.grace_s)
    absent = [name for name in names_of(settings) if name not in there]
    told = []
    if settings.mode == "orchestration" and ORCHESTRATOR not in there:
        told.append("no orchestrator runs; the run waits for one: cadenza orchestrator, or up")
    if absent:
        told.append(f"nobody serves {', '.join(absent)}: cadenza worker, or up")
    return told


def _task(source: Source, task: str | None) -> str:
    if task == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    if task is not None:
        return task.encode("utf-8", "replace").decode()  # bytes that the shell passed as they were
    assert source.file is not None
    for text in source.file.read_text(encoding="utf-8").splitlines():
        if text.startswith("# task:"):
            return text.removeprefix("# task:").strip()
    raise UsageError('no task: give one, or write a line "# task: …" into the pipeline file')


class Drive:
    """Drives a run to its end, or to where only people can move it on, and shows it.

    Args:
        screen: Where it is shown.
        wait: Whether to stay until people have answered.
    """

    def __init__(self, screen: Screen, *, wait: bool) -> None:
        self._screen = screen
        self._wait = wait
        self._run: Run | None = None
        self._beginning = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def drive(self, source: Source, begin: Begin) -> int:
        """Open a pipeline, begin or follow a run, show it, and return the exit code.

        Args:
            source: The pipeline.
            begin: Returns the run's id, given the open pipeline.
        """
        with Signals(self._screen.say, self._cancel, self._resume) as signals:
            pipeline = await Pipeline.of(source).with_some_model(self._screen.say)
            async with pipeline:
                self._screen.option = await store_option(pipeline.app.store)
                self._beginning = True
                run = self._run = pipeline.follow(await begin(pipeline))
                self._screen.begin(run.id, pipeline.source.settings)
                if signals.interrupted:  # before there was a run to cancel
                    await run.cancel("interrupted by Ctrl-C")
                result = await self._shown(run, signals)
                ledger = await pipeline.app.store.ledger(run.id)
            if result is None:
                self._screen.say(line("left", f"terminated; go on with: {self._resume()}"))
                return TERMINATED
            self._screen.result(result, canonical_hash(ledger))
            cancelled = signals.interrupted and result.status == "cancelled"
            return INTERRUPTED if cancelled else OF_STATUS[result.status]

    async def _shown(self, run: Run, signals: Signals) -> RunResult | None:
        showing = asyncio.create_task(self._show(run), name="progress")
        leaving = asyncio.create_task(signals.terminated.wait(), name="leave")
        try:
            result = await self._result(run, leaving, signals)
            run.detach()
            await run.caught_up()
        finally:
            signals.over = True
            showing.cancel()
            leaving.cancel()
            await asyncio.wait({showing, leaving, *self._tasks})
        if not showing.cancelled():
            showing.result()  # raises what the output raised, for example that nobody reads it
        return result

    async def _result(
        self, run: Run, leaving: asyncio.Task[bool], signals: Signals
    ) -> RunResult | None:
        while True:
            stay = self._wait or signals.interrupted
            ended = asyncio.create_task(run.result(wait_for_people=stay), name="result")
            await asyncio.wait({ended, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                ended.cancel()
                await asyncio.wait({ended})
                return None
            result = await ended
            if result.status != "waiting" or not signals.interrupted:
                return result

    async def _show(self, run: Run) -> None:
        async for event in run:
            self._screen.event(run.id, event)

    def _resume(self) -> str:
        if self._run is not None:
            return f"cadenza runs resume {self._run.id}{self._screen.option}"
        return f"cadenza runs list{self._screen.option}" if self._beginning else ""

    def _cancel(self) -> None:
        if self._run is None:
            return
        task = asyncio.create_task(self._run.cancel("interrupted by Ctrl-C"), name="cancel")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
