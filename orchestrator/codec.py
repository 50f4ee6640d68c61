"""Facts, outcomes and planned subtasks as plain JSON, and the canonical bytes that are hashed."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from agents.assignment import Answer
from agents.outcome import (
    AttemptCancelled,
    ChildRequest,
    Completed,
    Failed,
    Finding,
    InputRequest,
    Outcome,
    Parked,
)
from agents.usage import Usage
from orchestrator.facts import Answered, CancelAsked, Ended, Fact, Submitted
from orchestrator.shape import RunShape, planned_from_json


def canonical_json(value: Any) -> bytes:
    """Return the one JSON text of a value: keys sorted, no spaces, UTF-8.

    Raises:
        ValueError: The value is not JSON (NaN, a circular reference or another type).
    """
    try:
        text = json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
    except TypeError as exc:
        raise ValueError(f"not a JSON value: {exc}") from exc
    return text.encode("utf-8", "replace")


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hex."""
    return sha256(canonical_json(value)).hexdigest()


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """Return the plain-JSON form of an outcome, tagged by ``type``."""
    return {"type": type(outcome).__name__, **asdict(outcome)}


def outcome_from_json(data: dict[str, Any]) -> Outcome:
    """Read the plain-JSON form of an outcome.

    Raises:
        ValueError: The type is none of the four.
    """
    rest = {k: v for k, v in data.items() if k != "type"}
    rest["usage"] = Usage.from_json(rest["usage"])
    match data["type"]:
        case "Completed":
            rest["findings"] = tuple(Finding(**f) for f in rest["findings"])
            rest["spawns"] = tuple(planned_from_json(s) for s in rest["spawns"])
            rest["warnings"] = tuple(rest["warnings"])
            return Completed(**rest)
        case "Failed":
            return Failed(**rest)
        case "AttemptCancelled":
            return AttemptCancelled(**rest)
        case "Parked":
            rest["inputs"] = tuple(InputRequest(**i) for i in rest["inputs"])
            rest["children"] = tuple(ChildRequest(**c) for c in rest["children"])
            return Parked(**rest)
        case kind:
            raise ValueError(f"unknown outcome {kind!r}")


def fact_to_json(fact: Fact) -> dict[str, Any]:
    """Return the plain-JSON form of a fact that travels through an inbox.

    Raises:
        ValueError: The fact never lies in an inbox (dispatches and time do not).
    """
    match fact:
        case Submitted():
            data = {"run": fact.run, "shape": fact.shape.to_json(), "task": fact.task}
            return {"type": "Submitted", **data, "data": fact.data}
        case Ended():
            return {
                "type": "Ended",
                "subtask": fact.subtask,
                "attempt": fact.attempt,
                "outcome": outcome_to_json(fact.outcome),
                "output_hash": fact.output_hash,
                "worker": fact.worker,
            }
        case CancelAsked():
            return {"type": "CancelAsked", "reason": fact.reason}
        case Answered():
            answer = asdict(fact.answer)
            return {"type": "Answered", "input_id": fact.input_id, "answer": answer, "by": fact.by}
        case _:
            raise ValueError(f"a fact of type {type(fact).__name__} has no place in an inbox")


def fact_from_json(data: dict[str, Any], time: float) -> Fact:
    """Read a fact from an inbox; it happened, for the rules, at the given store time.

    Raises:
        ValueError: The type is unknown.
    """
    match data["type"]:
        case "Submitted":
            shape = RunShape.from_json(data["shape"])
            return Submitted(time, data["run"], shape, data["task"], data["data"])
        case "Ended":
            outcome = outcome_from_json(data["outcome"])
            where = (data["subtask"], data["attempt"])
            return Ended(time, *where, outcome, data["output_hash"], data["worker"])
        case "CancelAsked":
            return CancelAsked(time, data["reason"])
        case "Answered":
            return Answered(time, data["input_id"], Answer(**data["answer"]), data["by"])
        case kind:
            raise ValueError(f"unknown fact {kind!r}")
