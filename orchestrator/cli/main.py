"""The command ``cadenza``: words, exit codes, and errors without tracebacks.

Commands are imported when they are called, so that help and usage errors come at once.
"""

from __future__ import annotations

import sys

from orchestrator.import_guard import guard_or_exit

guard_or_exit()

import importlib
from typing import Any

import click

from orchestrator.cli.exits import USAGE, exit_of

COMMANDS = {
    "new": ("orchestrator.cli.new", "new", "Make a starter pipeline in a folder."),
    "run": ("orchestrator.cli.run", "run", "Run a task through a pipeline."),
    "runs": ("orchestrator.cli.runs", "runs", "List, show, resume and cancel runs."),
    "approve": ("orchestrator.cli.people", "approve", "Approve what a run asks for."),
    "deny": ("orchestrator.cli.people", "deny", "Deny what a run asks for."),
    "answer": ("orchestrator.cli.people", "answer", "Answer a question of a run."),
    "trace": ("orchestrator.cli.trace", "trace", "Show the trace of a run."),
    "prompts": ("orchestrator.cli.prompts", "prompts", "Show what a model is told."),
    "schema": ("orchestrator.cli.schema", "schema", "Print the JSON Schema of pipeline files."),
    "doctor": ("orchestrator.cli.doctor", "doctor", "Say what is ready to use on this machine."),
    "completion": ("orchestrator.cli.completion", "completion", "Print shell completion."),
}


class LazyGroup(click.Group):
    """Imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, _, told) in COMMANDS.items()])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True
)
@click.version_option(package_name="cadenza-agents", prog_name="cadenza")
def cli() -> None:
    """Run teams of LLM agents: orchestrated, or choreographed over a bus.

    Exit codes: 0 answer, 1 the run failed, 2 bad usage or configuration, 3 stopped by its budget,
    4 waits for a person, 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        code: Any = cli.main(arguments, prog_name="cadenza", standalone_mode=False)
    except click.exceptions.Exit as exc:
        code = exc.exit_code
    except click.ClickException as exc:
        exc.show()
        code = USAGE
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:
        # Whoever read our output has left; there is nobody to tell.
        sys.stderr.close()
        code = 1
    except Exception as exc:
        code, message = exit_of(exc)
        if message is None:
            raise
        click.echo(f"cadenza: {message}", err=True)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
