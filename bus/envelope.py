"""The envelope: CloudEvents 1.0 in binary mode, plus what a run needs to be followed.

Source: CloudEvents 1.0.2, https://github.com/cloudevents/spec (attributes travel as ``ce_*``
headers, the payload stays bare).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bus.errors import EnvelopeInvalid, PayloadTooLarge

MAX_PAYLOAD_BYTES = 256 * 1024
_REQUIRED = ("id", "type", "source")


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message.

    Attributes:
        id: Unique for its source; the same when sent again.
        type: For example ``cadenza.work`` or ``subtask.completed``.
        source: Who sent it, for example ``/stock/orchestrator``.
        subject: What it is about, for example the subtask id.
        data: Payload bytes, at most ``MAX_PAYLOAD_BYTES``.
        content_type: Media type of ``data``.
        run: Run id.
        attempt: Attempt number, or 0.
        deadline: Seconds since the epoch, or None.
        hop: How many messages came before this one.
        trust: ``trusted`` or ``untrusted``.
        store: UUID of the run store it speaks of.
        traceparent: W3C Trace Context, or empty.
        tracestate: W3C Trace Context, or empty.
        extra: Further string attributes; names in lower case.
    """

    id: str
    type: str
    source: str
    subject: str = ""
    data: bytes = b""
    content_type: str = "application/json"
    run: str = ""
    attempt: int = 0
    deadline: float | None = None
    hop: int = 0
    trust: str = "trusted"
    store: str = ""
    traceparent: str = ""
    tracestate: str = ""
    extra: dict[str, str] = field(default_factory=dict)

    def headers(self) -> list[tuple[str, bytes]]:
        """Return the headers of binary mode, empty ones left out."""
        pairs: list[tuple[str, Any]] = [
            ("ce_specversion", "1.0"),
            ("ce_id", self.id),
            ("ce_type", self.type),
            ("ce_source", self.source),
            ("ce_subject", self.subject),
            ("content-type", self.content_type),
            ("ce_run", self.run),
            ("ce_attempt", self.attempt or ""),
            ("ce_deadline", "" if self.deadline is None else repr(self.deadline)),
            ("ce_hop", self.hop or ""),
            ("ce_trust", self.trust),
            ("ce_store", self.store),
            ("traceparent", self.traceparent),
            ("tracestate", self.tracestate),
            *((f"ce_{k}", v) for k, v in self.extra.items()),
        ]
        return [(name, str(value).encode()) for name, value in pairs if value != ""]

    @classmethod
    def from_headers(cls, headers: Iterable[tuple[str, bytes]], data: bytes) -> Envelope:
        """Read binary mode.

        Raises:
            EnvelopeInvalid: A required attribute is missing or a number is not one.
        """
        try:
            found = {name.lower(): value.decode() for name, value in headers}
        except UnicodeDecodeError as exc:
            raise EnvelopeInvalid("a header is not UTF-8") from exc
        attrs = {k.removeprefix("ce_"): v for k, v in found.items() if k.startswith("ce_")}
        missing = [name for name in _REQUIRED if not attrs.get(name)]
        if attrs.pop("specversion", None) != "1.0" or missing:
            raise EnvelopeInvalid(f"not a CloudEvents 1.0 message; missing: {missing}")
        try:
            deadline = attrs.pop("deadline", None)
            numbers: dict[str, Any] = {k: int(attrs.pop(k, "0")) for k in ("attempt", "hop")}
            known: dict[str, Any] = {
                k: attrs.pop(k, "") for k in (*_REQUIRED, "subject", "run", "store")
            }
            return cls(
                **known,
                **numbers,
                data=data,
                content_type=found.get("content-type", "application/json"),
                deadline=None if deadline is None else float(deadline),
                trust=attrs.pop("trust", "trusted"),
                traceparent=found.get("traceparent", ""),
                tracestate=found.get("tracestate", ""),
                extra=attrs,
            )
        except ValueError as exc:
            raise EnvelopeInvalid(f"a numeric attribute is not a number: {exc}") from exc


def check_size(topic: str, envelope: Envelope) -> None:
    """Raise ``PayloadTooLarge`` for a message that no bus carries."""
    if (size := len(envelope.data)) > MAX_PAYLOAD_BYTES:
        raise PayloadTooLarge(
            f"message {envelope.id!r} for topic {topic!r} carries {size} bytes, more than "
            f"{MAX_PAYLOAD_BYTES}; send a reference to it"
        )
