"""``cadenza new``: a starter pipeline that runs at once."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

import click

from orchestrator.errors import UsageError

_SUFFIX = ".txt"  # of Python files, which are the user's and not part of this package


def new(folder: str) -> int:
    """Copy the starter into a folder that is empty or not there yet."""
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise UsageError(f"the folder {folder!r} is not empty; name another")
        for item in sorted(files("orchestrator.cli").joinpath("starter").iterdir(), key=str):
            name = item.name.removesuffix(_SUFFIX)
            (target / name).write_text(item.read_text("utf-8"), "utf-8")
            click.echo(f"{'made':>9}  {target / name}", err=True)
    except OSError as exc:
        raise UsageError(f"the folder {folder!r} cannot be made: {exc.strerror}") from exc
    path = shlex.quote(str(target / "pipeline.yaml"))
    click.echo(f"{'run it':>9}  cadenza run {path}", err=True)
    click.echo(f"{'test it':>9}  pytest {shlex.quote(folder)}", err=True)
    click.echo(f"{'model':>9}  CADENZA_MODEL=ollama/gemma3:4b cadenza run {path}", err=True)
    click.echo(f"{'':>9}  without it the replies are recorded ones", err=True)
    return 0
