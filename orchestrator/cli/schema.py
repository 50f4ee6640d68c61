"""``cadenza schema``: the JSON Schema of pipeline files, for editors."""

from __future__ import annotations

import json

import click

from orchestrator.pipeline_schema import pipeline_schema


def show() -> int:
    """Print the JSON Schema of pipeline files."""
    click.echo(json.dumps(pipeline_schema(), ensure_ascii=False, indent=2))
    return 0
