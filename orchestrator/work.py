"""The ``work`` message: an assignment on the wire, by reference when it is large."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from agents.assignment import Answer, Assignment, Input
from agents.content import Blob
from bus.envelope import MAX_PAYLOAD_BYTES, Envelope
from orchestrator.cause import Cause
from orchestrator.codec import canonical_json
from orchestrator.store.base import RunStore

WORK = "cadenza.work"


async def pack(
    store: RunStore, work: Assignment, *, source: str, pin: str, cause: Cause
) -> Envelope:
    """Put an assignment into an envelope; what exceeds a message goes into the run store."""
    data = canonical_json(asdict(work))
    extra = {"agent": work.agent, "pin": pin, **cause.header}
    if len(data) > MAX_PAYLOAD_BYTES:
        extra["ref"] = await store.put_blob(data, "application/json")
        data = b""
    return Envelope(
        id=f"{work.run}/{work.subtask}/{work.attempt}",
        type=WORK,
        source=source,
        subject=work.subtask,
        data=data,
        run=work.run,
        attempt=work.attempt,
        deadline=work.deadline,
        trust=work.trust,
        store=store.uuid,
        hop=cause.hop,
        traceparent=cause.parent,
        extra=extra,
    )


async def unpack(store: RunStore, envelope: Envelope) -> Assignment:
    """Read an assignment from an envelope.

    Raises:
        ValueError: The payload is not an assignment.
    """
    ref = envelope.extra.get("ref")
    try:
        raw = envelope.data if ref is None else await store.blob(ref)
        return assignment_from_json(json.loads(raw))
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise ValueError(f"message {envelope.id!r} is not a work message: {exc}") from exc


def assignment_from_json(data: dict[str, Any]) -> Assignment:
    """Read the plain-JSON form of an assignment."""
    return Assignment(
        **{
            **data,
            "inputs": tuple(Input(**i) for i in data["inputs"]),
            "children": {k: Input(**v) for k, v in data["children"].items()},
            "answers": {k: Answer(**v) for k, v in data["answers"].items()},
            "files": tuple(Blob(**f) for f in data["files"]),
            "failure": None if data["failure"] is None else Input(**data["failure"]),
        }
    )
