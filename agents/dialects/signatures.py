"""What a dialect knows of a tool's parameters: names, an example input, a description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from agents.tools import Tool

_PREFIX = re.compile(r"^(?:functions?|tools?|default_api)[.:]")


def _fold(name: str) -> str:
    return re.sub(r"[\s_-]+", "", _PREFIX.sub("", name.strip().casefold()))


def resolve(name: str, tools: Iterable[Tool]) -> Tool | None:
    """Return the tool that ``name`` means, or None.

    Case, ``_``, ``-``, spaces and a ``functions.`` prefix do not matter while one tool fits.
    """
    known = {tool.name: tool for tool in tools}
    if name in known:
        return known[name]
    folded = _fold(name)
    fits = [tool for tool in known.values() if folded and _fold(tool.name) == folded]
    return fits[0] if len(fits) == 1 else None


def tool_names(tools: Sequence[Tool]) -> str:
    """Return the names, comma-separated, for a message to the model."""
    return ", ".join(tool.name for tool in tools) or "none"


def properties(tool: Tool) -> dict[str, Any]:
    """Return the schema of each parameter, by name."""
    found = tool.parameters.get("properties")
    return found if isinstance(found, dict) else {}


def required(tool: Tool) -> tuple[str, ...]:
    """Return the names of the parameters that a call must give."""
    names = tool.parameters.get("required")
    return tuple(n for n in names if isinstance(n, str)) if isinstance(names, list) else ()


def kind_of(schema: Any) -> str:
    """Return the JSON type that a parameter's schema names first, ``string`` if it names none."""
    if not isinstance(schema, dict):
        return "string"
    for option in [schema, *(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]:
        kind = option.get("type") if isinstance(option, dict) else None
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if isinstance(kind, str) and kind != "null":
            return kind
    return "object" if "$ref" in schema or "properties" in schema else "string"


def sole_parameter(tool: Tool) -> str | None:
    """Return the one parameter that a bare argument can only mean, or None."""
    names = required(tool) if len(required(tool)) == 1 else tuple(properties(tool))
    if len(names) != 1 or kind_of(properties(tool).get(names[0])) == "object":
        return None
    return names[0]


def _sample(schema: Any) -> Any:
    options = schema.get("enum") if isinstance(schema, dict) else None
    if isinstance(options, list) and options:
        return options[0]
    kind = kind_of(schema)
    if kind == "array":
        return [_sample(schema.get("items")) if "items" in schema else "…"]
    plain: dict[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "object": {}}
    return plain.get(kind, "…")


def example_input(tool: Tool) -> str:
    """Return a JSON object with the required parameters, as a model should write it."""
    known = properties(tool)
    return json.dumps({n: _sample(known.get(n)) for n in required(tool)}, ensure_ascii=False)


def describe(tools: Iterable[Tool]) -> str:
    """Return the tools as the text dialect's prompt lists them."""
    lines: list[str] = []
    for tool in tools:
        lines.append(f"- {tool.name}: {' '.join(tool.description.split())}")
        lines.append(f"  Action Input: {example_input(tool)}")
        for name, schema in properties(tool).items():
            said = schema.get("description", "") if isinstance(schema, dict) else ""
            optional = name not in required(tool)
            if said or optional:
                note = ", optional" if optional else ""
                lines.append(
                    f"  {name} ({kind_of(schema)}{note}) {' '.join(said.split())}".rstrip()
                )
    return "\n".join(lines)
