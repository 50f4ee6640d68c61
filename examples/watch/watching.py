"""The agent that raises alerts without a model, and the type of an enriched case."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from agents.context import RunContext
from agents.function import agent

LOG = Path(__file__).with_name("data") / "access.log"
LIMIT = 10
_LINE = re.compile(
    r'(?P<address>\S+) - - \[(?P<time>[^\]]+)\] "\S+ (?P<path>\S+)[^"]*" (?P<status>\d+)'
)
_RULES = {"401": "refused logins", "404": "missing pages"}


class Case(BaseModel):
    """An alert with its severity and with whom it concerns."""

    address: str
    rule: str
    count: int
    severity: Literal["low", "medium", "high"]
    host: str
    owner: str


@agent
async def scan(ctx: RunContext) -> dict[str, int]:
    """Raises an alert for each address with ten or more refused logins or missing pages."""
    lines = (await asyncio.to_thread(LOG.read_text, encoding="utf-8")).splitlines()
    hits = [found for line in lines if (found := _LINE.match(line)) is not None]
    times: dict[tuple[str, str], list[str]] = defaultdict(list)
    for hit in hits:
        if hit["status"] in _RULES:
            times[hit["address"], hit["status"]].append(hit["time"])
    alerts = 0
    for (address, status), seen in sorted(times.items()):
        if len(seen) < LIMIT:
            continue
        alerts += 1
        last = [hit["status"] for hit in hits if hit["address"] == address][-1]
        ctx.report(
            "alert",
            {
                "address": address,
                "rule": _RULES[status],
                "count": len(seen),
                "first": seen[0],
                "last": seen[-1],
                "then_accepted": last == "200",
            },
        )
    return {"lines": len(hits), "alerts": alerts}
