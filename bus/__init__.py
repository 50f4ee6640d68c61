"""The bus: envelopes, topics, and brokers that carry them at least once."""

from bus.base import Bus, Delivery, Handler, Route, Subscription
from bus.envelope import MAX_PAYLOAD_BYTES, Envelope
from bus.errors import (
    BusClosed,
    BusError,
    BusUnreachable,
    EnvelopeInvalid,
    PayloadTooLarge,
    PublishFailed,
)
from bus.faulty import Crash, CrashHook, FaultyBus, Point, crash_at
from bus.memory import MemoryBus
from bus.topics import Topics

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "Bus",
    "BusClosed",
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
    "Topics",
    "crash_at",
]
