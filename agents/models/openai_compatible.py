"""Speaks to OpenAI-compatible servers over aiohttp, reading raw chunks.

A streamed call costs a fraction of a millisecond of CPU this way, and only raw chunks let the
assembler survive servers that are compatible by name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import aiohttp

from agents.errors import BrokenStream, ModelError, ModelRefused, ModelUnavailable
from agents.models.assembler import Assembler, taken_ids
from agents.models.base import Dialect, ModelReply, ModelRequest, ModelSettings, OnDelta
from agents.models.faults import fault, paid, retry_after_s
from agents.models.lock import check_lock, is_loopback
from agents.models.sse import FrameParser
from agents.models.wire import check_media, request_body

_CONNECT_S = 10.0
_TAIL_S = 2.0  # how long a finished reply waits for its usage and the end of the stream
_DRAIN_S = 0.2  # how long a read reply waits for the end that lets its connection be kept
_ERROR_BYTES = 65_536

_Kept = tuple[AsyncGenerator[aiohttp.ClientSession], aiohttp.ClientSession]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is and what it calls things.

    Attributes:
        base: URL that ``/chat/completions`` is appended to.
        model: The model's name for the server.
        api_key: Secret, or None.
        max_tokens_key: Its word for ``max_tokens``.
        prefill_body: What makes it continue the last assistant message.
    """

    base: str
    model: str
    api_key: str | None = None
    max_tokens_key: str = "max_tokens"
    prefill_body: tuple[tuple[str, Any], ...] = ()


class OpenAICompatible:
    """A model behind OpenAI's chat completions API.

    The same object may be used in one event loop after another: each loop has its own
    connections, which are closed with it.

    Args:
        settings: The model's settings; ``retries`` is not used here.
        endpoint: Where the server is.
        dialect: How tools are called.
        media_types: Media types it takes beside text.
        structured: Whether the server honours ``response_format``.
    """

    def __init__(
        self,
        settings: ModelSettings,
        endpoint: Endpoint,
        *,
        dialect: Dialect = "native",
        media_types: tuple[str, ...] = (),
        structured: bool = True,
    ) -> None:
        self.name = settings.model
        self.dialect: Dialect = dialect
        self.media_types = media_types
        self.structured = structured
        self._settings = settings
        self._endpoint = endpoint
        self._url = endpoint.base.rstrip("/") + "/chat/completions"
        self._sessions: dict[asyncio.AbstractEventLoop, _Kept] = {}

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Ask once, without a retry; ``timeout_s`` bounds the whole call."""
        check_lock(self.name, self._url)
        check_media(request, self.media_types, self.name)
        assembler = Assembler(
            self.name,
            taken_ids(request),
            tools=request.tools,
            prefill=self._settings.prefill if self.dialect == "text" else "",
        )
        body = await self._body(request)
        try:
            async with asyncio.timeout(self._settings.timeout_s) as limit:
                session = await self._session()
                async with session.post(
                    self._url, data=body, headers=self._headers(), allow_redirects=False
                ) as response:
                    if response.status >= 300:
                        raise await self._fault(response)
                    await self._read(response, assembler, on_delta, limit)
        except (TimeoutError, aiohttp.ClientError, OSError) as exc:
            if not assembler.finished:
                raise self._broken(exc) from exc
        return assembler.reply()

    def _broken(self, exc: Exception) -> ModelError:
        """Return the error for a connection that failed; once it stood, the call may be paid."""
        match exc:
            case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
                return ModelRefused(f"{self.name}: `api_base` is not a URL: {self._url!r}")
            case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
                where = f"{self.name}: cannot reach {self._url} ({exc})"
                return ModelUnavailable(f"{where}; is the server running?")
            case TimeoutError():
                took = f"no whole reply within {self._settings.timeout_s:g} s"
                slow = f"{self.name}: {took}; raise `timeout_s` if it is slow"
                return paid(ModelUnavailable(slow))
            case _:
                what = f"the connection broke ({type(exc).__name__}: {exc})"
                return paid(BrokenStream(f"{self.name}: {what}"))

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        kept = self._sessions.pop(asyncio.get_running_loop(), None)
        if kept is not None:
            await kept[0].aclose()

    async def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        for old in [known for known in self._sessions if known.is_closed()]:
            del self._sessions[old]
        if loop not in self._sessions:
            keeper = _keep_session(trust_env=not is_loopback(self._url))
            self._sessions[loop] = (keeper, await anext(keeper))
        return self._sessions[loop][1]

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._endpoint.api_key:
            headers["Authorization"] = f"Bearer {self._endpoint.api_key}"
        return headers

    async def _body(self, request: ModelRequest) -> bytes:
        body = await request_body(
            request,
            self._settings,
            model=self._endpoint.model,
            dialect=self.dialect,
            max_tokens_key=self._endpoint.max_tokens_key,
        )
        if self._settings.prefill and self.dialect == "text":
            body = {**dict(self._endpoint.prefill_body), **body}
        return json.dumps(body).encode()

    async def _fault(self, response: aiohttp.ClientResponse) -> ModelError:
        raw = bytearray(response.headers.get("Location", "").encode())
        with contextlib.suppress(aiohttp.ClientError):  # what came of the message will do
            async for data in response.content.iter_any():
                raw += data
                if len(raw) > _ERROR_BYTES:
                    break
        text = raw.decode("utf-8", "replace")
        try:
            payload = json.loads(text)
        except (ValueError, RecursionError):
            payload = text or response.reason
        return fault(
            self.name,
            response.status,
            payload,
            retry_after=retry_after_s(response.headers),
            secret=self._endpoint.api_key,
        )

    async def _read(
        self,
        response: aiohttp.ClientResponse,
        assembler: Assembler,
        on_delta: OnDelta | None,
        limit: asyncio.Timeout,
    ) -> None:
        parser = FrameParser()
        try:
            async for data in response.content.iter_any():
                self._take(parser.feed(data), assembler, on_delta)
                if parser.done:
                    break
                if assembler.finished and limit.when() is not None:
                    soon = asyncio.get_running_loop().time() + _TAIL_S
                    limit.reschedule(min(limit.when() or soon, soon))
            else:
                self._take(parser.close(), assembler, on_delta)
        except ModelError as exc:
            if not exc.usage.llm_calls:
                paid(exc)
            raise
        if parser.done:
            assembler.end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    await response.content.read(1)

    def _take(
        self, frames: list[dict[str, Any]], assembler: Assembler, on_delta: OnDelta | None
    ) -> None:
        for frame in frames:
            deltas: Any = assembler.feed(frame)
            if on_delta is not None:
                for delta in deltas:
                    on_delta(delta)


async def _keep_session(*, trust_env: bool) -> AsyncGenerator[aiohttp.ClientSession]:
    """Hold a session open until its event loop shuts its asynchronous generators down.

    That is what ``asyncio.run`` does at its end, so that no connection outlives its loop.
    """
    limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
    async with aiohttp.ClientSession(timeout=limits, trust_env=trust_env) as session:
        yield session
