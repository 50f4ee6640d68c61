"""The command ``cadenza``: exit codes, and errors without tracebacks."""

from __future__ import annotations

import sys

from orchestrator.import_guard import guard_or_exit

guard_or_exit()

import io
import os
from typing import Any

import click

from orchestrator.cli.commands import cli
from orchestrator.cli.exits import FAILED, INTERRUPTED, USAGE, exit_of
from orchestrator.cli.signals import ignore_interrupts, leave_on_interrupt


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show must not end a run
            stream.reconfigure(errors="backslashreplace")
    color = False if os.environ.get("NO_COLOR") else None  # https://no-color.org
    with leave_on_interrupt():
        code = _run(arguments, color)
    ignore_interrupts()
    sys.exit(code)


def _run(arguments: list[str] | None, color: bool | None) -> int:
    try:
        code: Any = cli.main(arguments, "cadenza", standalone_mode=False, color=color)
        sys.stdout.flush()
    except click.ClickException as exc:
        exc.show()
        return USAGE
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; nothing more can be told, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as exc:
        told = exit_of(exc)
        if told is None:
            raise
        click.echo(f"{click.style('cadenza', fg='red')}: {exc}", err=True, color=color)
        return told
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
