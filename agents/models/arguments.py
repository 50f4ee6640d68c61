"""Reads a tool call's arguments, whatever form a server gives them in."""

from __future__ import annotations

import json
import math
from typing import Any

from agents.models.thinking import scrub


class BadArguments(ValueError):
    """The arguments are not a JSON object."""


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadArguments(f"{text} is not a number of JSON")
    return number


def _constant(text: str) -> Any:
    raise BadArguments(f"{text} is not a value of JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_constant)


def scrub_json(value: Any) -> Any:
    """Return a JSON value whose texts are valid Unicode."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {scrub(str(k)): scrub_json(v) for k, v in value.items()}
    if isinstance(value, list):
        return [scrub_json(v) for v in value]
    return value


def is_object(text: str) -> bool:
    """Return whether a text is the whole JSON text of an object."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(_DECODER.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def read_arguments(raw: Any) -> dict[str, Any]:
    """Return the arguments as an object.

    None, an empty text, an empty list and their JSON text mean no arguments. A JSON text within
    a JSON text is unwrapped once.

    Args:
        raw: What the server sent: a text, or a value that it parsed itself.

    Raises:
        BadArguments: It is not the JSON text of an object; the message says why.
    """
    try:
        value = _DECODER.decode(raw) if isinstance(raw, str) and raw.strip() else raw
        if isinstance(value, str) and value.strip():
            value = _DECODER.decode(value)
        if value == [] or value == "" or (value is None and raw is None):
            return {}
        if isinstance(raw, str) and not raw.strip():
            return {}
        if not isinstance(value, dict):
            kind = {list: "an array", str: "a text", type(None): "null"}.get(
                type(value), "a number"
            )
            raise BadArguments(f"they are {kind}, not an object")
        # Lone surrogates come from escapes, so a text without "\u" and beyond ASCII has none.
        safe = isinstance(raw, str) and raw.isascii() and "\\u" not in raw
        return value if safe else dict(scrub_json(value))
    except json.JSONDecodeError as exc:
        raise BadArguments(f"{exc.msg} at character {exc.pos}") from exc
    except RecursionError as exc:
        raise BadArguments("they are nested too deeply") from exc
    except BadArguments:
        raise
    except ValueError as exc:
        raise BadArguments(str(exc)) from exc
