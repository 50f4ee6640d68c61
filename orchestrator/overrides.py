"""Overrides of a pipeline file: ``CADENZA_BUS__KIND=kafka`` and ``--set bus.kind=kafka``.

Flags beat the environment, the environment beats the file. Secrets come as ``${VAR}`` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

from orchestrator.settings import PipelineSettings
from orchestrator.settings_errors import Problem, SettingsError, suggest
from orchestrator.yaml_source import YamlPath, YamlSource, read_scalar, read_yaml

PREFIX = "CADENZA_"
# Read elsewhere, or by convention in pipeline files as ${CADENZA_MODEL}; not settings.
NOT_SETTINGS = frozenset({"CADENZA_MODEL", "CADENZA_JAEGER_URL"})


def apply_overrides(
    source: YamlSource, *, env: Mapping[str, str], flags: Mapping[str, str]
) -> list[Problem]:
    """Write the overrides into a parsed file, and return those that cannot be.

    Args:
        source: Changed in place; remembers what each value came from.
        env: The environment; ``__`` goes one level down, letter case and ``-``/``_`` are equal.
        flags: Dotted path to value.
    """
    problems: list[Problem] = []
    for name, text in sorted(env.items()):
        if name.startswith(PREFIX) and name not in NOT_SETTINGS | source.variables:
            problems += _from_environment(source, name, text)
    for dotted, text in flags.items():
        origin = f"--set {dotted}"
        parts = dotted.split(".")
        if parts[0] not in PipelineSettings.model_fields:
            hint = suggest(parts[0], PipelineSettings.model_fields)
            problems.append(Problem(f"no setting is named {parts[0]!r}", origin, hint=hint))
        else:
            problems += _put(source, parts, text, origin)
    return problems


def _from_environment(source: YamlSource, name: str, text: str) -> Iterable[Problem]:
    parts = name.removeprefix(PREFIX).lower().split("__")
    known = PipelineSettings.model_fields
    if parts[0] in known:
        return _put(source, parts, text, name, fold=True)
    near = suggest(parts[0], known)
    # A lone unknown name with no near one is somebody else's: orchestrators of containers set
    # CADENZA_SERVICE_HOST for a service that is called cadenza.
    if len(parts) == 1 and not near.startswith("did you mean"):
        return ()
    return [Problem(f"no setting is named {parts[0]!r}", name, hint=near)]


def _put(
    source: YamlSource, parts: list[str], text: str, origin: str, *, fold: bool = False
) -> list[Problem]:
    here: Any = source.value
    path: YamlPath = ()
    for part in parts[:-1]:
        key = _key(here, part, fold=fold)
        if key is None:
            return [_nowhere(path, part, origin)]
        path = (*path, key)
        if isinstance(here, dict) and here.get(key) is None:
            here[key] = {}
            source.origins[path] = origin
        # An alias in the file may share the value with another place.
        here[key] = here = copy(here[key])
    key = _key(here, parts[-1], fold=fold)
    if key is None:
        return [_nowhere(path, parts[-1], origin)]
    path = (*path, key)
    try:
        value = read_value(text, origin)
    except SettingsError as exc:
        return [Problem(exc.message, origin, hint="write text, [a, b] or {key: value}")]
    here[key] = value
    _forget(source, path)
    source.origins[path] = origin
    if isinstance(value, bool | int | float):
        source.written[path] = text
    return []


def _nowhere(path: YamlPath, part: str, origin: str) -> Problem:
    where = ".".join(str(step) for step in path)
    return Problem(f"{where} holds nothing named {part!r}", origin)


def _key(here: Any, part: str, *, fold: bool) -> str | int | None:
    if isinstance(here, list):
        return int(part) if part.isdecimal() and int(part) < len(here) else None
    if not isinstance(here, dict) or not part:
        return None
    if fold and part not in here:
        same = [key for key in here if key.lower().replace("-", "_") == part.replace("-", "_")]
        return same[0] if same else part
    return part


def read_value(text: str, origin: str) -> Any:
    """Return what an override's text stands for: a scalar, or a YAML list or mapping."""
    if not text.lstrip().startswith(("[", "{")):
        return read_scalar(text)
    return read_yaml(f"value: {text}".encode(), origin, env={}).value["value"]


def _forget(source: YamlSource, path: YamlPath) -> None:
    for known in (source.origins, source.written, source.places, source.keys):
        for old in [key for key in known if key[: len(path)] == path]:
            del known[old]
