"""What a pipeline's settings must agree on between them: names that name something."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestrator.plan import plan_problems
from orchestrator.section import REFERENCE
from orchestrator.settings import (
    DEFAULT_MODEL,
    PLANNER,
    SYNTHESIZER,
    AgentEntry,
    PipelineSettings,
    SynthesizerEntry,
    static_plan,
)
from orchestrator.settings_errors import suggest

RESERVED_IDS = frozenset({"plan", "synthesis", "task"})
MAX_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class Conflict:
    """Settings that do not agree.

    Attributes:
        path: Where.
        message: What is wrong.
        hint: What to do next.
        key: Whether the key is meant rather than its value.
    """

    path: tuple[str | int, ...]
    message: str
    hint: str = ""
    key: bool = False


def check_settings(settings: PipelineSettings) -> list[Conflict]:
    """Return everything on which the settings do not agree."""
    found = [*_models(settings)]
    for name, entry in settings.agents.items():
        found += _agent(settings, name, entry)
    found += _roles(settings)
    found += _plan(settings)
    found += _output(("output",), settings.output)
    found += _answer(settings)
    return found


def _models(settings: PipelineSettings) -> Iterator[Conflict]:
    for alias, model in settings.models.items():
        if not model.model and model.use is None:
            message = f"the key 'model' is missing in models.{alias}"
            yield Conflict(("models", alias), message, "write provider/name", key=True)
        for i, other in enumerate(model.fallbacks):
            path = ("models", alias, "fallbacks", i)
            if other == alias:
                yield Conflict(path, f"model {alias!r} falls back on itself", "name another")
            else:
                yield from _model(settings, path, other)


def _model(
    settings: PipelineSettings, path: tuple[str | int, ...], wanted: str | None
) -> Iterator[Conflict]:
    aliases = settings.models or {DEFAULT_MODEL}  # discovery finds one
    if wanted is None:
        if len(aliases) > 1 and DEFAULT_MODEL not in aliases:
            hint = f"name one: {', '.join(sorted(aliases))}; or call one {DEFAULT_MODEL!r}"
            yield Conflict(path[:-1], "it is not said which model to use", hint, key=True)
    elif wanted not in aliases and "/" not in wanted:
        yield Conflict(path, f"no model has the alias {wanted!r}", suggest(wanted, aliases))


def _names(
    path: tuple[str | int, ...], names: Iterable[str], known: Iterable[str]
) -> Iterator[Conflict]:
    for i, name in enumerate(names):
        if name not in set(known):
            yield Conflict((*path, i), f"no agent is named {name!r}", suggest(name, known))


def _agent(settings: PipelineSettings, name: str, entry: AgentEntry) -> Iterator[Conflict]:
    path = ("agents", name)
    for section, taken in ((settings.planner, PLANNER), (settings.synthesizer, SYNTHESIZER)):
        if name == taken and isinstance(section, SynthesizerEntry):
            message = f"an agent cannot be named {name!r} beside a {name}: with a model of its own"
            yield Conflict(path, message, "rename the agent", key=True)
    others = [other for other in settings.agents if other != name]
    yield from _names((*path, "can_ask"), entry.can_ask, others)
    yield from _names((*path, "can_hand_off"), entry.can_hand_off, others)
    yield from _output((*path, "output"), entry.output)
    if entry.sort == "function":
        yield from _function(path, entry)
        return
    yield from _model(settings, (*path, "model"), entry.model)
    if entry.use is not None:
        hint = "remove kind, or remove use"
        yield Conflict((*path, "kind"), f"use: names a function, kind: says {entry.kind}", hint)
    if entry.sort == "model" and (entry.tools or entry.expect_tools):
        key = "tools" if entry.tools else "expect_tools"
        hint = "remove kind: model to let it use tools"
        yield Conflict((*path, key), "a plain model call has no tools", hint)


def _function(path: tuple[str | int, ...], entry: AgentEntry) -> Iterator[Conflict]:
    if entry.use is None:
        yield Conflict((*path, "kind"), "kind: function needs use:", "add use: module:function")
    for key in ("model", "instructions", "tools", "expect_tools", "stops"):
        if getattr(entry, key):
            hint = f"remove {key}, or remove use"
            yield Conflict((*path, key), f"a function takes no {key}", hint, key=True)


def _roles(settings: PipelineSettings) -> Iterator[Conflict]:
    if settings.planner is not None:
        yield from _model(settings, ("planner", "model"), settings.planner.model)
        if settings.plan:
            hint = "remove one of them"
            yield Conflict(("plan",), "both plan: and planner: are given", hint, key=True)
    synthesizer = settings.synthesizer
    if isinstance(synthesizer, SynthesizerEntry):
        yield from _model(settings, ("synthesizer", "model"), synthesizer.model)
    elif synthesizer is not None and synthesizer not in settings.agents:
        message = f"no agent is named {synthesizer!r}"
        yield Conflict(("synthesizer",), message, suggest(synthesizer, settings.agents))
    emergent = settings.planner is None and not settings.plan
    if emergent and not any("task" in kinds for kinds in settings.shape().agents.values()):
        message = "nobody would begin: there is no plan, no planner, and no agent reacts to `task`"
        hint = "add `reacts_to: [task]` to the agent that begins, or a planner: or plan: section"
        yield Conflict(("agents",), message, hint, key=True)


def _answer(settings: PipelineSettings) -> Iterator[Conflict]:
    """The type of the answer binds whoever writes it, so somebody must be known to."""
    if settings.output and settings.synthesizer is None and len(settings.agents) > 1:
        message = "nobody is named who would write an answer of this type"
        hint = "name a synthesizer:, or give the output: to the agent that answers"
        yield Conflict(("output",), message, hint)


def _plan(settings: PipelineSettings) -> Iterator[Conflict]:
    plan = static_plan(settings.plan)
    for i, item in enumerate(plan):
        if item.id in RESERVED_IDS:
            yield Conflict(("plan", i, "id"), f"the id {item.id!r} is reserved", "choose another")
    if plan:
        for found in plan_problems(plan, agents=settings.agents, max_subtasks=MAX_STEPS):
            path = ("plan",) if found.index is None else ("plan", found.index, found.key)
            yield Conflict(path, found.message, found.hint)


def _output(path: tuple[str | int, ...], output: object) -> Iterator[Conflict]:
    if isinstance(output, str) and not (re.match(REFERENCE, output) or output.endswith(".json")):
        hint = "write module:Class, a JSON Schema, or the path of a .json file that holds one"
        yield Conflict(path, f"{output!r} is no type of answer", hint)
