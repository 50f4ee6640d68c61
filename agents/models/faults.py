"""Turns what a model server says went wrong into one of our errors."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from agents.errors import (
    BrokenStream,
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from agents.usage import Usage

PAID_UNKNOWN = Usage(llm_calls=1, input_tokens=None, output_tokens=None, cost_usd=None)
"""A call that may have been paid for; nobody said how much."""

_Error = TypeVar("_Error", bound=ModelError)

_OVERFLOW = re.compile(
    r"context[_ ]?(length|window|size)|maximum (context|prompt) length|max_model_len|n_ctx"
    r"|too many (input )?tokens|(prompt|input|request) is too (long|large)|reduce the length"
    r"|exceeds? (the )?(model'?s? )?(maximum|available) (context|number of (input )?tokens)",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(
    r"overload|rate.?limit|server_error|unavailable|time.?out|timed out|capacity|try again",
    re.IGNORECASE,
)
_PERMANENT = re.compile(r"invalid|not.?found|authenti|permission|quota|unsupported", re.IGNORECASE)
_SECRET_CHARS = 8  # a shorter key is a placeholder, and would mask half the message
_RETRYABLE_STATUS = frozenset({408, 409, 425, 429})
_HINTS = (
    ("response_format", "the server takes no response_format: drop the output schema"),
    ("stream", "the server does not stream: set `stream: false` for this model"),
    ("tool", "the server takes no tool calls here: set `dialect: text` for this model"),
    ("max_tokens", "drop `max_tokens`, or set `extra_body: {max_completion_tokens: N}`"),
    ("temperature", "drop `temperature` for this model"),
    ("image", "the model takes no images: set `media_types: []` for it"),
)
_STATUS_HINTS = {
    401: "check the API key (`api_key`, or the provider's variable such as OPENAI_API_KEY)",
    403: "check what the API key may use",
    404: "check the model's name and `api_base`, which usually ends in /v1",
}


def paid(error: _Error, usage: Usage = PAID_UNKNOWN) -> _Error:
    """Return the error, marked with what the failed call did cost."""
    error.usage = usage
    return error


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a ``Retry-After`` header (RFC 9110, 10.2.3), or None.

    ``retry-after-ms``, which some gateways send beside it, is finer and wins.
    """
    for name, scale in (("retry-after-ms", 0.001), ("Retry-After", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * scale)
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, OverflowError):
            continue
    return None


def _first_text(*values: Any) -> str:
    for value in values:
        if value:
            return value if isinstance(value, str) else json.dumps(value, default=str)
    return ""


def _describe(payload: Any) -> tuple[str, str, int]:
    """Return the message, the code words and the status that an error payload carries."""
    if not isinstance(payload, dict):
        return _first_text(payload)[:500], "", 0
    error = payload.get("error", payload)
    if not isinstance(error, dict):
        return _first_text(error, payload.get("message"))[:500], "", 0
    words = " ".join(str(error[k]) for k in ("code", "type", "param") if error.get(k))
    message = _first_text(error.get("message"), error.get("detail"), error)[:500]
    status = next((v for k in ("code", "status") if isinstance(v := error.get(k), int)), 0)
    return message, words, status if 400 <= status <= 599 else 0


def _hint(status: int, said: str) -> str:
    if status in (400, 422, 501):
        for word, hint in _HINTS:
            if word in said:
                return hint
    if status < 400:
        return "the server has moved: set `api_base` to where it points"
    return _STATUS_HINTS.get(status, "change the request; asking again will not help")


def fault(
    model: str,
    status: int,
    payload: Any,
    *,
    retry_after: float | None = None,
    secret: str | None = None,
) -> ModelError:
    """Return the error that a failed request amounts to.

    Args:
        model: ``provider/name``, for the message.
        status: HTTP status; 200 for an error inside a success or a stream.
        payload: The parsed body, or its text.
        retry_after: Seconds the server asked to wait.
        secret: The API key, masked should the server repeat it.
    """
    message, words, inner = _describe(payload)
    if secret and len(secret) >= _SECRET_CHARS:
        message = message.replace(secret, "***")
    in_success = status < 300
    status = inner if in_success else status
    said = f"{words} {message}".lower()
    what = f"{model}: {message or 'no message'}" + (f" (HTTP {status})" if status else "")
    error: ModelError
    if _OVERFLOW.search(said) and status not in (401, 403, 404, 429):
        error = ContextOverflow(what, status=status or None)
    elif status in _RETRYABLE_STATUS or (status >= 500 and status != 501):
        error = ModelUnavailable(what, status=status, retry_after_s=retry_after)
    elif status:
        error = ModelRefused(f"{what}; {_hint(status, said)}", status=status)
    elif _TEMPORARY.search(said):
        error = ModelUnavailable(what, retry_after_s=retry_after)
    elif _PERMANENT.search(said):
        error = ModelRefused(what)
    else:
        error = BrokenStream(what)
    return paid(error) if in_success else error
