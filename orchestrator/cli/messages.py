"""What the model of a subtask saw: its requests, made again from the journal.

The real agent goes over the recorded replies and results once more. Nothing is asked and no tool is
called, so what it would send is what it did send.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict

import click

from agents.assignment import Assignment
from agents.base import Agent
from agents.content import Text
from agents.journal import Entry, VolatileJournal
from agents.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    UserMessage,
    message_to_json,
    messages_to_json,
)
from agents.models.base import ModelRequest
from agents.react import ReActAgent
from orchestrator.advance import RunView
from orchestrator.app import Source
from orchestrator.brief import assignment
from orchestrator.cli.sources import pinned
from orchestrator.errors import UsageError
from orchestrator.plan_review import ReviewedPlanner
from orchestrator.settings_errors import suggest
from orchestrator.state import Event, RunState
from orchestrator.store.base import RunRow, RunStore
from orchestrator.team import Ingredients, build_team, descriptions, names_of


@asynccontextmanager
async def team_of(source: Source) -> AsyncIterator[tuple[dict[str, Agent], dict[str, str]]]:
    """Build the agents of a pipeline, without a run; yields them and what others are told."""
    ingredients = Ingredients(source.folder, source.objects, source.resources)
    agents = await asyncio.to_thread(
        build_team, source.settings, ingredients, names_of(source.settings)
    )
    try:
        yield agents, await asyncio.to_thread(descriptions, source.settings, ingredients)
    finally:
        for agent in agents.values():
            await agent.aclose()


def that_asks(agents: dict[str, Agent], name: str) -> ReActAgent | ReviewedPlanner:
    """Return the agent of a name.

    Raises:
        UsageError: There is none, or it asks no model.
    """
    agent = agents.get(name)
    if agent is None:
        raise UsageError(f"no agent is named {name!r}; {suggest(name, agents)}")
    if not isinstance(agent, ReActAgent | ReviewedPlanner):
        raise UsageError(f"agent {name!r} is a function; it asks no model")
    return agent


def recorded(lines: Sequence[Entry] = ()) -> VolatileJournal:
    """Return a journal in which lines are recorded; whoever wants to do something is stopped."""
    journal = VolatileJournal()
    journal.lines, journal.verdict = list(lines), "cancelled"
    return journal


def to_json(request: ModelRequest, *, replied: bool = True) -> str:
    """Return a request as a JSON line."""
    told = {
        **asdict(request.key),
        "replied": replied,
        "messages": messages_to_json(request.messages),
        "tools": [asdict(tool) for tool in request.tools],
        "tool_choice": request.tool_choice,
        "stop": list(request.stop),
        "response_schema": request.response_schema,
    }
    return json.dumps(told, ensure_ascii=False)


async def messages_of(
    store: RunStore, row: RunRow, events: list[Event], subtask: str, *, as_json: bool = False
) -> list[str]:
    """Return every request that the model of a subtask was sent, as lines.

    Raises:
        UsageError: No such subtask, it asks no model, or its agent cannot be built any more.
    """
    spawned = {e.data["subtask"]: e.data["agent"] for e in events if e.type == "subtask.spawned"}
    name = _full_name(subtask, list(spawned))
    async with team_of((await pinned(store, row)).source) as (agents, team):
        agent = that_asks(agents, spawned[name])
        asked: list[tuple[ModelRequest, bool]] = []
        for work in await _assignments(store, events, name, team):
            lines = await store.journal(row.run, name, generation=work.generation)
            replied = {e.data["turn"] for e in lines if e.kind == "model_reply"}
            requests = await agent.requests(work, recorded(lines))
            asked += [(request, request.key.call in replied) for request in requests]
    if not asked:
        raise UsageError(f"subtask {name!r} has asked nothing yet")
    if as_json:
        return [to_json(request, replied=replied) for request, replied in asked]
    return rendered(asked)


def _full_name(wanted: str, subtasks: list[str]) -> str:
    ends = [s for s in subtasks if s.rsplit("/", 1)[-1] == wanted]
    if wanted in subtasks:
        return wanted
    if len(ends) == 1:
        return ends[0]
    raise UsageError(f"the run has no subtask {wanted!r}; {suggest(wanted, subtasks)}")


async def _assignments(
    store: RunStore, events: list[Event], subtask: str, team: dict[str, str]
) -> list[Assignment]:
    """Return the last assignment of each journal generation, from the ledger up to there."""
    view = RunView(RunState())
    found: dict[int, Assignment] = {}
    for event in events:
        view.fold([event])
        if event.type == "subtask.dispatched" and event.data["subtask"] == subtask:
            work = await assignment(store, view.state, view.brief, subtask=subtask, team=team)
            found[work.generation] = work
    return list(found.values())


def rendered(asked: Sequence[tuple[ModelRequest, bool]]) -> list[str]:
    """Return requests, and whether each was replied to, as people read them.

    Of a request that goes on from the one before, only what is new is shown.
    """
    lines: list[str] = []
    before: tuple[Message, ...] = ()
    for number, (request, replied) in enumerate(asked, 1):
        known = len(before) if request.messages[: len(before)] == before else 0
        title = _title(request, known) + ("" if replied else " · NO REPLY was recorded")
        lines.append(click.style(f"━━ request {number} · {title}", bold=True))
        for message in request.messages[known:]:
            lines += ["", click.style(f"── {_who(message)}", fg="cyan"), *_text(message)]
        lines.append("")
        before = request.messages
    return lines


def _title(request: ModelRequest, known: int) -> str:
    title = f"{request.key.agent} · {len(request.messages)} messages"
    if known:
        title += f", the first {known} as before"
    elif request.tools:
        title += f" · tools: {', '.join(tool.name for tool in request.tools)}"
    return title + (" · may call no tool" if request.tool_choice == "none" else "")


def _who(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return f"tool {message.name} ({message.call_id})"
    return str(message_to_json(message)["role"])


def _text(message: Message) -> list[str]:
    if isinstance(message, UserMessage):
        return [
            p.text if isinstance(p, Text) else f"[{p.media_type} {p.name}]" for p in message.content
        ]
    if not isinstance(message, AssistantMessage):
        return [message.text]
    calls = [
        f"→ {call.name} {json.dumps(call.arguments, ensure_ascii=False)} ({call.id})"
        for call in message.tool_calls
    ]
    return [*([message.text] if message.text else []), *calls]
