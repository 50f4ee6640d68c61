"""``cadenza worker`` and ``cadenza orchestrator``: serve until told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType

from orchestrator.app import App, Source, open_app, store_path
from orchestrator.cli.exits import INTERRUPTED, TERMINATED
from orchestrator.cli.progress import line
from orchestrator.cli.screen import Screen, count
from orchestrator.cli.signals import handling, leave
from orchestrator.cli.sources import load_source
from orchestrator.errors import OtherStore, UsageError
from orchestrator.pipeline import Pipeline
from orchestrator.settings_errors import suggest
from orchestrator.team import names_of
from orchestrator.watchdog import POLL_LIMIT_S

_EXITS = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


async def worker(
    pipeline: str,
    agents: tuple[str, ...],
    concurrency: int | None,
    drain_s: float,
    until_eof: bool,
    mode: str | None,
    bus: str | None,
    settings: tuple[str, ...],
    store: str | None,
    verbose: bool,
) -> int:
    """Host agents until SIGTERM or Ctrl-C."""
    source = await shared_source(pipeline, mode, bus, settings, store)
    known = names_of(source.settings)
    for name in agents:
        if name not in known:
            raise UsageError(f"the pipeline has no agent {name!r}; {suggest(name, known)}")
    serving = Serving(Screen(verbose=verbose, wait=False), drain_s=drain_s, until_eof=until_eof)
    return await serving.serve(source, hosts=agents or known, slots=concurrency)


async def orchestrator(
    pipeline: str,
    drain_s: float,
    until_eof: bool,
    mode: str | None,
    bus: str | None,
    settings: tuple[str, ...],
    store: str | None,
    verbose: bool,
) -> int:
    """Advance runs until SIGTERM or Ctrl-C."""
    source = await shared_source(pipeline, mode, bus, settings, store)
    if source.settings.mode == "choreography":
        hint = "start its workers alone: cadenza worker, or cadenza up"
        raise UsageError(f"in choreography nobody conducts; {hint}")
    serving = Serving(Screen(verbose=verbose, wait=False), drain_s=drain_s, until_eof=until_eof)
    return await serving.serve(source, hosts=(), conducts=True)


async def shared_source(
    pipeline: str,
    mode: str | None,
    bus: str | None,
    settings: tuple[str, ...],
    store: str | None,
) -> Source:
    """Load a pipeline whose bus reaches other processes.

    Raises:
        UsageError: Its bus is in memory.
    """
    flags = {"mode": mode, "bus.kind": bus}
    source = await asyncio.to_thread(load_source, pipeline, settings, flags, store)
    if source.settings.bus.kind == "memory":
        hint = "say `bus: {kind: kafka}` in the pipeline file, or --bus kafka"
        raise UsageError(f"the memory bus reaches no other process; {hint}")
    return source


class Serving:
    """Serves a part of a pipeline, and drains when it is told to end.

    Args:
        screen: Where it tells.
        drain_s: Seconds for running attempts to end by themselves.
        until_eof: Whether the end of standard input ends it too: whoever started it is gone.
    """

    def __init__(self, screen: Screen, *, drain_s: float, until_eof: bool) -> None:
        self._screen = screen
        self._drain_s = drain_s
        self._until_eof = until_eof
        self._ending = asyncio.Event()

    async def serve(
        self,
        source: Source,
        *,
        hosts: Collection[str],
        conducts: bool = False,
        slots: int | None = None,
    ) -> int:
        """Serve, and return the exit code.

        Raises:
            OtherStore: The broker carries work of another run store.
        """
        with self._told_to_end():
            source = (await Pipeline.of(source).with_some_model(self._screen.say)).source
            async with open_app(
                source, hosts=hosts, conducts=conducts, slots=slots, watchdog_s=POLL_LIMIT_S
            ) as app:
                self._screen.say(line("ready", await asyncio.to_thread(_about, app, conducts)))
                await self._serve(app)
        self._screen.say(line("ended", "everything is given back"))
        return 0

    async def _serve(self, app: App) -> None:
        refused = app.runtime.intake.refused
        waits = {
            asyncio.create_task(event.wait(), name=name)
            for event, name in ((self._ending, "ending"), (refused, "refused"))
        }
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if refused.is_set():
            raise OtherStore(app.runtime.intake.refusal)
        running = app.runtime.worker.running
        told = f"{count(running, 'attempt')} may take {self._drain_s:g} s more; again ends at once"
        self._screen.say(line("drain", told))
        await app.runtime.close(drain_s=self._drain_s)

    @contextmanager
    def _told_to_end(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def end(number: int, frame: FrameType | None) -> None:
            if self._ending.is_set():
                leave(
                    "     left  at once; leases end by themselves", _EXITS[signal.Signals(number)]
                )
            loop.call_soon_threadsafe(self._ending.set)

        def at_eof() -> None:
            if not os.read(sys.stdin.fileno(), 4096):
                loop.remove_reader(sys.stdin)
                self._ending.set()

        with handling(signal.SIGINT, end), handling(signal.SIGTERM, end):
            if self._until_eof:
                loop.add_reader(sys.stdin, at_eof)
            yield


def _about(app: App, conducts: bool) -> str:
    settings = app.source.settings
    part = "orchestrator" if conducts else ", ".join(app.agents)
    where = f"{settings.mode} over {settings.bus.kind} at {settings.bus.url}"
    return f"{part} of {settings.name} · {where} · runs in {store_path(app.source)}"
