"""The agents of a pipeline, built from its settings; and the models they ask."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents.abilities import REPORT_FINDING
from agents.base import Agent
from agents.dialects.base import Dialect
from agents.dialects.native import NativeDialect
from agents.dialects.prompts import Prompts, load_prompts
from agents.dialects.text import TextDialect
from agents.errors import ToolDefinitionError
from agents.function import FunctionAgent
from agents.kinds import PROFILES, limits_for
from agents.limits import Spans
from agents.models.base import Model, ModelSettings
from agents.models.build import build_model
from agents.outputs import ModelOutput, OutputType, SchemaOutput, TextOutput
from agents.people import ASK_HUMAN
from agents.react import ReActAgent
from agents.redaction import Redactor
from agents.stops import StopCondition
from agents.toolbox.registry import BUILT_IN, build_tools, common_options
from agents.tools import Tool
from orchestrator.plan import PlanOutput
from orchestrator.plan_review import ReviewedPlanner
from orchestrator.references import resolve
from orchestrator.section import secret_name
from orchestrator.settings import (
    PLANNER,
    SYNTHESIZER,
    AgentEntry,
    ModelEntry,
    Output,
    PipelineSettings,
    SynthesizerEntry,
)
from orchestrator.settings_errors import SettingsError, suggest


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a team is built from beside its settings.

    Attributes:
        folder: The pipeline's folder: references and relative paths start here.
        objects: Python objects by the reference that stands for them in the settings.
        resources: Opened resources by name, for tools and functions.
        spans: Gives each agent, by name, the spans of its calls.
        record: File of JSON lines to record model replies in, or None.
    """

    folder: Path
    objects: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    spans: Callable[[str], Spans] | None = None
    record: Path | None = None

    def resolve(self, reference: str) -> Any:
        """Return the object of a reference."""
        if reference in self.objects:
            return self.objects[reference]
        return resolve(reference, self.folder)


def descriptions(settings: PipelineSettings, ingredients: Ingredients) -> dict[str, str]:
    """Return what planners and colleagues are told of each agent."""
    told = {}
    for name, entry in settings.agents.items():
        text = entry.description
        if not text and entry.use is not None:
            text = _function(name, entry, ingredients).description
        told[name] = text or entry.instructions.strip().partition("\n")[0] or name
    return told


def names_of(settings: PipelineSettings) -> tuple[str, ...]:
    """Return the names of all agents of a pipeline, its planner and synthesizer included."""
    planner = () if settings.planner is None else (PLANNER,)
    own = isinstance(settings.synthesizer, SynthesizerEntry)
    return (*settings.agents, *planner, *((SYNTHESIZER,) if own else ()))


def build_team(
    settings: PipelineSettings, ingredients: Ingredients, wanted: Collection[str]
) -> dict[str, Agent]:
    """Build agents of a pipeline; its planner and synthesizer are among them.

    It reads files and user modules: call it off the event loop.

    Args:
        settings: The pipeline.
        ingredients: What agents are built from.
        wanted: Names of the agents to build; see ``names_of``.

    Raises:
        SettingsError: A reference, tool, schema or model cannot be used; it says which and why.
    """
    builder = _Builder(settings, ingredients)
    team: dict[str, Agent] = {
        name: builder.agent(name, entry)
        for name, entry in settings.agents.items()
        if name in wanted
    }
    if settings.planner is not None and PLANNER in wanted:
        team[PLANNER] = builder.planner()
    if isinstance(settings.synthesizer, SynthesizerEntry) and SYNTHESIZER in wanted:
        entry = AgentEntry(
            model=settings.synthesizer.model,
            instructions=settings.synthesizer.instructions,
            language=settings.synthesizer.language,
            kind="model",
            output=settings.output,
        )
        team[SYNTHESIZER] = builder.agent(SYNTHESIZER, entry)
    return team


def model_settings(entry: ModelEntry) -> ModelSettings:
    """Return what an adapter takes; the key is read from the environment here."""
    values = entry.model_dump(exclude={"fallbacks", "api_key", "language", "use"})
    key = None if entry.api_key is None else os.environ.get(secret_name(entry.api_key))
    return ModelSettings(**values, api_key=key)


class _Builder:
    def __init__(self, settings: PipelineSettings, ingredients: Ingredients) -> None:
        self._settings = settings
        self._with = ingredients
        self._models: dict[str, Model] = {}
        self._redact = Redactor().redact
        folder = None if settings.prompts is None else ingredients.folder / settings.prompts
        try:
            self._prompts: Prompts = load_prompts(folder)
        except ValueError as exc:
            raise SettingsError(str(exc)) from exc
        self._reports = {kind for a in settings.agents.values() for kind in a.reacts_to} - {"task"}

    def model(self, wanted: str | None) -> Model:
        alias = self._settings.model_alias(wanted)
        if alias not in self._models:
            self._models[alias] = self._build_model(alias)
        return self._models[alias]

    def _build_model(self, alias: str) -> Model:
        entry = self._entry(alias)
        if entry.model in self._with.objects:
            model: Model = self._with.objects[entry.model]
            return model
        if entry.use is not None:
            made: Model = self._with.resolve(entry.use)(model_settings(entry))
            return made
        fallbacks = [model_settings(self._entry(other)) for other in entry.fallbacks]
        try:
            return build_model(
                model_settings(entry),
                fallbacks,
                folder=self._with.folder,
                record=self._with.record,
            )
        except (ValueError, OSError) as exc:
            raise SettingsError(f"model {alias!r} cannot be used: {exc}") from exc

    def _entry(self, alias: str) -> ModelEntry:
        return self._settings.models.get(alias) or ModelEntry(model=alias)

    def agent(self, name: str, entry: AgentEntry) -> Agent:
        if entry.sort == "function":
            function = _function(name, entry, self._with)
            return function.with_options(name=name, resources=self._with.resources)
        model = self.model(entry.model)
        profile = PROFILES[entry.profile]
        limits = limits_for(
            "model" if entry.sort == "model" else "react",
            profile=entry.profile,
            depth=entry.depth,
            budget=entry.budget.budget(),
            max_iterations=entry.max_iterations,
        )
        return ReActAgent(
            name,
            model,
            dialect=self._dialect(model),
            description=entry.description,
            instructions=entry.instructions,
            tools=profile.keep(self._tools(name, entry)),
            limits=limits,
            stops=self._stops(name, entry),
            output=self._output(name, entry.output or self._answer_type(name)),
            expect_tools=entry.expect_tools,
            reports=self._kinds(entry),
            can_ask=entry.can_ask if profile.talks else (),
            can_hand_off=entry.can_hand_off if profile.talks else (),
            can_ask_human=entry.ask_human and profile.talks,
            language=self._language(entry),
            resources=self._with.resources,
            approval_s=self._settings.limits.approval_s,
            spans=self._with.spans(name) if self._with.spans else None,
            redact=self._redact,
        )

    def _kinds(self, entry: AgentEntry) -> tuple[str, ...]:
        """Kinds of findings that the agent may report: those that others react to."""
        wanted = self._reports - set(entry.reacts_to) if entry.sort == "react" else ()
        return tuple(sorted(wanted))

    def planner(self) -> Agent:
        entry = self._settings.planner
        assert entry is not None
        model = self.model(entry.model)
        output = PlanOutput(tuple(self._settings.agents), max_subtasks=entry.max_subtasks)
        planner = ReActAgent(
            PLANNER,
            model,
            dialect=self._dialect(model),
            description="decomposes the task",
            instructions=entry.instructions,
            limits=limits_for("model", budget=AgentEntry().budget.budget()),
            output=output,
            language=entry.language,
            spans=self._with.spans(PLANNER) if self._with.spans else None,
            redact=self._redact,
        )
        if not entry.review:
            return planner
        return ReviewedPlanner(planner, output=output, expires_s=self._settings.limits.approval_s)

    def _dialect(self, model: Model) -> Dialect:
        kind = TextDialect if model.dialect == "text" else NativeDialect
        return kind(self._prompts)

    def _language(self, entry: AgentEntry) -> Any:
        if entry.language != "auto":
            return entry.language
        return self._entry(self._settings.model_alias(entry.model)).language

    def _answer_type(self, name: str) -> Output | None:
        """The pipeline's output is the synthesizer's, or that of a lone agent."""
        writes = name == self._settings.synthesizer or (
            len(self._settings.agents) == 1 and self._settings.synthesizer is None
        )
        return self._settings.output if writes else None

    def _tools(self, name: str, entry: AgentEntry) -> list[Tool]:
        tools: list[Tool] = []
        for item in entry.tools:
            word, options = (item, {}) if isinstance(item, str) else next(iter(item.items()))
            try:
                tools += self._tool(word, options)
            except ToolDefinitionError as exc:
                raise SettingsError(f"agent {name!r}: {exc}") from exc
        names = [tool.name for tool in tools]
        names += [REPORT_FINDING] if self._kinds(entry) else []
        names += [ASK_HUMAN] if entry.ask_human else []
        for expected in entry.expect_tools:
            if expected not in names:
                hint = suggest(expected, names)
                message = f"agent {name!r} expects the tool {expected!r}, which it does not have"
                raise SettingsError(message, hint=hint)
        return tools

    def _tool(self, word: str, options: Mapping[str, Any]) -> tuple[Tool, ...]:
        if ":" not in word:
            if word not in BUILT_IN:
                hint = suggest(word, BUILT_IN) or "write module:function for a tool of your own"
                raise SettingsError(f"there is no built-in tool {word!r}", hint=hint)
            return build_tools(word, options, self._with.folder)
        found = self._with.resolve(word)
        if not isinstance(found, Tool):
            hint = "put @tool above the function"
            raise SettingsError(f"{word!r} is not a tool but a {type(found).__name__}", hint=hint)
        return (found.with_options(**common_options(word, options)) if options else found,)

    def _stops(self, name: str, entry: AgentEntry) -> list[StopCondition]:
        found = []
        for reference in entry.stops:
            stop = self._with.resolve(reference)
            if isinstance(stop, type):
                stop = stop()
            if not hasattr(stop, "check"):
                hint = "give it a method check(state) -> str | None"
                message = f"agent {name!r}: {reference!r} is not a stop condition"
                raise SettingsError(message, hint=hint)
            found.append(stop)
        return found

    def _output(self, name: str, output: Output | None) -> OutputType:
        if output is None:
            return TextOutput()
        try:
            if isinstance(output, Mapping):
                return SchemaOutput(dict(output))
            if ":" not in output:
                text = (self._with.folder / output).read_text(encoding="utf-8")
                return SchemaOutput(json.loads(text))
        except (OSError, ValueError) as exc:
            raise SettingsError(f"agent {name!r}: the output schema: {exc}") from exc
        found = self._with.resolve(output)
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            hint = "name a subclass of pydantic.BaseModel"
            raise SettingsError(f"agent {name!r}: {output!r} is not a model class", hint=hint)
        return ModelOutput(found)


def _function(name: str, entry: AgentEntry, ingredients: Ingredients) -> FunctionAgent:
    assert entry.use is not None
    found = ingredients.resolve(entry.use)
    if isinstance(found, FunctionAgent):
        return found
    if callable(found):
        try:
            return FunctionAgent(found, name=name)
        except ToolDefinitionError as exc:
            raise SettingsError(f"agent {name!r}: {exc}") from exc
    hint = "name a function, or put @agent above one"
    raise SettingsError(f"agent {name!r}: {entry.use!r} is not a function", hint=hint)
