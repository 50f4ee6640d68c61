"""``cadenza completion``: completion for bash, zsh and fish, run ids included."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

# By name here too: the run store's own module takes a second to import, at each tab.
DEFAULT_STORE = ".cadenza/runs.db"
_LATEST = "SELECT run, status, task FROM runs ORDER BY created DESC LIMIT 100"


def show(shell: str) -> int:
    """Print the completion script of a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "cadenza", "_CADENZA_COMPLETE").source())
    return 0


def complete_runs(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the latest runs of the store whose ids begin like this."""
    store = ctx.params.get("store") or os.environ.get("CADENZA_STORE__URL") or DEFAULT_STORE
    try:
        uri = f"{Path(store).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=0.2)) as db:
            rows = db.execute(_LATEST).fetchall()
    except sqlite3.Error:
        return []
    return [
        CompletionItem(run, help=f"{status}: {' '.join(task.split())[:50]}")
        for run, status, task in rows
        if run.startswith(incomplete)
    ]
