"""The built-in tools by the names that a pipeline file gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from agents.errors import ToolDefinitionError
from agents.tool_arguments import Arguments, near
from agents.toolbox.calculator import calculator
from agents.toolbox.clock import get_current_date, get_current_time
from agents.toolbox.files import files, write_file
from agents.toolbox.search import search
from agents.toolbox.sql import sql
from agents.tools import Tool


def _calculator() -> tuple[Tool, ...]:
    return (calculator,)


def _clock() -> tuple[Tool, ...]:
    return (get_current_time, get_current_date)


BUILT_IN: Mapping[str, Callable[..., tuple[Tool, ...]]] = {
    "calculator": _calculator,
    "clock": _clock,
    "files": files,
    "search": search,
    "sql": sql,
    "write_file": write_file,
}

# Any tool takes these in a pipeline file.
_COMMON: Mapping[str, TypeAdapter[Any]] = {
    "timeout_s": TypeAdapter(Annotated[float, Field(gt=0)]),
    "max_chars": TypeAdapter(Annotated[int, Field(gt=0)]),
    "needs_approval": TypeAdapter(bool),
}


def common_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that any tool takes, checked; see ``Tool.with_options``.

    Args:
        name: The tool, for errors.
        options: What stands beneath the name.

    Raises:
        ToolDefinitionError: An option is unknown or wrong.
    """
    found = {}
    for option, value in options.items():
        if option not in _COMMON:
            raise ToolDefinitionError(
                f"tool {name!r} has no option {option!r}{near(option, _COMMON)}; "
                f"the options are: {', '.join(_COMMON)}"
            )
        try:
            found[option] = _COMMON[option].validate_python(value)
        except ValidationError as exc:
            why = exc.errors()[0]["msg"]
            raise ToolDefinitionError(f"tool {name!r}: {option}: {why}") from None
    return found


def build_tools(name: str, options: Mapping[str, Any], base: Path) -> tuple[Tool, ...]:
    """Return the tools of one entry of a pipeline's ``tools:``.

    Args:
        name: A key of ``BUILT_IN``.
        options: What stands beneath the name, for example ``{"root": "data"}``; beside each
            factory's own, ``timeout_s``, ``max_chars`` and ``needs_approval`` are taken.
        base: The pipeline's folder, to which relative paths are relative.

    Raises:
        ToolDefinitionError: The name or an option is unknown or wrong, or a file is missing.
    """
    factory = BUILT_IN.get(name)
    if factory is None:
        raise ToolDefinitionError(
            f"there is no built-in tool {name!r}{near(name, BUILT_IN)}; "
            f"the built-in tools are: {', '.join(BUILT_IN)}"
        )
    arguments = Arguments.of(factory)
    own = {k: v for k, v in options.items() if k in arguments.names or k not in _COMMON}
    common = common_options(name, {k: v for k, v in options.items() if k not in own})
    try:
        valid = arguments.validate(own)
    except ValueError as exc:
        raise ToolDefinitionError(f"tool {name!r}: {exc}") from None
    made = factory(**{option: _within(base, value) for option, value in valid.items()})
    return tuple(tool.with_options(**common) if common else tool for tool in made)


def _within(base: Path, value: Any) -> Any:
    if isinstance(value, Path):
        return base / value
    return [_within(base, item) for item in value] if isinstance(value, list) else value
