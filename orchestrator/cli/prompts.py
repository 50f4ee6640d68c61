"""``cadenza prompts``: what an agent tells its model, before anything was said."""

from __future__ import annotations

import asyncio
import json

import click

from agents.assignment import Assignment, SubtaskKind
from orchestrator.cli.messages import recorded, rendered, team_of, that_asks, to_json
from orchestrator.cli.sources import load_source
from orchestrator.pipeline import Pipeline
from orchestrator.settings import PLANNER, SYNTHESIZER, ModelEntry
from orchestrator.settings_errors import SettingsError


async def show(
    pipeline: str,
    agent: str,
    task: str,
    mode: str | None,
    bus: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Print the first request of an agent."""
    flags = {"mode": mode, "bus.kind": bus}
    source = await asyncio.to_thread(load_source, pipeline, settings, flags)
    try:
        source = (await Pipeline.of(source).with_some_model()).source
    except SettingsError:
        source = source.with_model(ModelEntry(model="openai/none"))
        click.echo("there is no model; this is for one with native tool calls", err=True)
    async with team_of(source) as (agents, team):
        found = that_asks(agents, agent)
        kind: SubtaskKind = "plan" if agent == PLANNER and agent not in team else "act"
        if agent in (SYNTHESIZER, source.settings.synthesizer):
            kind = "synthesize"
        work = Assignment("", agent, 1, kind, agent, task, task, team=team)
        request = (await found.requests(work, recorded()))[0]
    if as_json:
        click.echo(to_json(request))
        return 0
    for line in rendered([(request, True)]):
        click.echo(line)
    parts = [(f"tool {t.name}: {t.description}", t.parameters) for t in request.tools]
    if request.response_schema is not None:
        parts.append(("response schema", request.response_schema))
    for title, part in parts:
        click.echo(click.style(f"── {title}", fg="cyan"))
        click.echo(json.dumps(part, ensure_ascii=False, indent=2) + "\n")
    return 0
