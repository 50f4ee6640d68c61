"""A strict OpenAI-compatible server on loopback, scripted by shapes.

It refuses what real servers refuse: a tool call without an answer, an answer without a call, an
id that is not a non-empty string, replayed arguments that are not the JSON text of an object.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """One scripted response.

    Attributes:
        chunks: Chunks of a stream (dicts) or raw bytes; also the source of a body.
        message: The message of a body; with ``chunks`` empty it is streamed as one delta.
        finish: The finish reason; None sends none.
        usage: The usage object, or None.
        status: HTTP status; not 200 sends ``body``.
        body: JSON or raw bytes to send as they are.
        headers: Further response headers.
        done: Whether a stream ends with ``[DONE]``.
        drop: Cut the connection after the chunks.
        split: Send the bytes in pieces of this size; 0 sends each chunk whole.
        hang: Never end the response.
        content_type: Of a success.
    """

    chunks: tuple[Json | bytes, ...] = ()
    message: Json | None = None
    finish: str | None = "stop"
    usage: Json | None = field(
        default_factory=lambda: {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    )
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = True
    drop: bool = False
    split: int = 0
    hang: bool = False
    content_type: str = "text/event-stream"


Script = Callable[[Json], Shape] | Sequence[Shape]


def text(content: Any, **options: Any) -> Shape:
    """Return a shape that answers with text, or with parts."""
    return Shape(message={"role": "assistant", "content": content}, **options)


def call(name: str, arguments: Any, call_id: Any = "c1", **extra: Any) -> Json:
    """Return one entry of ``tool_calls``."""
    raw = json.dumps(arguments) if isinstance(arguments, dict) else arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": raw}} | extra


def calls(*entries: Json, finish: str | None = "tool_calls", **options: Any) -> Shape:
    """Return a shape that answers with tool calls."""
    message = {"role": "assistant", "content": None, "tool_calls": list(entries)}
    return Shape(message=message, finish=finish, **options)


def deltas(*items: Json, finish: str | None = "tool_calls", **options: Any) -> Shape:
    """Return a shape that streams deltas."""
    return Shape(tuple(chunk(d) for d in items), finish=finish, **options)


def chunk(delta: Json, finish: str | None = None) -> Json:
    """Return a chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def stream_bytes(shape: Shape, *, include_usage: bool = True) -> bytes:
    """Return the bytes that a shape streams."""
    return b"".join(_frames(shape, include_usage))


def _frames(shape: Shape, include_usage: bool) -> list[bytes]:
    chunks: list[Json | bytes] = list(shape.chunks)
    if shape.message is not None:
        message = dict(shape.message)
        if isinstance(message.get("tool_calls"), list):
            entries = enumerate(message["tool_calls"])
            message["tool_calls"] = [{"index": n, **c} for n, c in entries]
        chunks.append(chunk(message))
    if shape.finish is not None:
        chunks.append(chunk({}, shape.finish))
    if shape.usage is not None and include_usage:
        chunks.append({"id": "x", "choices": [], "usage": shape.usage})
    frames = [
        c if isinstance(c, bytes) else b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks
    ]
    return [*frames, b"data: [DONE]\n\n"] if shape.done else frames


def problem(body: Json) -> str | None:
    """Return what a strict server finds wrong with a request, or None."""
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"the answer {message.get('tool_call_id')!r} has no call"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"the calls {waiting} have no answer"
        for entry in message.get("tool_calls") or ():
            if not isinstance(entry["id"], str) or not entry["id"]:
                return "a tool call id must be a non-empty string"
            if entry["id"] in waiting:
                return f"the id {entry['id']!r} is used twice"
            try:
                arguments = json.loads(entry["function"]["arguments"])
            except (TypeError, ValueError):
                return "function.arguments must be the JSON text of an object"
            if not isinstance(arguments, dict):
                return "function.arguments must be the JSON text of an object"
            waiting.append(entry["id"])
    return f"the calls {waiting} have no answer" if waiting else None


class FakeOpenAI:
    """The server; use it as ``async with FakeOpenAI(script) as server``.

    Attributes:
        requests: The bodies received, in order.
        headers: Their headers.
        peers: The client's port of each.
        base: The URL for ``api_base``.

    Args:
        script: A list of shapes, one a request (the last repeats), or a function of the body.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.peers: list[int] = []
        self.base = ""
        self._script = script
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self.peers.append(
            request.transport.get_extra_info("peername")[1] if request.transport else 0
        )
        wrong = problem(body)
        if wrong is not None:
            error = {"error": {"message": wrong, "type": "invalid_request_error", "code": None}}
            return web.json_response(error, status=400)
        if callable(self._script):
            shape = self._script(body)
        else:
            shape = self._script[min(len(self.requests), len(self._script)) - 1]
        if shape.status != 200 or shape.body is not None:
            return self._plain(shape)
        if not body.get("stream"):
            return await self._whole(request, shape)
        return await self._stream(request, shape, body)

    def _plain(self, shape: Shape) -> web.Response:
        raw = shape.body if isinstance(shape.body, bytes) else json.dumps(shape.body).encode()
        return web.Response(
            body=raw,
            status=shape.status,
            headers=shape.headers,
            content_type="application/json",
        )

    async def _whole(self, request: web.Request, shape: Shape) -> web.StreamResponse:
        if shape.hang:
            await self._stop.wait()
        choice = {"index": 0, "message": shape.message, "finish_reason": shape.finish}
        body: Json = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}
        if shape.usage is not None:
            body["usage"] = shape.usage
        raw = json.dumps(body).encode()
        if not shape.drop:
            return web.Response(body=raw, content_type="application/json", headers=shape.headers)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(raw)
        await response.prepare(request)
        await response.write(raw[: len(raw) // 2])
        self._cut(request)
        return response

    async def _stream(self, request: web.Request, shape: Shape, body: Json) -> web.StreamResponse:
        include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        response = web.StreamResponse(headers={"Content-Type": shape.content_type})
        await response.prepare(request)
        frames = _frames(shape, include_usage)
        if shape.split:
            raw = b"".join(frames)
            frames = [raw[at : at + shape.split] for at in range(0, len(raw), shape.split)]
        for frame in frames:
            await response.write(frame)
            if shape.split:
                await asyncio.sleep(0)
        if shape.hang:
            await self._stop.wait()
        if shape.drop:
            self._cut(request)
            return response
        await response.write_eof()
        return response

    def _cut(self, request: web.Request) -> None:
        if request.transport is not None:
            request.transport.abort()
