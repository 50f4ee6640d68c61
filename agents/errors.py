"""Errors of the agents package.

AgentError
├── ModelError                  a model call did not yield a usable reply
│   ├── ModelUnavailable        429, 5xx, network, time-out (retryable)
│   ├── BrokenStream            a stream ended without its end (retryable)
│   ├── EmptyReply              a success without content (retryable)
│   ├── ContextOverflow         the prompt is too long for the model
│   ├── ModelRefused            any other 4xx: key, name, parameters
│   └── ModelLocked             real model calls are switched off
├── UnsupportedMedia            a part that the model does not take
├── InvalidOutput               the final answer does not fit its type
├── ToolDefinitionError         a tool cannot be described or registered
├── ToolDenied                  a tool refuses: say why, do not retry
└── Halt                        the gate said stop (control flow)
    ├── Fenced                  another attempt owns the subtask
    ├── Cancelled               the run or the subtask is cancelled
    └── OverBudget              the reservation was refused
"""

from __future__ import annotations

from agents.usage import Usage


class AgentError(Exception):
    """An agent cannot go on."""

    error_class = "agent_error"
    retryable = False

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class ModelError(AgentError):
    """The model gave no usable reply.

    Attributes:
        status: HTTP status, where there was one.
        usage: What the failed calls did cost; a call that was paid for counts.
    """

    error_class = "model_error"

    def __init__(self, message: str = "", *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.usage = Usage()


class ModelUnavailable(ModelError):
    """The model server is overloaded, failing or out of reach."""

    error_class = "model_unavailable"
    retryable = True

    def __init__(
        self,
        message: str = "",
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after_s = retry_after_s


class BrokenStream(ModelError):
    """The model's stream ended before its end."""

    error_class = "broken_stream"
    retryable = True


class EmptyReply(ModelError):
    """The model answered with nothing."""

    error_class = "empty_reply"
    retryable = True


class ContextOverflow(ModelError):
    """The prompt is too long for the model."""

    error_class = "context_overflow"


class ModelRefused(ModelError):
    """The model server refused the request."""

    error_class = "model_refused"


class ModelLocked(ModelError):
    """Real model calls are locked (set by tests); use a scripted model."""

    error_class = "model_locked"


class UnsupportedMedia(AgentError):
    """The model does not take this kind of content."""

    error_class = "unsupported_media"


class InvalidOutput(AgentError):
    """The final answer does not fit the declared output type."""

    error_class = "invalid_output"
    retryable = True


class ToolDefinitionError(AgentError):
    """The tool cannot be described."""

    error_class = "tool_definition"


class ToolDenied(AgentError):
    """The tool refuses the call."""

    error_class = "tool_denied"


class Halt(AgentError):
    """The gate told the attempt to stop."""

    error_class = "halted"


class Fenced(Halt):
    """Another attempt owns this subtask now."""

    error_class = "fenced"


class Cancelled(Halt):
    """The run or the subtask was cancelled."""

    error_class = "cancelled"


class OverBudget(Halt):
    """The run's budget does not cover the next call."""

    error_class = "budget"
