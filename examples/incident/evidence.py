"""Types of the findings in the incident example, and the agent that checks them without a model."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from agents.function import agent

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Evidence(BaseModel):
    """Log lines, each with its file and line number, in the order of the file."""

    lines: list[str] = Field(min_length=1)


class Cause(BaseModel):
    """What is suspected."""

    job: str = Field(description="Name of the job, as the logs spell it.")
    error: str = Field(description="The error as the service logged it.")
    why: str


@agent
async def check(inputs: dict[str, Any]) -> dict[str, Any]:
    """Checks by the clock whether the suspected job was at work whenever an error was logged."""
    job = inputs["cause"]["job"]
    errors = [_time(line) for line in inputs["failures"]["lines"]]
    own = [line for line in inputs["jobs"]["lines"] if f"job={job} " in line]
    begun = [_time(line) for line in own if " begins" in line]
    ended = [_time(line) for line in own if " ends" in line]
    spans = list(zip(begun, ended, strict=False))
    inside = [e for e in errors if any(begin <= e <= end for begin, end in spans)]
    return {
        "holds": bool(spans) and len(inside) == len(errors),
        "inside": len(inside),
        "errors": len(errors),
        "job_s": round(sum((end - begin).total_seconds() for begin, end in spans), 2),
        "first": min(errors).isoformat(timespec="milliseconds"),
        "last": max(errors).isoformat(timespec="milliseconds"),
    }


def _time(line: str) -> datetime:
    found = _TIME.search(line)
    if found is None:
        raise ValueError(f"no time in the line {line!r}")
    return datetime.fromisoformat(found[0])
