"""What a person, or a program with ``--json``, sees of a run while it is driven."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any

import click

from agents.events import AgentEvent
from agents.usage import Usage
from orchestrator.cli.people import how_to_answer
from orchestrator.cli.progress import Progress, line
from orchestrator.result import RunResult
from orchestrator.settings import PipelineSettings
from orchestrator.state import Event
from tracing.jaeger import collector, jaeger_url, page

_COLORS = {"waiting": "yellow", "completed": "green"}


class Screen:
    """Shows a run: the answer on standard output, everything else on standard error.

    Args:
        as_json: Print events and the result as JSON lines on standard output.
        quiet: Print the answer only.
        verbose: Show each turn, and where errors were raised.
        wait: Say how to answer as soon as something is asked.

    Attributes:
        option: The option that finds the run store again, for hints.
        past: Ledger events up to this one are not shown again.
    """

    def __init__(
        self, *, as_json: bool = False, quiet: bool = False, verbose: bool = False, wait: bool
    ) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._wait = wait
        self._progress = Progress(self.say, verbose=verbose)
        self.option = ""
        self.past = 0
        log = logging.getLogger("cadenza")
        log.handlers = [_Said(self, verbose=verbose)]
        log.propagate = False

    def say(self, told: str) -> None:
        """Print a line on standard error."""
        if not self._quiet:
            click.echo(told, err=True)

    def begin(self, run: str, settings: PipelineSettings) -> None:
        """Show what is run, and by what."""
        self.say(
            line("run", f"{run} · {settings.name} · {settings.mode} · {settings.bus.kind} bus")
        )
        for alias, model in settings.models.items():
            if model.model.startswith("scripted/"):
                what = f"{alias}: RECORDED replies ({model.model}); nothing is asked, nothing paid"
                self.say(line("model", what, "yellow"))
                ask = f"--set models.{alias}.model=ollama/gemma3:4b"
                self.say(line("", f"to ask a real one: {ask}, or any other provider/name"))

    def event(self, run: str, event: Event | AgentEvent) -> None:
        """Show one event."""
        if self._as_json:
            click.echo(json.dumps(event.to_json(), ensure_ascii=False))
        elif isinstance(event, Event) and event.seq <= self.past:
            self._progress.learn(event)
            return
        else:
            self._progress.show(event)
        if self._wait and event.type == "input.requested":
            for told in how_to_answer(run, event.data, self.option):
                self.say(told)

    def result(self, result: RunResult, ledger: str) -> None:
        """Show how the run ended, the answer, and where to look further.

        Args:
            result: What the run came to.
            ledger: Hash of its canonical ledger.
        """
        if self._as_json:
            told = {"type": "result", **asdict(result), "ledger": ledger}
            click.echo(json.dumps(told, ensure_ascii=False))
        else:
            self._result(result)
        option = self.option
        self.say(line("cost", cost_of(result.usage)))
        self.say(line("trace", f"{result.trace_id} · cadenza trace show {result.run}{option}"))
        if collector() and (url := jaeger_url()):
            self.say(line("", page(url, result.trace_id)))
        self.say(line("run", f"{result.run} · cadenza runs show {result.run}{option}"))
        self.say(line("ledger", ledger))

    def _result(self, result: RunResult) -> None:
        for warning in result.warnings:
            self.say(line("warning", warning, "yellow"))
        if result.status == "completed":
            click.echo(render(result.output))
            return
        why = result.message or result.stop_reason
        if result.status == "waiting":
            why = "for a person"
        word = line(result.status, why, _COLORS.get(result.status, "red"))
        click.echo(word, err=True)  # also when quiet: it is the answer
        for name, output in result.partial.items():
            self.say(line("partial", f"{name}: {render(output)}"))
        for asked in result.inputs:
            for told in how_to_answer(result.run, asked, self.option):
                click.echo(told, err=True)
        if result.status == "waiting":
            click.echo(line("then", f"cadenza runs resume {result.run}{self.option}"), err=True)


class _Said(logging.Handler):
    """Shows warnings of the libraries as lines; where they were raised only when verbose."""

    def __init__(self, screen: Screen, *, verbose: bool) -> None:
        super().__init__(logging.INFO if verbose else logging.WARNING)
        self._screen = screen
        self._verbose = verbose
        if not verbose:  # what a tool raised is told as an event
            self.addFilter(lambda record: record.name != "cadenza.tools")

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record."""
        text = record.getMessage()
        if record.exc_info and self._verbose:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        elif record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]}"
        self._screen.say(line("log", text, "yellow"))


def cost_of(usage: Usage) -> str:
    """Return what was spent, for people; what is unknown is called so."""
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    tokens = "tokens unknown"
    if usage.input_tokens is not None and usage.output_tokens is not None:
        tokens = f"tokens {usage.input_tokens:,} in, {usage.output_tokens:,} out"
    models = count(usage.llm_calls, "model call")
    return f"{cost} · {models}, {count(usage.tool_calls, 'tool call')} · {tokens}"


def render(output: Any) -> str:
    """Return an answer as a person reads it."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)


def count(n: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"
