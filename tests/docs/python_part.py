"""What ``cadenza`` exports, as a reference, from the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import cadenza
from agents.events import AgentEvent
from tests.docs.tools_part import arguments_of, cell

# In the order of use; a name that is missing here is an error.
GROUPS: dict[str, tuple[str, ...]] = {
    "Pipelines and runs": ("Pipeline", "Run", "RunResult", "Event", "AgentEvent", "Usage"),
    "Tools and agents": (
        "tool", "agent", "RunContext", "Tool", "ToolResult", "RateLimit", "FunctionAgent",
        "StopCondition", "LoopState", "Text", "Blob",
    ),
    "Settings": ("AgentSettings", "ModelSettings"),
    "Models": ("Model", "ModelRequest", "ModelReply", "Delta", "ScriptedModel"),
    "Buses": ("MemoryBus", "FaultyBus"),
    "Errors": ("CadenzaError", "UsageError", "InputUnknown", "InputClosed", "SettingsError",
               "ToolDenied"),
}  # fmt: skip
_SECTIONS = ("Args", "Attributes", "Raises")


def python_names() -> Iterator[str]:
    """Yield a section for each exported name."""
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(cadenza.__all__), set(named) ^ set(cadenza.__all__)
    for group, names in GROUPS.items():
        yield f"## {group}"
        yield ""
        for name in names:
            yield from _name(name, getattr(cadenza, name))


def _name(name: str, thing: Any) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    if hasattr(thing, "model_fields"):
        where = "agents" if name == "AgentSettings" else "models"
        yield f"What may stand under [`{where}:`](pipeline-file.md#{where}), as keyword arguments."
        yield ""
        return
    signature = _signature(name, thing)
    if signature:
        yield from ("```text", signature, "```", "")
    yield from _prose(inspect.getdoc(thing) or "")
    yield ""
    for section in _SECTIONS[: 2 if name == "tool" else 3]:
        yield from _entries(section, "" if name == "tool" else thing.__doc__ or "")
    if name == "tool":
        yield "The options are listed in [Tools](tools.md#options-of-tool)."
        yield ""
    if inspect.isclass(thing):
        yield from _methods(thing)


def _signature(name: str, thing: Any) -> str:
    if thing is AgentEvent or getattr(thing, "_is_protocol", False):
        return ""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return ""
    return f"{'@' if name in ('tool', 'agent') else ''}{name}{_parameters(thing)}"


def _parameters(function: Any) -> str:
    text = str(inspect.signature(function))
    text = re.sub(r"<factory>|<object object at \w+>", "…", text)
    text = re.sub(r"'([^']*)'", lambda m: m[1] if m[1] else "''", text)
    text = re.sub(r"\b(?:collections\.abc|typing|agents|bus|orchestrator)(?:\.\w+)*\.(?=\w)", "", text)
    text = re.sub(r"<class '?[\w.]*?(\w+)'?>", r"\1", text)
    return re.sub(r"\((self|cls)(, )?", "(", text)


def _prose(docstring: str) -> Iterator[str]:
    body = re.split(rf"^(?:{'|'.join(_SECTIONS)}|Returns):$", docstring, flags=re.M)[0]
    for paragraph in re.split(r"\n\s*\n", body.strip()):
        text = cell(" ".join(paragraph.split())).replace("\\|", "|")
        yield from re.split(r"(?<=[.:]) (?=[A-Z`{])", text) if "bus = " not in text else ()
        yield ""


def _entries(section: str, docstring: str) -> Iterator[str]:
    found = arguments_of(docstring, section)
    if not found:
        return
    head = {"Args": "Parameter", "Attributes": "Attribute", "Raises": "Raises"}[section]
    yield f"| {head} | Meaning |"
    yield "|---|---|"
    for name, text in found.items():
        yield f"| `{name}` | {cell(text)} |"
    yield ""


def _methods(kind: type) -> Iterator[str]:
    rows = []
    for name, member in vars(kind).items():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        about = inspect.getdoc(getattr(kind, name)) or ""
        if name.startswith("_") or not about:
            continue
        first = cell(" ".join(about.partition("\n\n")[0].split()))
        if isinstance(member, property):
            rows.append(f"| `{name}` | {first} |")
        elif inspect.isfunction(plain):
            word = "await " if inspect.iscoroutinefunction(plain) else ""
            rows.append(f"| `{word}{name}{cell(_parameters(plain))}` | {first} |")
    if rows and not issubclass(kind, Exception):
        yield "| Member | Meaning |"
        yield "|---|---|"
        yield from rows
        yield ""
