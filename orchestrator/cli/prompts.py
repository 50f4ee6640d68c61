"""``cadenza prompts``: what an agent tells its model, before anything was said."""

from __future__ import annotations

import asyncio
import json

import click

from agents.assignment import Assignment, SubtaskKind
from orchestrator.cli.messages import Asked, Recorded, rendered, team_of, that_asks
from orchestrator.cli.sources import load_source
from orchestrator.pipeline import Pipeline
from orchestrator.settings import PLANNER, SYNTHESIZER, ModelEntry
from orchestrator.settings_errors import SettingsError


def show(
    pipeline: str,
    agent: str,
    task: str,
    mode: str | None,
    bus: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Print the first request of an agent."""
    source = load_source(pipeline, settings=settings, mode=mode, bus=bus)
    return asyncio.run(_show(Pipeline.of(source), agent, task, as_json=as_json))


async def _show(pipeline: Pipeline, name: str, task: str, *, as_json: bool) -> int:
    source = pipeline.source
    try:
        source = (await pipeline.with_some_model()).source
    except SettingsError:
        source = source.with_model(ModelEntry(model="openai/none"))
        click.echo("there is no model; this is for one with native tool calls", err=True)
    async with team_of(source) as (agents, team):
        found = that_asks(agents, name)
        kind: SubtaskKind = "plan" if name == PLANNER and name not in team else "act"
        if name in (SYNTHESIZER, source.settings.synthesizer):
            kind = "synthesize"
        work = Assignment("", name, 1, kind, name, task, task, team=team)
        asked = [Asked(request) for request in await found.requests(work, Recorded())]
    if as_json:
        click.echo(json.dumps(asked[0].to_json(), ensure_ascii=False))
        return 0
    for line in rendered(asked):
        click.echo(line)
    for tool in asked[0].request.tools:
        click.echo(click.style(f"── tool {tool.name} ", fg="cyan"))
        click.echo(tool.description)
        click.echo(json.dumps(tool.parameters, ensure_ascii=False, indent=2) + "\n")
    if asked[0].request.response_schema is not None:
        click.echo(click.style("── response schema ", fg="cyan"))
        click.echo(json.dumps(asked[0].request.response_schema, ensure_ascii=False, indent=2))
    return 0
