"""``cadenza completion``: completion for bash, zsh and fish."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the completion script of SHELL; for bash: eval "$(cadenza completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None
    root = ctx.find_root().command
    click.echo(kind(root, {}, "cadenza", "_CADENZA_COMPLETE").source())
    return 0
