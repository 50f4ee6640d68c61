"""``cadenza runs watch``: follow a run from anywhere; whoever works on it does not notice."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from bus.errors import BusError
from bus.topics import Topics
from orchestrator.app import make_bus
from orchestrator.canonical import canonical_hash
from orchestrator.cli.exits import OF_STATUS
from orchestrator.cli.progress import line
from orchestrator.cli.screen import Screen
from orchestrator.cli.sources import existing_store, pinned, store_option
from orchestrator.errors import CadenzaError
from orchestrator.result import read_result, waits_for_people
from orchestrator.run import POLL_S
from orchestrator.state import RunState, evolve
from orchestrator.store.base import RunRow, RunStore
from orchestrator.stream import Stream


async def watch(
    run: str, store: str | None, as_json: bool, quiet: bool, verbose: bool, wait: bool
) -> int:
    """Show a run until it ends or only people can move it on; Ctrl-C leaves it alone."""
    screen = Screen(as_json=as_json, quiet=quiet, verbose=verbose, wait=wait)
    async with existing_store(store) as opened, AsyncExitStack() as stack:
        row = await opened.run(run)
        screen.option = await store_option(opened)
        try:
            await _hear(screen, stack, opened, row)
        except (BusError, CadenzaError) as exc:
            screen.say(line("note", f"only what the ledger says is shown: {exc}", "yellow"))
        row = await _follow(screen, opened, row, wait=wait)
        events = await opened.ledger(row.run)
        result = await read_result(opened, row, events)
    screen.result(result, canonical_hash(events))
    return OF_STATUS[result.status]


async def _hear(screen: Screen, stack: AsyncExitStack, store: RunStore, row: RunRow) -> None:
    """Show what agents tell, where a broker carries it."""
    source = (await pinned(store, row)).source
    entry = source.settings.bus
    if row.ended is not None or entry.kind == "memory":
        return
    bus = await stack.enter_async_context(make_bus(source))
    topics = Topics(entry.namespace or source.settings.name)
    stream = Stream(bus, topics, source="", store=store.uuid)
    heard = await stream.listen(
        lambda event: screen.event(row.run, event) if event.run == row.run else None
    )
    stack.push_async_callback(heard.close)


async def _follow(screen: Screen, store: RunStore, row: RunRow, *, wait: bool) -> RunRow:
    state = RunState(run=row.run)
    while True:
        row = await store.run(row.run)
        for event in await store.ledger(row.run, after=state.seq):
            evolve(state, event)
            screen.event(row.run, event)
        if row.ended is not None or (waits_for_people(state) and not wait):
            return row
        await asyncio.sleep(POLL_S)
