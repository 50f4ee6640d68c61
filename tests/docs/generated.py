"""The parts of the reference that are written from the code, so that they cannot go stale.

    python -m tests.docs.generated    # writes them anew

A part stands in its page between ``<!-- from the code: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from orchestrator.cli.commands import cli
from tests.docs.page import DOCS
from tests.docs.python_part import python_names
from tests.docs.settings_part import pipeline_keys
from tests.docs.tools_part import built_in_tools, cell, tool_options

_PART = re.compile(r"(<!-- from the code: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def commands() -> Iterator[str]:
    """Yield the reference of the command line."""
    yield from _command(cli, ("cadenza",))


def _command(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
    if len(words) > 1:
        ctx = click.Context(command, info_name=" ".join(words))
        yield f"## {' '.join(words)}"
        yield ""
        yield "```text"
        yield command.get_usage(ctx).removeprefix("Usage: ")
        yield "```"
        yield ""
        about = (command.help or "").replace("\b", "")
        for paragraph in re.split(r"\n\s*\n", about.strip()):
            yield from _paragraph(paragraph)
            yield ""
        yield from _options(command, ctx)
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from _command(found, (*words, name))


def _paragraph(text: str) -> Iterator[str]:
    lines = [line.strip() for line in text.strip().splitlines()]
    if re.match(r"\w+:  ?\S", lines[0]):
        yield from ("```text", *lines, "```")
        return
    # One sentence a line, as everywhere.
    yield from re.split(r"(?<=\.) (?=[A-Z])", " ".join(lines).replace("<", "&lt;"))


def _options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    records = [r for p in command.params if (r := p.get_help_record(ctx)) and r[1]]
    if not records:
        return
    yield "| Option | Meaning |"
    yield "|---|---|"
    for names, about in records:
        shown = ", ".join(f"`{name.strip()}`" for name in names.split(","))
        yield f"| {cell(shown)} | {cell(about)} |"
    yield ""


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "pipeline-keys": pipeline_keys,
    "python-names": python_names,
    "built-in-tools": built_in_tools,
    "tool-options": tool_options,
}


def written(markdown: str) -> str:
    """Return a page with its parts written anew."""

    def part(match: re.Match[str]) -> str:
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(PARTS[match[2]]()).strip())
        return f"{match[1]}\n{text}\n\n{match[4]}"

    return _PART.sub(part, markdown)


def pages_with_parts() -> dict[Path, list[str]]:
    """Return the pages that have parts, with the names of their parts."""
    found = {page: _PART.findall(page.read_text("utf-8")) for page in DOCS.rglob("*.md")}
    return {page: [part[1] for part in parts] for page, parts in found.items() if parts}


if __name__ == "__main__":
    for path in pages_with_parts():
        path.write_text(written(path.read_text("utf-8")), "utf-8")
        print(path.relative_to(DOCS))
