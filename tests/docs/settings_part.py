"""The keys of a pipeline file, as a reference, from the settings themselves."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from orchestrator.bus_settings import BusEntry, SaslEntry, TlsEntry
from orchestrator.section import Section
from orchestrator.settings import (
    AgentEntry,
    BudgetEntry,
    LimitsEntry,
    ModelEntry,
    PipelineSettings,
    PlannerEntry,
    PlanStep,
    SafetyEntry,
    StoreEntry,
    SynthesizerEntry,
    TracingEntry,
)

# Title, section, and what stands before its table.
SECTIONS: tuple[tuple[str, type[Section], str], ...] = (
    ("The file", PipelineSettings, ""),
    ("bus", BusEntry, ""),
    ("tls", TlsEntry, "`tls:` of the bus."),
    ("sasl", SaslEntry, "`sasl:` of the bus."),
    ("store", StoreEntry, ""),
    ("models", ModelEntry, "`models:` maps an alias to each of these."),
    ("agents", AgentEntry, "`agents:` maps a name to each of these."),
    ("planner", PlannerEntry, ""),
    ("plan", PlanStep, "`plan:` is a list of these."),
    ("synthesizer", SynthesizerEntry, "`synthesizer:` is the name of an agent, or this."),
    ("budget", BudgetEntry, "`budget:` of the pipeline bounds a run, that of an agent an attempt."),
    ("limits", LimitsEntry, ""),
    ("safety", SafetyEntry, ""),
    ("tracing", TracingEntry, ""),
)
_TITLES = {section: title for title, section, _ in SECTIONS}
_WORDS = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`", Any: "any"}


def pipeline_keys() -> Iterator[str]:
    """Yield a table for each section."""
    for title, section, before in SECTIONS:
        yield f"## {title}"
        yield ""
        about = (section.__doc__ or "").strip()
        yield from (about, before) if before else (about,)
        yield ""
        yield "| Key | Value | Default | Meaning |"
        yield "|---|---|---|---|"
        for name, field in section.model_fields.items():
            said = " ".join((field.description or "").split())
            cells = (f"`{name}`", _kind(field), _default(field), said)
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
        yield ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or isinstance(value, BaseModel) or value in ("", (), {}):
        return ""
    if isinstance(value, float) and value.is_integer():
        return f"`{value:.0f}`"
    return f"`{json.dumps(value)}`".replace('"', "")


def _kind(field: FieldInfo) -> str:
    bounds = [text for part in field.metadata if (text := _bound(part))]
    return ", ".join([_type(field.annotation), *bounds])


def _bound(part: Any) -> str:
    for name, sign in (("ge", "at least"), ("gt", "more than"), ("le", "at most")):
        if (value := getattr(part, name, None)) is not None:
            return f"{sign} {value}"
    return ""


def _type(annotation: Any) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bounds = [
            text
            for part in args[1:]
            for each in (part, *getattr(part, "metadata", ()))
            if (text := _bound(each))
        ]
        return ", ".join([_type(args[0]), *dict.fromkeys(bounds)])
    if annotation == str | dict[str, dict[str, Any]]:
        return "text or a mapping of one name to its options"
    if origin in (Union, types.UnionType):
        return " or ".join(_type(arg) for arg in args if arg is not type(None))
    if origin is Literal:
        return ", ".join(f"`{arg}`" for arg in args)
    if origin is tuple:
        return f"list of {_type(args[0])}"
    if origin is dict:
        return "mapping" if args[1] is Any else f"mapping of names to {_type(args[1])}"
    if annotation in _TITLES:
        return f"[{_TITLES[annotation]}](#{_TITLES[annotation].replace(' ', '-')})"
    return _WORDS[annotation]
