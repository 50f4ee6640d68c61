"""Turns a request into the JSON of OpenAI's chat completions API, as strict servers want it.

Every tool call is answered right after its message and every answer has its call; the arguments
that are replayed are always the JSON text of an object.
"""

from __future__ import annotations

import base64
import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from typing import Any

from agents.content import Blob, Text, text_of
from agents.errors import ModelRefused, UnsupportedMedia
from agents.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agents.models.arguments import scrub_json
from agents.models.base import Dialect, ModelRequest, ModelSettings
from agents.models.thinking import scrub

_NOT_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def check_media(request: ModelRequest, media_types: Sequence[str], model: str) -> None:
    """Raise unless the model takes every blob of the conversation.

    Raises:
        UnsupportedMedia: It does not take one of them.
    """
    for message in request.messages:
        for part in message.content if isinstance(message, UserMessage) else ():
            if isinstance(part, Blob) and not any(
                fnmatch(part.media_type, pattern) for pattern in media_types
            ):
                takes = ", ".join(media_types) or "text alone"
                raise UnsupportedMedia(
                    f"{model!r} does not take {part.media_type!r} ({part.name!r}); it takes "
                    f"{takes}. Set `media_types` if it does, or use another model"
                )


async def request_body(
    request: ModelRequest,
    settings: ModelSettings,
    *,
    model: str,
    dialect: Dialect = "native",
    max_tokens_key: str = "max_tokens",
) -> dict[str, Any]:
    """Return the request's JSON.

    Args:
        request: The call.
        settings: Temperature, bounds, ``stream`` and ``extra_body``, which wins.
        model: The model's name for the server.
        dialect: ``prefill`` is sent in the text dialect alone.
        max_tokens_key: The server's word for ``max_tokens``.

    Raises:
        ModelRefused: A blob is needed and the request cannot read blobs.
    """
    messages = await chat_messages(request)
    if settings.prefill and dialect == "text":
        messages.append({"role": "assistant", "content": settings.prefill})
    body: dict[str, Any] = {"model": model, "messages": messages}
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.max_tokens is not None:
        body[max_tokens_key] = settings.max_tokens
    if request.tools:
        body["tools"] = [{"type": "function", "function": asdict(t)} for t in request.tools]
        if request.tool_choice == "none":
            body["tool_choice"] = "none"
    if request.stop:
        body["stop"] = list(request.stop)
    if request.response_schema is not None:
        shape = {"name": "answer", "schema": request.response_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    if settings.stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    body.update(settings.extra_body)
    return body


async def chat_messages(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the conversation in OpenAI's form, calls and answers paired.

    A call without an answer gets one that says so; an answer without a call becomes a user
    message.
    """
    messages = request.messages
    used: set[int] = set()
    out: list[dict[str, Any]] = []
    for position, message in enumerate(messages):
        match message:
            case SystemMessage():
                out.append({"role": "system", "content": scrub(message.text)})
            case UserMessage():
                out.append({"role": "user", "content": await _user(message, request)})
            case AssistantMessage(tool_calls=()):
                out.append({"role": "assistant", "content": scrub(message.text)})
            case AssistantMessage():
                out.append(_assistant(message))
                out += _answers(message.tool_calls, messages, position, used)
            case ToolMessage() if position not in used:
                out.append({"role": "user", "content": scrub(message.text)})
            case _:
                pass
    return out


def _assistant(message: AssistantMessage) -> dict[str, Any]:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": _NOT_A_NAME.sub("_", call.name)[:64] or "unnamed",
                "arguments": canonical(call.arguments),
            },
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": scrub(message.text) or None, "tool_calls": calls}


def _answers(
    calls: Sequence[ToolCall], messages: Sequence[Message], position: int, used: set[int]
) -> list[dict[str, Any]]:
    """Return one answer for each call, wherever it stands before the next assistant message."""
    found: dict[str, str] = {}
    wanted = {call.id for call in calls}
    for at in range(position + 1, len(messages)):
        answer = messages[at]
        if isinstance(answer, AssistantMessage):
            break
        if isinstance(answer, ToolMessage) and answer.call_id in wanted - found.keys():
            found[answer.call_id] = answer.text
            used.add(at)
    missing = "Observation [ERROR]: this call did not run; nothing is known of its result."
    return [
        {"role": "tool", "tool_call_id": c.id, "content": scrub(found.get(c.id, missing))}
        for c in calls
    ]


def canonical(arguments: dict[str, Any]) -> str:
    """Return the JSON text of arguments, valid Unicode without escapes."""
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    if text.isascii() or text == scrub(text):
        return text
    return json.dumps(scrub_json(arguments), ensure_ascii=False, separators=(",", ":"))


async def _user(message: UserMessage, request: ModelRequest) -> str | list[dict[str, Any]]:
    if not any(isinstance(part, Blob) for part in message.content):
        return scrub(text_of(message.content))
    return [
        {"type": "text", "text": scrub(part.text)}
        if isinstance(part, Text)
        else await _media(part, request)
        for part in message.content
    ]


async def _media(blob: Blob, request: ModelRequest) -> dict[str, Any]:
    """Return a part that carries a blob's bytes: an image, audio, text, or else a file."""
    if request.load_blob is None:
        raise ModelRefused(f"{blob.name!r} cannot be sent: the request has no `load_blob`")
    loaded = request.load_blob(blob.sha256)
    data: bytes = await loaded if inspect.isawaitable(loaded) else loaded
    if blob.media_type.startswith("text/"):
        return {"type": "text", "text": f"{blob.name}:\n{data.decode('utf-8', 'replace')}"}
    encoded = base64.b64encode(data).decode("ascii")
    url = f"data:{blob.media_type};base64,{encoded}"
    if blob.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    if blob.media_type in _AUDIO:
        sound = {"data": encoded, "format": _AUDIO[blob.media_type]}
        return {"type": "input_audio", "input_audio": sound}
    return {"type": "file", "file": {"filename": blob.name, "file_data": url}}
