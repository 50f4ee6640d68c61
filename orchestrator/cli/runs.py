"""``cadenza runs``: what ran, what happened in it, and how to go on."""

from __future__ import annotations

import json
import time

import click

from orchestrator.canonical import canonical, canonical_hash
from orchestrator.cli.exits import OF_STATUS
from orchestrator.cli.messages import messages_of
from orchestrator.cli.progress import line, short
from orchestrator.cli.run import Drive
from orchestrator.cli.screen import Screen
from orchestrator.cli.show import story_of
from orchestrator.cli.sources import existing_store, pinned, store_option
from orchestrator.facts import CancelAsked
from orchestrator.pipeline import Pipeline
from orchestrator.result import open_inputs, read_result
from orchestrator.store.base import RunRow, RunStore

STATUS_COLORS = {"completed": "green", "running": "cyan", "waiting": "yellow"}


async def list_runs(limit: int, as_json: bool, store: str | None) -> int:
    """List the runs of a run store."""
    async with existing_store(store) as opened:
        rows = await opened.runs(limit=limit)
        for row in rows:
            status = await status_of(opened, row)
            if as_json:
                told = {"run": row.run, "pipeline": row.pipeline, "mode": row.mode}
                more = {"status": status, "created": row.created, "ended": row.ended}
                click.echo(json.dumps({**told, **more, "task": row.task}, ensure_ascii=False))
                continue
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.created))
            state = click.style(f"{status:<11}", fg=STATUS_COLORS.get(status, "red"))
            about = f"{row.mode:<13}  {row.pipeline:<12}  {short(row.task, 60)}"
            click.echo(f"{row.run}  {when}  {state}  {about}")
        if not rows:
            click.echo("there are no runs yet", err=True)
    return 0


async def status_of(store: RunStore, row: RunRow) -> str:
    """Return the status of a run, where one that waits for people is told from a running one."""
    waits = row.status == "running" and open_inputs(await store.ledger(row.run))
    return "waiting" if waits else row.status


async def show(
    run: str, messages: str | None, as_canonical: bool, as_json: bool, store: str | None
) -> int:
    """Tell what happened in a run."""
    async with existing_store(store) as opened:
        row = await opened.run(run)
        events = await opened.ledger(row.run)
        if messages is not None:
            lines = await messages_of(opened, row, events, messages, as_json=as_json)
        elif as_canonical:
            lines = [json.dumps(item, ensure_ascii=False) for item in canonical(events)]
        elif as_json:
            lines = [json.dumps(event.to_json(), ensure_ascii=False) for event in events]
        else:
            lines = await story_of(opened, row, events)
    for text in lines:
        click.echo(text)
    return 0


async def resume(
    run: str, store: str | None, as_json: bool, quiet: bool, verbose: bool, wait: bool
) -> int:
    """Go on with a run where it stands; one that has ended is shown again."""
    screen = Screen(as_json=as_json, quiet=quiet, verbose=verbose, wait=wait)
    async with existing_store(store) as opened:
        row = await opened.run(run)
        events = await opened.ledger(row.run)
        screen.option = await store_option(opened)
        if row.ended is not None:
            screen.say(line("ended", f"run {row.run} has ended; this is its result"))
            result = await read_result(opened, row, events)
            screen.result(result, canonical_hash(events))
            return OF_STATUS[result.status]
        found = await pinned(opened, row)
        claimed = [a for a in (await opened.take(row.run)).attempts if a.state == "claimed"]
    if found.changed:
        kept = f"the run keeps the settings it was submitted with; now otherwise: {found.changed}"
        screen.say(line("note", kept, "yellow"))
    for attempt in claimed:
        lease = f"if it is gone, its lease ends within {found.source.settings.limits.lease_s:g} s"
        screen.say(line("waits", f"a worker has {attempt.subtask}; {lease}"))
    screen.past = row.seq

    async def follow(pipeline: Pipeline) -> str:
        await pipeline.app.runtime.wake(row.run)
        return row.run

    return await Drive(screen, wait=wait).drive(found.source, follow)


async def cancel(run: str, reason: str, store: str | None) -> int:
    """Ask to cancel a run."""
    async with existing_store(store) as opened:
        row = await opened.run(run)
        if row.ended is not None:
            click.echo(f"run {row.run} has already ended: {row.status}", err=True)
            return 0
        await opened.put(row.run, CancelAsked(time.time(), reason), key="cancel")
        option = await store_option(opened)
    click.echo(f"run {row.run} is asked to stop", err=True)
    click.echo(f"unless a process works on it: cadenza runs resume {row.run}{option}", err=True)
    return 0
