"""Speaks to every other provider through litellm, which is imported late and here alone.

The import takes seconds of CPU and some 200 MB, so it happens in a thread at the first call;
its price list comes from its package, not from the network.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from typing import Any

from agents.errors import BrokenStream, ModelError, ModelRefused, ModelUnavailable
from agents.models.assembler import Assembler, taken_ids
from agents.models.base import Dialect, ModelReply, ModelRequest, ModelSettings, OnDelta
from agents.models.faults import fault, paid, retry_after_s
from agents.models.lock import check_lock
from agents.models.wire import check_media, request_body

_importing = threading.Lock()


def _import() -> Any:
    """Import litellm without its price download, callbacks, telemetry and banners."""
    with _importing:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
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
        litellm = await asyncio.to_thread(_import)
        body = await request_body(request, self._settings, model=self.name, dialect=self.dialect)
        self._check_key(litellm)
        assembler = Assembler(
            self.name,
            taken_ids(request),
            tools=request.tools,
            prefill=self._settings.prefill if self.dialect == "text" else "",
        )
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                await self._ask(litellm, body, assembler, on_delta)
        except TimeoutError as exc:
            took = f"no whole reply within {self._settings.timeout_s:g} s"
            raise paid(ModelUnavailable(f"{self.name}: {took}")) from exc
        return assembler.reply()

    async def _ask(
        self, litellm: Any, body: dict[str, Any], assembler: Assembler, on_delta: OnDelta | None
    ) -> None:
        settings = self._settings
        begun = False
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
                    if on_delta is not None:
                        on_delta(delta)
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
            raise ModelRefused(f"{self.name}: no API key; set `api_key` or {', '.join(missing)}")

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
