"""Arguments of a tool: JSON Schema and validation from a function's signature."""

from __future__ import annotations

import difflib
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from agents.context import RunContext
from agents.errors import ToolDefinitionError

_CONTEXT = re.compile(r"(?:\w+\.)*(?:Optional\[)?(?:\w+\.)*RunContext\]?(?:\s*\|\s*None)?")
_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):[ \t]*$", re.MULTILINE
)
_ITEM = re.compile(r"^(\w+)[ \t]*(?:\([^)\n]*\))?:[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_CONFIG = ConfigDict(extra="forbid", coerce_numbers_to_str=True, arbitrary_types_allowed=False)


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that repeat the names; every character costs the model tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def near(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)``, or nothing when no known name is near."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a function takes, as a model is told of it.

    Attributes:
        names: Parameters a caller may give.
        context: The parameter that receives the ``RunContext``; not in ``names``.
        model: Pydantic model with a neutral field for each parameter, so that a parameter may
            be called ``json`` or ``schema``.
        description: The docstring without its list of arguments.
    """

    names: tuple[str, ...]
    context: str | None
    model: type[BaseModel]
    description: str

    @classmethod
    def of(cls, function: Callable[..., Any], scope: Mapping[str, Any] | None = None) -> Arguments:
        """Read a function's signature and Google-style docstring.

        Args:
            function: Every parameter has a name and a type.
            scope: Names visible where the function was defined, for types given as text.

        Raises:
            ToolDefinitionError: The signature cannot be described; the message says what to change.
        """
        label = getattr(function, "__name__", repr(function))
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            _check_parameter(label, parameter)
        hints = _hints(label, function, signature, scope)
        contexts = [name for name, hint in hints.items() if _is_context(hint)]
        if len(contexts) > 1:
            raise ToolDefinitionError(f"tool {label!r} takes two RunContexts: keep one")
        description, texts = _read_docstring(inspect.getdoc(function) or "")
        names = tuple(name for name in hints if name not in contexts)
        fields: dict[str, Any] = {
            f"a{i}": (hints[name], _field(name, signature.parameters[name], texts.get(name)))
            for i, name in enumerate(names)
        }
        try:
            model: type[BaseModel] = create_model("Arguments", __config__=_CONFIG, **fields)
            model.model_json_schema()
        except PydanticUserError as exc:
            raise ToolDefinitionError(
                f"tool {label!r}: a parameter's type has no JSON form: {exc.message} "
                "Use str, int, float, bool, list, dict, Literal, an Enum or a pydantic model."
            ) from exc
        return cls(names, contexts[0] if contexts else None, model, description)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        schema = self.model.model_json_schema(schema_generator=_Untitled)
        schema.pop("title", None)
        return {"properties": {}, **schema}

    def validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return keyword arguments, converted where the meaning is plain (``"12"`` to 12).

        Raises:
            ValueError: Names each argument that is missing, unknown or wrong.
        """
        try:
            valid = self.model.model_validate(arguments)
        except ValidationError as exc:
            raise ValueError("; ".join(self._fault(dict(e)) for e in exc.errors())) from None
        return {
            name: getattr(valid, f"a{i}")
            for i, name in enumerate(self.names)
            if f"a{i}" in valid.model_fields_set
        }

    def _fault(self, error: dict[str, Any]) -> str:
        where = ".".join(map(str, error["loc"]))
        if error["type"] == "missing":
            return f"missing argument {where!r}"
        if error["type"] == "extra_forbidden":
            valid = ", ".join(self.names) or "none"
            return f"unknown argument {where!r}{near(where, self.names)}; valid arguments: {valid}"
        given = repr(error["input"])
        given = given if len(given) <= 80 else f"{given[:80]}…"
        return f"argument {where!r}: {error['msg']}, not {given}"


def short_form(parameters: dict[str, Any]) -> str:
    """Return a schema as one line, ``sku: string, count?: integer``."""
    required = parameters.get("required", ())
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {_type_name(schema)}"
        for name, schema in parameters.get("properties", {}).items()
    )


def _type_name(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " | ".join(_type_name(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(map(repr, schema["enum"]))
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "items" in schema:
        return f"array of {_type_name(schema['items'])}"
    return repr(schema["const"]) if "const" in schema else str(schema.get("type", "any"))


def _check_parameter(label: str, parameter: inspect.Parameter) -> None:
    fault = ""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        fault = "stands for any number of arguments: name each one, with a type"
    elif parameter.kind is parameter.POSITIONAL_ONLY:
        fault = "is positional-only: remove the '/' from the signature"
    elif parameter.annotation is parameter.empty:
        fault = f"has no type: write '{parameter.name}: str', or whatever it is"
    if fault:
        raise ToolDefinitionError(f"parameter {parameter.name!r} of tool {label!r} {fault}")


def _hints(
    label: str,
    function: Callable[..., Any],
    signature: inspect.Signature,
    scope: Mapping[str, Any] | None,
) -> dict[str, Any]:
    holder = types.SimpleNamespace()
    # A RunContext imported only for type checkers is known by its name.
    holder.__annotations__ = {
        name: RunContext if isinstance(a, str) and _CONTEXT.fullmatch(a) else a
        for name, a in ((p.name, p.annotation) for p in signature.parameters.values())
    }
    module = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return get_type_hints(holder, module, dict(scope or {}), include_extras=True)
    except NameError as exc:
        raise ToolDefinitionError(
            f"tool {label!r}: {exc}: import the type at run time, outside 'if TYPE_CHECKING'"
        ) from exc
    except TypeError as exc:
        raise ToolDefinitionError(f"tool {label!r}: an annotation is not a type: {exc}") from exc


def _is_context(hint: Any) -> bool:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return RunContext in get_args(hint)
    return hint is RunContext


def _field(name: str, parameter: inspect.Parameter, text: str | None) -> FieldInfo:
    extra: dict[str, Any] = {"description": text} if text else {}
    if parameter.default is parameter.empty:
        return typing.cast("FieldInfo", Field(..., alias=name, **extra))
    show = partial(_show_default, parameter.default)
    return typing.cast("FieldInfo", Field(None, alias=name, json_schema_extra=show, **extra))


def _show_default(default: Any, schema: dict[str, Any]) -> None:
    schema.pop("default", None)
    if isinstance(default, str | int | float):
        schema["default"] = default


def _read_docstring(doc: str) -> tuple[str, dict[str, str]]:
    head, *rest = _SECTION.split(doc)
    description, texts = head.strip(), dict[str, str]()
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        body = textwrap.dedent(body.strip("\n"))
        if title in ("Args", "Arguments", "Parameters"):
            texts = {m[1]: " ".join(m[2].split()) for m in _ITEM.finditer(body)}
        elif title == "Returns":
            description += f"\nReturns: {' '.join(body.split())}"
    return description, texts
