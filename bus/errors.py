"""Errors of the bus package.

BusError
├── BusClosed           used before it was opened or after it was closed
├── BusUnreachable      no broker answers (retryable)
├── BusDenied           the broker does not know us, or does not let us
├── TopicMissing        a topic is not there and cannot be created
├── PublishFailed       the broker did not take the message (retryable)
├── PayloadTooLarge     larger than a message may be; send it by reference
└── EnvelopeInvalid     a message that is not an envelope of ours
"""

from __future__ import annotations


class BusError(Exception):
    """The bus cannot do what was asked."""

    retryable = False

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class BusClosed(BusError):
    """The bus is not open."""


class BusUnreachable(BusError):
    """No broker answers."""

    retryable = True


class BusDenied(BusError):
    """The broker does not let us."""


class TopicMissing(BusError):
    """A topic is not there and cannot be created."""


class PublishFailed(BusError):
    """The broker did not take the message."""

    retryable = True


class PayloadTooLarge(BusError):
    """The payload is larger than a message may be."""


class EnvelopeInvalid(BusError):
    """The message is not a Cadenza envelope."""
