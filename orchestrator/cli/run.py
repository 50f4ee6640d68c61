"""``cadenza run``: one task, from here to its answer."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from agents.events import AgentEvent
from orchestrator.app import Source
from orchestrator.canonical import canonical_hash
from orchestrator.cli.exits import INTERRUPTED, OF_STATUS
from orchestrator.cli.options import cwd_hint, load_source, overrides_of, set_option, store_option
from orchestrator.cli.progress import Progress
from orchestrator.errors import UsageError
from orchestrator.pipeline import Pipeline
from orchestrator.result import RunResult
from orchestrator.run import Run, submit
from orchestrator.state import Event


@click.command()
@click.argument("pipeline", type=click.Path(dir_okay=False))
@click.argument("task", required=False)
@click.option("--file", "-f", "files", multiple=True, type=click.Path(), help="A file to work on.")
@click.option("--input", "-i", "inputs", multiple=True, metavar="KEY=VALUE", help="A named value.")
@click.option("--session", help="Session id: runs of one session share a history.")
@click.option("--json", "as_json", is_flag=True, help="Print events and the result as JSON lines.")
@click.option("--quiet", "-q", is_flag=True, help="Print the answer only.")
@click.option("--record", type=click.Path(dir_okay=False), help="Record model replies as JSONL.")
@set_option
@store_option
def run(
    pipeline: str,
    task: str | None,
    files: tuple[str, ...],
    inputs: tuple[str, ...],
    session: str | None,
    as_json: bool,
    quiet: bool,
    record: str | None,
    settings: tuple[str, ...],
    mode: str | None,
    bus: str | None,
    store: str | None,
) -> int:
    """Run TASK through the pipeline file PIPELINE.

    Without TASK the file's own comment line "# task: …" is used; "-" reads the task from standard
    input. The answer goes to standard output, everything else to standard error.
    """
    source = load_source(pipeline, overrides_of(settings, mode, bus, store))
    if record is not None:
        source = source.recording(Path(record).absolute())
    values = dict(_pair(item) for item in inputs)
    text = _task(source, task)
    screen = Screen(as_json=as_json, quiet=quiet, store_hint=cwd_hint(store))

    async def start(opened: Pipeline) -> Run:
        name = await submit(opened.app, text, session=session, files=files, values=values)
        return opened.follow(name)

    return asyncio.run(drive(source, start, screen))


def _pair(item: str) -> tuple[str, str]:
    key, sign, value = item.partition("=")
    if not sign or not key:
        raise UsageError(f"--input {item!r} needs the form key=value")
    return key, value


def _task(source: Source, task: str | None) -> str:
    if task == "-":
        return sys.stdin.read()
    if task is not None:
        return task
    assert source.file is not None
    for line in source.file.read_text(encoding="utf-8").splitlines():
        if line.startswith("# task:"):
            return line.removeprefix("# task:").strip()
    raise UsageError('no task: give one, or a line "# task: …" in the pipeline file')


class Screen:
    """What a person, or a program with ``--json``, sees of a run.

    Args:
        as_json: Print events and the result as JSON lines on standard output.
        quiet: Print the answer only.
        store_hint: Options that find the run store again, for the hints.
    """

    def __init__(self, *, as_json: bool, quiet: bool, store_hint: str) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._hint = store_hint
        self._progress = Progress(self.say)

    def say(self, line: str) -> None:
        """Print a line on standard error."""
        if not self._quiet:
            click.echo(line, err=True)

    def event(self, event: Event | AgentEvent) -> None:
        """Show one event."""
        if self._as_json:
            click.echo(json.dumps(event.to_json(), ensure_ascii=False))
        else:
            self._progress.show(event)

    def result(self, result: RunResult) -> None:
        """Show how the run ended, and the answer."""
        if self._as_json:
            click.echo(json.dumps({"type": "result", **asdict(result)}, ensure_ascii=False))
            return
        for warning in result.warnings:
            self.say(f"  warning  {warning}")
        if result.status == "completed":
            click.echo(render(result.output))
            return
        self.say(f"{result.status:>9}  {result.message or result.stop_reason}")
        for name, output in result.partial.items():
            self.say(f"  partial  {name}: {render(output)}")
        for asked in result.inputs:
            self._how_to_answer(result.run, asked)

    def _how_to_answer(self, run: str, asked: dict[str, Any]) -> None:
        if asked["kind"] == "question":
            self.say(f"   answer  cadenza answer {run} {asked['input']} TEXT{self._hint}")
        else:
            self.say(f"  approve  cadenza approve {run} {asked['input']}{self._hint}")
            self.say(f"  or deny  cadenza deny {run} {asked['input']} --reason WHY{self._hint}")
        self.say(f"     then  cadenza runs resume {run}{self._hint}")

    def footer(self, result: RunResult, canonical: str) -> None:
        """Show cost, trace and where to look further."""
        usage = result.usage
        cost = "unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
        tokens = "unknown"
        if usage.input_tokens is not None and usage.output_tokens is not None:
            tokens = f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"
        calls = f"{usage.llm_calls} model calls, {usage.tool_calls} tool calls"
        self.say(f"     cost  {cost} · {calls} · tokens {tokens}")
        self.say(f"    trace  {result.trace_id} · cadenza trace show {result.run}{self._hint}")
        self.say(f"      run  {result.run} · cadenza runs show {result.run}{self._hint}")
        self.say(f"   ledger  {canonical}")


def render(output: Any) -> str:
    """Return an answer as a person reads it."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)


async def drive(
    source: Source, start: Callable[[Pipeline], Any], screen: Screen
) -> int:
    """Open a pipeline, start or follow a run, show it, and return the exit code."""
    pipeline = await Pipeline.of(source).with_some_model(screen.say)
    async with pipeline:
        run: Run = await start(pipeline)
        settings = pipeline.source.settings
        screen.say(
            f"      run  {run.id} · {settings.name} · {settings.mode} · {settings.bus.kind} bus"
        )
        for alias, model in settings.models.items():
            if model.model.startswith("scripted/"):
                screen.say(f"    model  {alias}: RECORDED replies ({model.model}); nothing is asked")
        interrupts = Interrupts(run, screen)
        with interrupts:
            shown = asyncio.create_task(_show(run, screen), name="progress")
            result = await run.result(wait_for_people=False)
            if interrupts.seen and result.status == "waiting":
                result = await run.result()
            run.detach()
            await run.caught_up()
            shown.cancel()
        screen.result(result)
        ledger = await pipeline.app.store.ledger(run.id)
        screen.footer(result, canonical_hash(ledger))
        return INTERRUPTED if interrupts.seen else OF_STATUS[result.status]


async def _show(run: Run, screen: Screen) -> None:
    async for event in run:
        screen.event(event)


class Interrupts:
    """Ctrl-C once cancels the run and records everything; twice leaves at once.

    SIGTERM leaves the run as it is, for ``cadenza runs resume``.
    """

    def __init__(self, run: Run, screen: Screen) -> None:
        self._run = run
        self._screen = screen
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self.seen = 0

    def __enter__(self) -> Interrupts:
        self._loop.add_signal_handler(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.remove_signal_handler(signal.SIGINT)

    def _interrupted(self) -> None:
        self.seen += 1
        if self.seen > 1:
            self._screen.say(f"  leaving  resume with: cadenza runs resume {self._run.id}")
            raise KeyboardInterrupt
        self._screen.say("   cancel  finishing what cannot be undone; Ctrl-C again leaves at once")
        task = self._loop.create_task(self._run.cancel("interrupted by Ctrl-C"))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
