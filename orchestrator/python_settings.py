"""A pipeline said in Python: the same settings as in a file, with objects where files name them.

An object becomes a reference in the settings, so that both ways have one form, one check and one
hash; the object itself is kept beside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from agents.function import FunctionAgent
from agents.tools import Tool
from orchestrator.pipeline_file import validate_settings
from orchestrator.section import Section
from orchestrator.settings import PipelineSettings
from orchestrator.settings_errors import SettingsError
from orchestrator.yaml_source import YamlSource

AgentLike = FunctionAgent | Section | Mapping[str, Any]
Agents = Mapping[str, AgentLike] | Sequence[FunctionAgent]


class Objects:
    """Collects Python objects and gives each a reference."""

    def __init__(self) -> None:
        self.by_reference: dict[str, Any] = {}

    def reference(self, value: Any, name: str) -> str:
        """Return a reference that stands for the object; the same object has one."""
        module = getattr(_code(value), "__module__", None) or "python"
        reference = f"{module}:{name}"
        number = 2
        while self.by_reference.get(reference, value) is not value:
            reference, number = f"{module}:{name}_{number}", number + 1
        self.by_reference[reference] = value
        return reference

    def plain(self, value: Any, name: str = "object") -> Any:
        """Return a tree of plain values, objects replaced by references."""
        match value:
            case None | bool() | int() | float() | str():
                return value
            case Section():
                return self.plain(value.model_dump(exclude_defaults=True))
            case Tool():
                return self.reference(value, value.name.replace("-", "_"))
            case Mapping():
                return {key: self.plain(item, str(key)) for key, item in value.items()}
            case Sequence():
                return [self.plain(item, name) for item in value]
            case type() if issubclass(value, BaseModel):
                return self.reference(value, value.__name__)
            case _:
                return self.reference(value, type(value).__name__)

    def agent(self, name: str, agent: AgentLike | Callable[..., Any]) -> Any:
        """Return the settings of one agent."""
        if isinstance(agent, FunctionAgent):
            return {"use": self.reference(agent, agent.function.__name__)}
        if isinstance(agent, Mapping | Section):
            return self.plain(agent, name)
        raise SettingsError(
            f"agent {name!r} is a {type(agent).__name__}",
            hint="give AgentSettings(…), a mapping of settings, or a function under @agent",
        )

    def model(self, model: Any) -> Any:
        """Return the settings of one model."""
        if isinstance(model, str):
            return {"model": model}
        if isinstance(model, Mapping | Section):
            return self.plain(model)
        return {"model": self.reference(model, type(model).__name__)}


def _code(value: Any) -> Any:
    if isinstance(value, FunctionAgent):
        return value.function
    return value if isinstance(value, type) else type(value)


def settings_from_python(
    agents: Agents,
    *,
    sections: Mapping[str, Any],
    models: Mapping[str, Any] | None = None,
) -> tuple[PipelineSettings, dict[str, Any]]:
    """Return the settings, and the objects that their references stand for.

    Raises:
        SettingsError: With everything that is wrong.
    """
    objects = Objects()
    if not isinstance(agents, Mapping):
        named = [(getattr(agent, "name", type(agent).__name__), agent) for agent in agents]
        twice = {name for name, _ in named if [n for n, _ in named].count(name) > 1}
        if twice:
            raise SettingsError(f"two agents are named {min(twice)!r}")
        agents = dict(named)
    tree = {key: objects.plain(value, key) for key, value in sections.items() if value is not None}
    tree["agents"] = {name: objects.agent(name, agent) for name, agent in agents.items()}
    if models:
        tree["models"] = {alias: objects.model(model) for alias, model in models.items()}
    return validate_settings(YamlSource(tree, "")), objects.by_reference
