"""``cadenza approve``, ``deny`` and ``answer``: what people say to a run."""

from __future__ import annotations

import asyncio
import getpass
import json
from typing import Any

import click

from agents.assignment import Answer
from orchestrator.cli.options import cwd_hint, existing_store, store_option
from orchestrator.errors import UsageError
from orchestrator.run import provide


@click.command()
@click.argument("run")
@click.argument("input_id", metavar="INPUT")
@click.option("--edit", metavar="JSON", help="Approve with other arguments, as a JSON value.")
@store_option
def approve(run: str, input_id: str, edit: str | None, store: str | None) -> int:
    """Approve INPUT of RUN, as it is or with edited arguments."""
    value: Any = None
    if edit is not None:
        try:
            value = json.loads(edit)
        except ValueError as exc:
            raise UsageError(f"--edit is not JSON: {exc}") from exc
    return asyncio.run(_give(run, input_id, Answer(approved=True, value=value), store))


@click.command()
@click.argument("run")
@click.argument("input_id", metavar="INPUT")
@click.option("--reason", default="", help="Why; the model is told.")
@store_option
def deny(run: str, input_id: str, reason: str, store: str | None) -> int:
    """Deny INPUT of RUN."""
    return asyncio.run(_give(run, input_id, Answer(approved=False, reason=reason), store))


@click.command()
@click.argument("run")
@click.argument("input_id", metavar="INPUT")
@click.argument("text")
@store_option
def answer(run: str, input_id: str, text: str, store: str | None) -> int:
    """Answer the question INPUT of RUN with TEXT."""
    return asyncio.run(_give(run, input_id, Answer(value=text), store))


async def _give(run: str, input_id: str, given: Answer, path: str | None) -> int:
    async with existing_store(path) as store:
        row = await store.run(run)
        await provide(store, row.run, input_id, given, by=_who())
        click.echo(f"recorded for run {row.run}", err=True)
        click.echo(f"if nobody works on it: cadenza runs resume {row.run}{cwd_hint(path)}", err=True)
    return 0


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
