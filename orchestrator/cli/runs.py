"""``cadenza runs``: what ran, what happened in it, and how to go on."""

from __future__ import annotations

import asyncio
import json
import time

import click

from orchestrator.canonical import canonical
from orchestrator.cli.options import cwd_hint, existing_store, pinned_source, store_option
from orchestrator.cli.run import Screen, drive
from orchestrator.cli.show import messages_of, story_of
from orchestrator.facts import CancelAsked
from orchestrator.pipeline import Pipeline
from orchestrator.result import open_inputs
from orchestrator.run import Run


@click.group()
def runs() -> None:
    """List, show, resume and cancel runs."""


@runs.command("list")
@click.option("--limit", default=20, show_default=True, help="How many, the newest first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
@store_option
def list_runs(limit: int, as_json: bool, store: str | None) -> int:
    """List the runs of a run store."""
    return asyncio.run(_list(limit, as_json, store))


async def _list(limit: int, as_json: bool, path: str | None) -> int:
    async with existing_store(path) as store:
        for row in await store.runs(limit=limit):
            status: str = row.status
            if status == "running" and open_inputs(await store.ledger(row.run)):
                status = "waiting"
            if as_json:
                told = {"run": row.run, "pipeline": row.pipeline, "mode": row.mode}
                more = {"status": status, "created": row.created, "task": row.task}
                click.echo(json.dumps({**told, **more}, ensure_ascii=False))
                continue
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.created))
            task = " ".join(row.task.split())[:60]
            click.echo(
                f"{row.run}  {when}  {status:<11}  {row.mode:<13}  {row.pipeline:<12}  {task}"
            )
    return 0


@runs.command()
@click.argument("run")
@click.option("--messages", metavar="SUBTASK", help="Print what the model of a subtask saw.")
@click.option("--canonical", "as_canonical", is_flag=True, help="Print the canonical ledger.")
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON lines.")
@store_option
def show(
    run: str, messages: str | None, as_canonical: bool, as_json: bool, store: str | None
) -> int:
    """Tell what happened in RUN: plan, who did what with which result, and why it ended."""
    return asyncio.run(_show(run, messages, as_canonical, as_json, store))


async def _show(
    run: str, messages: str | None, as_canonical: bool, as_json: bool, path: str | None
) -> int:
    async with existing_store(path) as store:
        row = await store.run(run)
        events = await store.ledger(row.run)
        if messages is not None:
            lines = await messages_of(store, row, events, messages)
        elif as_canonical:
            lines = [json.dumps(item, ensure_ascii=False) for item in canonical(events)]
        elif as_json:
            lines = [json.dumps(event.to_json(), ensure_ascii=False) for event in events]
        else:
            lines = await story_of(store, row, events)
        for line in lines:
            click.echo(line)
    return 0


@runs.command()
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print events and the result as JSON lines.")
@click.option("--quiet", "-q", is_flag=True, help="Print the answer only.")
@store_option
def resume(run: str, as_json: bool, quiet: bool, store: str | None) -> int:
    """Go on with RUN where it stands; a run that ended is shown again."""
    return asyncio.run(_resume(run, as_json, quiet, store))


async def _resume(run: str, as_json: bool, quiet: bool, path: str | None) -> int:
    async with existing_store(path) as store:
        row = await store.run(run)
        source = await pinned_source(store, row)
    screen = Screen(as_json=as_json, quiet=quiet, store_hint=cwd_hint(path))

    async def follow(pipeline: Pipeline) -> Run:
        await pipeline.app.runtime.wake(row.run)
        return pipeline.follow(row.run)

    return await drive(source, follow, screen)


@runs.command()
@click.argument("run")
@click.option("--reason", default="asked on the command line", help="Why, for the record.")
@store_option
def cancel(run: str, reason: str, store: str | None) -> int:
    """Ask to cancel RUN; whoever works on it stops within one lease."""
    return asyncio.run(_cancel(run, reason, store))


async def _cancel(run: str, reason: str, path: str | None) -> int:
    async with existing_store(path) as store:
        row = await store.run(run)
        if row.ended is not None:
            click.echo(f"run {row.run} has already ended: {row.status}", err=True)
            return 0
        await store.put(row.run, CancelAsked(time.time(), reason), key="cancel")
        click.echo(f"run {row.run} is asked to stop", err=True)
        hint = cwd_hint(path)
        click.echo(f"if nobody works on it: cadenza runs resume {row.run}{hint}", err=True)
    return 0
