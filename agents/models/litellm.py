"""Speaks to every other provider through litellm, which is imported late and here alone.

The import takes seconds of CPU and some 200 MB, and calls block now and then, so litellm gets a
thread with an event loop of its own at the first call. One loop for the process also spares its
cached connections the end of the loop they belong to. Its price list comes from its package.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from agents.errors import BrokenStream, ModelError, ModelRefused, ModelUnavailable
from agents.models.assembler import Assembler, taken_ids
from agents.models.base import Delta, Dialect, ModelReply, ModelRequest, ModelSettings, OnDelta
from agents.models.faults import fault, paid, retry_after_s
from agents.models.lock import check_lock
from agents.models.wire import check_media, request_body


class _Home:
    """The thread that litellm lives in, for as long as the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event
        self.loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Start the thread unless it runs; blocks for a moment."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=lambda: asyncio.run(self._live()), name="litellm", daemon=True
                )
                self._thread.start()
                atexit.register(self.stop)
        self._ready.wait()

    def stop(self) -> None:
        """End the loop, so that its connections are closed before the process ends."""
        if self._thread is not None:
            self.loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(timeout=1.0)

    async def _live(self) -> None:
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._stop.wait()


_home = _Home()


def _import() -> Any:
    """Import litellm without its price download, callbacks, telemetry and estimates of tokens."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    warnings.filterwarnings("ignore", message="Item '.*' on TypedDict")  # its types warn users
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = False
    litellm.num_retries = 0
    litellm.disable_streaming_logging = True
    litellm.disable_token_counter = True
    for callbacks in ("callbacks", "input_callback", "success_callback", "failure_callback"):
        setattr(litellm, callbacks, [])
    return litellm


class LiteLLM:
    """A model of any provider that litellm knows.

    Args:
        settings: The model's settings; ``retries`` is not used here, nor by litellm.
        dialect: How tools are called.
        media_types: Media types it takes beside text.
        structured: Whether the provider honours a response schema.
    """

    def __init__(
        self,
        settings: ModelSettings,
        *,
        dialect: Dialect = "native",
        media_types: tuple[str, ...] = (),
        structured: bool = False,
    ) -> None:
        self.name = settings.model
        self.dialect: Dialect = dialect
        self.media_types = media_types
        self.structured = structured
        self._settings = settings

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Ask once, without a retry; ``timeout_s`` bounds the whole call."""
        check_lock(self.name, self._settings.api_base)
        check_media(request, self.media_types, self.name)
        body = await request_body(request, self._settings, model=self.name, dialect=self.dialect)
        assembler = Assembler(
            self.name,
            taken_ids(request),
            tools=request.tools,
            prefill=self._settings.prefill if self.dialect == "text" else "",
        )
        here, waits = asyncio.get_running_loop(), True

        def show(delta: Delta) -> None:
            here.call_soon_threadsafe(pass_on, delta)

        def pass_on(delta: Delta) -> None:
            if on_delta is not None and waits:
                on_delta(delta)

        await asyncio.to_thread(_home.start)
        asked = asyncio.run_coroutine_threadsafe(self._ask(body, assembler, show), _home.loop)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                await asyncio.wrap_future(asked)
        except TimeoutError as exc:
            took = f"no whole reply within {self._settings.timeout_s:g} s"
            raise paid(ModelUnavailable(f"{self.name}: {took}")) from exc
        finally:
            waits = False  # what a call that was given up still streams is not shown
        return assembler.reply()

    async def _ask(self, body: dict[str, Any], assembler: Assembler, show: OnDelta) -> None:
        settings, begun = self._settings, False
        litellm = _import()
        self._check_key(litellm)
        try:
            answer = await litellm.acompletion(
                **body,
                api_base=settings.api_base,
                api_key=settings.api_key,
                timeout=settings.timeout_s,
                num_retries=0,
                max_retries=0,
            )
            begun = True
            if not settings.stream:
                assembler.feed(answer.model_dump())
                return
            async for chunk in answer:
                for delta in assembler.feed(chunk.model_dump()):
                    show(delta)
        except litellm.exceptions.openai.OpenAIError as exc:  # the base of all its errors
            error = self._fault(exc, begun)
            raise (paid(error) if begun else error) from exc
        # litellm ends every stream with a finish reason, its own "stop" if the provider gave none.
        if answer.received_finish_reason is None and answer.intermittent_finish_reason is None:
            raise paid(BrokenStream(f"{self.name}: the stream ended before its end"))

    def _check_key(self, litellm: Any) -> None:
        if self._settings.api_key is not None or self._settings.api_base is not None:
            return
        missing = litellm.validate_environment(self.name)["missing_keys"]
        if missing:
            raise ModelRefused(
                f"{self.name}: no API key; set `api_key` or {', '.join(missing)} in the environment"
            )

    def _fault(self, exc: Any, begun: bool) -> ModelError:
        original = getattr(exc, "original_exception", None) or exc
        status = getattr(original, "status_code", None)
        headers = getattr(getattr(original, "response", None), "headers", None) or {}
        message = str(getattr(original, "message", original))
        kind = type(original).__name__
        if kind in ("APIConnectionError", "Timeout") or not isinstance(status, int):
            failure = BrokenStream if begun else ModelUnavailable
            return failure(f"{self.name}: {message[:500]}")
        payload = {"error": {"message": message, "code": kind}}
        waits = retry_after_s(headers) if isinstance(headers, Mapping) else None
        secret = self._settings.api_key
        return fault(self.name, status, payload, retry_after=waits, secret=secret)

    async def aclose(self) -> None:
        """Do nothing: litellm keeps its connections for the process."""
