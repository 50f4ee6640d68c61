"""Loading a pipeline: file, overrides, validation; every error names its line."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from orchestrator.overrides import apply_overrides
from orchestrator.section import secret_name
from orchestrator.settings import PipelineSettings
from orchestrator.settings_checks import check_settings
from orchestrator.settings_errors import Problem, SettingsError, suggest
from orchestrator.yaml_source import YamlPath, YamlSource, read_yaml

_ErrorDetails = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    """A pipeline and where it came from.

    Attributes:
        settings: What the file says, with overrides.
        path: The file, absolute.
        folder: Its folder: user modules and relative paths start here.
        text_hash: SHA-256 of the file's bytes.
    """

    settings: PipelineSettings
    path: Path
    folder: Path
    text_hash: str


def load_settings(
    path: str | Path,
    *,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> LoadedPipeline:
    """Load a pipeline file.

    Args:
        path: The file.
        env: Environment for ``${VAR}`` and ``CADENZA_*``; the process's own when not given.
        overrides: Dotted path to value, from flags; they win over the environment.

    Raises:
        SettingsError: With everything that is wrong, up to ten.
    """
    env = os.environ if env is None else env
    shown, absolute = str(path), Path(path).absolute()
    try:
        data = absolute.read_bytes()
    except OSError as exc:
        message = f"cannot be read: {exc.strerror}"
        hint = "make one with `cadenza new`, or name another file"
        raise SettingsError(message, shown, hint=hint) from exc
    source = read_yaml(data, shown, env=env, verbatim=_is_secret)
    problems = apply_overrides(source, env=env, flags=overrides or {})
    if problems:
        raise SettingsError.of(problems)
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", absolute.stem).lstrip("-_0123456789")
    source.value.setdefault("name", stem[:64] or "pipeline")
    settings = validate_settings(source)
    problems = [*_unset_secrets(source, settings, env)]
    if problems:
        raise SettingsError.of(problems)
    text_hash = hashlib.sha256(data).hexdigest()
    return LoadedPipeline(settings, absolute, absolute.parent, text_hash)


def validate_settings(source: YamlSource) -> PipelineSettings:
    """Check a parsed pipeline file.

    Raises:
        SettingsError: With everything that is wrong, up to ten.
    """
    try:
        settings = _validate(source)
    except ValidationError as exc:
        raise SettingsError.of(_problems(source, exc)) from None
    conflicts = check_settings(settings)
    if conflicts:
        found = [source.problem(c.path, c.message, hint=c.hint, key=c.key) for c in conflicts]
        raise SettingsError.of(sorted(found, key=_line))
    return settings


def _validate(source: YamlSource) -> PipelineSettings:
    try:
        return PipelineSettings.model_validate(source.value)
    except ValidationError as exc:
        # ${MODEL} may hold 4711 where a string is expected: then it is the text, not a number.
        texts = {
            _path(source.value, error["loc"])
            for error in exc.errors(include_url=False)
            if error["type"] == "string_type"
        } & source.written.keys()
        if not texts:
            raise
        for path in texts:
            here = source.value
            for part in path[:-1]:
                here = here[part]
            here[path[-1]] = source.written.pop(path)
    return _validate(source)


def _is_secret(path: YamlPath) -> bool:
    in_model = len(path) == 3 and path[0] == "models" and path[2] == "api_key"
    return in_model or path == ("bus", "sasl", "password")


def _unset_secrets(
    source: YamlSource, settings: PipelineSettings, env: Mapping[str, str]
) -> Iterator[Problem]:
    secrets: dict[YamlPath, str | None] = {
        ("models", alias, "api_key"): model.api_key for alias, model in settings.models.items()
    }
    if settings.bus.sasl is not None:
        secrets["bus", "sasl", "password"] = settings.bus.sasl.password
    for path, secret in secrets.items():
        if secret is not None and not env.get(name := secret_name(secret)):
            message = f"the environment variable {name} is not set"
            yield source.problem(path, message, hint=f"export {name}=…")


def _path(tree: Any, loc: tuple[str | int, ...]) -> YamlPath:
    """Return the part of a pydantic location that is in the tree, without names of types."""
    path: YamlPath = ()
    for part in loc:
        inside = isinstance(tree, dict) and part in tree
        inside = inside or (isinstance(tree, list) and isinstance(part, int) and part < len(tree))
        if inside and part != "[key]":
            path, tree = (*path, part), tree[part]
    return path


def _problems(source: YamlSource, exc: ValidationError) -> list[Problem]:
    errors = [(_path(source.value, e["loc"]), e) for e in exc.errors(include_url=False)]
    found: dict[YamlPath, list[Problem]] = {}
    for path, error in errors:
        # A union complains once for each of its types; the one that went deeper is meant.
        deeper = any(len(other) > len(path) and other[: len(path)] == path for other, _ in errors)
        if not (deeper and str(error["type"]).endswith("_type")):
            found.setdefault(path, []).append(_problem(source, path, error))
    problems = []
    for path, several in found.items():
        prefix = f"{_dotted(path)}: "
        if all(problem.message.startswith(prefix) for problem in several):
            texts = dict.fromkeys(problem.message.removeprefix(prefix) for problem in several)
            several = [replace(several[0], message=prefix + " or ".join(texts))]
        problems += several
    return sorted(problems, key=_line)


def _line(problem: Problem) -> tuple[int, int]:
    return problem.line or 0, problem.column or 0


def _dotted(path: YamlPath) -> str:
    return ".".join(str(part) for part in path)


def _problem(source: YamlSource, path: YamlPath, error: _ErrorDetails) -> Problem:
    kind, dotted = error["type"], _dotted(path)
    if kind == "extra_forbidden":
        known = _keys_at(path[:-1])
        where = f" in {_dotted(path[:-1])}" if len(path) > 1 else ""
        message = f"unknown key {path[-1]!r}{where}"
        return source.problem(path, message, hint=suggest(str(path[-1]), known), key=True)
    if kind == "missing":
        message = f"the key {error['loc'][-1]!r} is missing{f' in {dotted}' if dotted else ''}"
        return source.problem(path, message, key=True)
    if _is_secret(path):
        hint = "write ${NAME} and keep the key in the environment variable NAME"
        return source.problem(path, "a key does not belong in the file", hint=hint)
    if error["loc"][-1] == "[key]":
        message, hint = f"{path[-1]!r} is no name", "letters, digits, - and _; a letter first"
        return source.problem(path, message, hint=hint, key=True)
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return source.problem(path, f"{dotted}: {message}", hint=_hint(kind, error["input"]))


def _hint(kind: str, value: Any) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "quote it"
    if kind == "bool_type":
        return "write true or false"
    if kind == "string_pattern_mismatch":
        return "see `cadenza schema` for what is allowed"
    return ""


def _leaves(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin in (Union, UnionType, Annotated):
        args = get_args(annotation)
        for arg in args[:1] if origin is Annotated else args:
            yield from _leaves(arg)
    else:
        yield annotation


def _keys_at(path: YamlPath) -> set[str]:
    """Return the keys that a mapping at this path may have."""
    kinds: list[Any] = [PipelineSettings]
    for part in path:
        inner: list[Any] = []
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                field = kind.model_fields.get(str(part))
                inner += [] if field is None else _leaves(field.annotation)
            elif get_origin(kind) in (dict, tuple):
                inner += _leaves(get_args(kind)[-1 if get_origin(kind) is dict else 0])
        kinds = inner
    sections = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
    return {name for section in sections for name in section.model_fields}
