"""The built-in tools and the options of ``@tool``, as a reference, from the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents.tool_decorator import tool
from agents.toolbox.registry import BUILT_IN, build_tools

_ENTRY = re.compile(r"^ {4}(\w+): ", re.MULTILINE)


def arguments_of(docstring: str, section: str = "Args") -> dict[str, str]:
    """Return the entries of one section of a Google-style docstring."""
    found = re.search(
        rf"^{section}:\n((?: {{4}}.*\n?|\n)+)", inspect.cleandoc(docstring), re.MULTILINE
    )
    if found is None:
        return {}
    parts = _ENTRY.split(found[1])[1:]
    return {
        name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def cell(text: str) -> str:
    """Return text for a cell of a table."""
    return text.replace("``", "`").replace("|", "\\|")


def default_of(parameter: inspect.Parameter) -> str:
    """Return a default for a table."""
    if parameter.default is parameter.empty:
        return "required"
    if parameter.default in ((), None, ""):
        return ""
    value = parameter.default
    return f"`{value if isinstance(value, str) else repr(value).lower()}`"


def built_in_tools() -> Iterator[str]:
    """Yield a section for each built-in name."""
    with TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "table.csv").write_text("a\n1\n")
        required: dict[str, dict[str, Any]] = {
            "sql": {"path": "table.csv"},
            **{name: {"root": "."} for name in ("files", "search", "write_file")},
        }
        for name, factory in BUILT_IN.items():
            yield f"### {name}"
            yield ""
            made = build_tools(name, required.get(name, {}), base)
            yield "| Tool | Arguments | What the model is told | Effect |"
            yield "|---|---|---|---|"
            for each in made:
                told = " ".join(each.description.partition("\n\n")[0].split())
                shown = ", ".join(f"`{key}`" for key in each.parameters["properties"])
                yield f"| `{each.name}` | {shown} | {cell(told)} | `{each.effect}` |"
            yield ""
            yield from _table(factory, "Option")


def tool_options() -> Iterator[str]:
    """Yield the table of the options of ``@tool``."""
    yield from _table(tool, "Option")


def _table(function: Any, head: str) -> Iterator[str]:
    told = arguments_of(function.__doc__ or "")
    parameters = inspect.signature(function).parameters
    if not told:
        return
    yield f"| {head} | Default | Meaning |"
    yield "|---|---|---|"
    for name, text in told.items():
        if parameters[name].kind is not parameters[name].POSITIONAL_ONLY:
            yield f"| `{name}` | {default_of(parameters[name])} | {cell(text)} |"
    yield ""
