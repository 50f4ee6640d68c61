"""What ``cadenza`` exports, as a reference, from the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import cadenza
from tests.docs.tools_part import arguments_of, cell

# In the order of use; a name that is missing here is an error.
GROUPS: dict[str, tuple[str, ...]] = {
    "Pipelines and runs": ("Pipeline", "Run", "RunResult", "Event", "AgentEvent", "Usage"),
    "Tools and agents": (
        "tool", "agent", "RunContext", "Tool", "ToolResult", "RateLimit", "FunctionAgent",
        "StopCondition", "LoopState", "Text", "Blob",
    ),
    "Settings": ("AgentSettings", "ModelSettings"),
    "Models": (
        "Model", "ModelRequest", "ModelReply", "Delta", "SystemMessage", "UserMessage",
        "AssistantMessage", "ToolCall", "ToolMessage", "ScriptedModel",
    ),
    "Buses": ("MemoryBus", "FaultyBus"),
    "Errors": ("CadenzaError", "UsageError", "InputUnknown", "InputClosed", "SettingsError",
               "ToolDenied", "ModelUnavailable", "ModelRefused"),
}  # fmt: skip
_WIDTH = 88
_SEPARATOR = re.compile(r", (?=\*,|/,|\w+: )")  # what stands in brackets has no names with types
_MODULES = re.compile(r"\b(?:collections|typing|agents|bus|orchestrator)(?:\.\w+)*\.(?=\w)")
_SECTIONS = ("Args", "Attributes", "Raises")
# Members that Cadenza's own parts use.
_FOR_CADENZA = frozenset(
    {"of", "source", "app", "with_some_model", "caught_up", "attempt", "aclose"}
)


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
        yield from ("```text", *_wrapped(signature), "```", "")
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
    if name == "Run" or getattr(thing, "_is_protocol", False):
        return ""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return ""
    return f"{'@' if name in ('tool', 'agent') else ''}{name}{_parameters(thing)}"


class _Plain:
    """Prints an annotation as it is written, and a default that has no form as an ellipsis."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _parameters(function: Any) -> str:
    signature = inspect.signature(function)
    shown = [_shown(p) for name, p in signature.parameters.items() if name not in ("self", "cls")]
    plain = inspect.isclass(function) or signature.return_annotation is signature.empty
    returned = signature.empty if plain else _Plain(str(signature.return_annotation))
    text = str(signature.replace(parameters=shown, return_annotation=returned))
    return _MODULES.sub("", text)


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    if isinstance(parameter.annotation, str):
        parameter = parameter.replace(annotation=_Plain(parameter.annotation))
    if parameter.default is not parameter.empty and "<" in repr(parameter.default):
        return parameter.replace(default=_Plain("…"))
    return parameter


def _wrapped(text: str) -> list[str]:
    """Return a signature, one parameter a line where it is long."""
    if len(text) <= _WIDTH:
        return [text]
    head, _, rest = text.partition("(")
    inner, _, tail = rest.rpartition(")")
    return [f"{head}(", *(f"    {part}," for part in _SEPARATOR.split(inner)), f"){tail}"]


def _prose(docstring: str) -> Iterator[str]:
    body = re.split(rf"^(?:{'|'.join(_SECTIONS)}|Returns):$", docstring, flags=re.MULTILINE)[0]
    for paragraph in re.split(r"\n\s*\n", body.strip()):
        text = cell(" ".join(paragraph.split())).replace("\\|", "|")
        yield from re.split(r"(?<=\.) (?=[A-Z`{])", text) if "bus = " not in text else ()
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
        if name.startswith("_") or not about or name in _FOR_CADENZA:
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
