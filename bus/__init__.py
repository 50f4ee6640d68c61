"""The bus: envelopes, topics, and brokers that carry them at least once."""

from bus.base import Bus, Delivery, Handler, Route, Subscription
from bus.envelope import MAX_PAYLOAD_BYTES, Envelope
from bus.errors import (
    BusClosed,
    BusDenied,
    BusError,
    BusUnreachable,
    EnvelopeInvalid,
    PayloadTooLarge,
    PublishFailed,
    TopicMissing,
)
from bus.faulty import Crash, CrashHook, FaultyBus, Point, crash_at
from bus.memory import MemoryBus
from bus.topics import Topics

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "Bus",
    "BusClosed",
    "BusDenied",
    "BusError",
    "BusUnreachable",
    "Crash",
    "CrashHook",
    "Delivery",
    "Envelope",
    "EnvelopeInvalid",
    "FaultyBus",
    "Handler",
    "MemoryBus",
    "PayloadTooLarge",
    "Point",
    "PublishFailed",
    "Route",
    "Subscription",
    "TopicMissing",
    "Topics",
    "crash_at",
]
