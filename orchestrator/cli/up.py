"""``cadenza up``: a process for each agent of a pipeline, on this host, under a supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

import click

from orchestrator.app import Source
from orchestrator.cli.exits import INTERRUPTED, TERMINATED, USAGE
from orchestrator.cli.progress import line
from orchestrator.cli.screen import Screen
from orchestrator.cli.serve import shared_source
from orchestrator.cli.signals import handling, leave
from orchestrator.cli.talk import Talk
from orchestrator.team import names_of

_PACKAGES = str(Path(__file__).parents[2])  # the working directory may hold others of their names
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0
_STEADY_S = 30.0  # a process that ran so long begins anew with the first pause
_COLORS = ("cyan", "magenta", "blue", "green", "yellow", "bright_cyan", "bright_magenta")


async def up(
    pipeline: str,
    drain_s: float,
    mode: str | None,
    bus: str | None,
    settings: tuple[str, ...],
    store: str | None,
    quiet: bool,
    verbose: bool,
) -> int:
    """Run a process for each agent until SIGTERM or Ctrl-C."""
    screen = Screen(quiet=quiet, verbose=verbose, wait=False)
    source = await shared_source(pipeline, mode, bus, settings, store)
    options = [part for item in settings for part in ("--set", item)]
    given = {"--mode": mode, "--bus": bus, "--store": store}
    options += [part for name, value in given.items() if value for part in (name, value)]
    options += ["--drain", f"{drain_s:g}", *(["--verbose"] if verbose else [])]
    parts = {name: ["worker", pipeline, "--agent", name] for name in names_of(source.settings)}
    if source.settings.mode == "orchestration":
        parts = {"orchestrator": ["orchestrator", pipeline], **parts}
    supervisor = Supervisor(screen.say, {name: [*part, *options] for name, part in parts.items()})
    with supervisor.signals():
        watching = asyncio.create_task(_talk(source, screen), name="talk")
        try:
            return await supervisor.supervise()
        finally:
            watching.cancel()
            await asyncio.wait({watching})
            if not watching.cancelled():
                watching.result()


async def _talk(source: Source, screen: Screen) -> None:
    async with Talk(source, screen.say) as talk:
        await talk.follow()


class Supervisor:
    """Keeps processes running: one that ends is started again, after doubling pauses.

    Args:
        say: Takes a line for people.
        parts: Arguments of ``cadenza`` by the name of the process.
    """

    def __init__(self, say: Callable[[str], None], parts: dict[str, list[str]]) -> None:
        self._say = say
        self._parts = parts
        self._color = dict(zip(parts, _COLORS * len(parts), strict=False))
        self._width = max(map(len, parts))
        self._running: dict[str, Process] = {}
        self._ending = asyncio.Event()
        self._unusable = False

    def signals(self) -> ExitStack:
        """Return a block in which SIGTERM and Ctrl-C end all processes, twice at once."""
        loop = asyncio.get_running_loop()

        def end(number: int, frame: FrameType | None) -> None:
            if self._ending.is_set():
                for process in self._running.values():
                    with suppress(ProcessLookupError):
                        process.kill()
                leave("     left  at once", INTERRUPTED if number == signal.SIGINT else TERMINATED)
            loop.call_soon_threadsafe(self._ending.set)

        stack = ExitStack()
        stack.enter_context(handling(signal.SIGINT, end))
        stack.enter_context(handling(signal.SIGTERM, end))
        return stack

    async def supervise(self) -> int:
        """Start all, keep them running, drain them when told to, and return the exit code."""
        async with asyncio.TaskGroup() as group:
            for name in self._parts:
                group.create_task(self._keep(name), name=f"keep {name}")
            await self._ending.wait()
            for process in self._running.values():
                with suppress(ProcessLookupError):
                    process.terminate()
        return USAGE if self._unusable else 0

    async def _keep(self, name: str) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._ending.is_set():
            began = time.monotonic()
            code = await self._run(name)
            if self._ending.is_set():
                return
            if code == USAGE:  # it would say the same again
                self._unusable = True
                self._ending.set()
                return
            pause_s = _FIRST_PAUSE_S if time.monotonic() - began > _STEADY_S else pause_s
            how = f"by signal {-code}" if code < 0 else f"with {code}"
            self._say(line("ended", f"{name} {how}; it starts again in {pause_s:g} s", "yellow"))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._ending.wait()
            pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)

    async def _run(self, name: str) -> int:
        # Its standard input ends with us, however we end, and it drains then. A session of its
        # own: Ctrl-C on the terminal is for the supervisor.
        paths = [_PACKAGES, *filter(None, [os.environ.get("PYTHONPATH")])]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "orchestrator.cli.main"),
            *(*self._parts[name], "--until-eof"),
            stdin=PIPE,
            stderr=PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self._running[name] = process
        if self._ending.is_set():
            process.terminate()
        assert process.stderr is not None
        head = click.style(f"{name:>{self._width}}", fg=self._color[name])
        async for told in process.stderr:
            self._say(f"{head} │{told.decode(errors='replace').rstrip()}")
        code = await process.wait()
        del self._running[name]
        return code
