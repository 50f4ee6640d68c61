"""The model port: one protocol that every provider's adapter implements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.messages import AssistantMessage, Message
from agents.usage import Usage

Dialect = Literal["native", "text"]


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as a model is told of it.

    Attributes:
        name: ``[a-zA-Z0-9_-]{1,64}``.
        description: One or a few sentences.
        parameters: JSON Schema of an object.
    """

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of a model; None leaves the provider's default.

    Attributes:
        model: ``provider/name``.
        api_base: Base URL of an OpenAI-compatible server, ending in ``/v1``.
        api_key: Secret; never shown.
        temperature: 0 to 2.
        max_tokens: Upper bound of the completion.
        timeout_s: Total time for one call, streaming included.
        retries: Further tries on 429, 5xx, time-out and broken streams.
        stream: Whether to ask for a stream.
        dialect: ``native`` tool calls or the ``text`` format; None picks by what is known.
        prefill: Text that the assistant's turn begins with (text dialect).
        media_types: Media types it takes beside text, for example ``image/png`` or ``image/*``;
            None asks the price table, else none.
        input_usd_per_mtok: Price of a million input tokens, where the table has none.
        output_usd_per_mtok: Price of a million output tokens.
        extra_body: Further members of the request's JSON.
    """

    model: str
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = None
    max_tokens: int | None = None
    timeout_s: float = 60.0
    retries: int = 2
    stream: bool = True
    dialect: Dialect | None = None
    prefill: str = ""
    media_types: tuple[str, ...] | None = None
    input_usd_per_mtok: float | None = None
    output_usd_per_mtok: float | None = None
    extra_body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallKey:
    """Which call this is; a scripted model answers by it, never by a cursor.

    Attributes:
        agent: Agent name.
        subtask: Subtask id.
        call: Number of the model call within the subtask's journal generation, from 0.
        generation: The journal generation.
    """

    agent: str
    subtask: str
    call: int
    generation: int = 0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call.

    Attributes:
        messages: The conversation, system message first.
        tools: Tools for native calls; empty in the text dialect.
        stop: Stop sequences.
        response_schema: JSON Schema that the answer must fit, or None.
        tool_choice: ``none`` forbids calls, to force an answer.
        key: Which call this is.
        load_blob: Reads a blob by SHA-256, for adapters that send media.
    """

    messages: tuple[Message, ...]
    key: CallKey
    tools: tuple[ToolSchema, ...] = ()
    stop: tuple[str, ...] = ()
    response_schema: dict[str, Any] | None = None
    tool_choice: Literal["auto", "none"] = "auto"
    load_blob: Callable[[str], Any] | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete reply.

    Attributes:
        message: What the model said.
        usage: With ``llm_calls=1``; tokens None when the server did not say.
        finish_reason: ``stop``, ``length``, ``tool_calls`` or the server's own word.
        model: The model that answered, after fallbacks.
        notes: What was repaired or retried on the way; each becomes an agent event.
    """

    message: AssistantMessage
    usage: Usage = Usage(llm_calls=1)  # noqa: RUF009 - Usage is frozen
    finish_reason: str = "stop"
    model: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed reply.

    Attributes:
        text: Visible text to append; empty with ``discard``.
        discard: What was shown of this reply is void (the stream broke and is asked again).
    """

    text: str = ""
    discard: bool = False


OnDelta = Callable[[Delta], None]


class Model(Protocol):
    """A model that can be asked.

    Attributes:
        name: ``provider/name``, as configured.
        dialect: How tools are called.
        media_types: Media types it takes beside text; patterns such as ``image/*`` allowed.
        structured: Whether ``response_schema`` is honoured.
    """

    @property
    def name(self) -> str:
        """Name as configured."""

    @property
    def dialect(self) -> Dialect:
        """How tools are called."""

    @property
    def media_types(self) -> tuple[str, ...]:
        """What it takes beside text."""

    @property
    def structured(self) -> bool:
        """Whether ``response_schema`` is honoured."""

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Ask once; retries, fallbacks and the total deadline lie inside.

        Raises:
            ModelUnavailable: After the last retry and fallback.
            BrokenStream: The last try's stream ended early.
            EmptyReply: A success without text and without calls.
            ContextOverflow: The prompt is too long.
            ModelRefused: The request is not acceptable; the message says what to change.
            ModelLocked: Real calls are switched off.
        """

    async def aclose(self) -> None:
        """Release connections; may be called twice."""
