"""The clock tools: the time and the date in a time zone.

A resource named ``clock``, a function that returns an aware ``datetime``, takes the place of the
system's clock; tests and replays give one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

from agents.context import RunContext
from agents.tool_arguments import near
from agents.tool_decorator import tool


def _now(timezone: str, ctx: RunContext) -> datetime:
    clock = ctx.resources.get("clock")
    now: datetime = clock() if clock is not None else datetime.now(UTC)
    if timezone.lower() == "local":
        return now.astimezone()
    return now.astimezone(_zone(timezone))


def _zone(name: str) -> ZoneInfo:
    zones = available_timezones()
    by_lower = {zone.lower(): zone for zone in zones}
    wanted = name.strip().replace(" ", "_").lower()
    if wanted in by_lower:
        return ZoneInfo(by_lower[wanted])
    cities = sorted(zone for zone in zones if zone.lower().rsplit("/", 1)[-1] == wanted)
    hint = f" (did you mean {cities[0]!r}?)" if cities else near(name, zones)
    raise ValueError(f"there is no time zone {name!r}{hint}; give an IANA name such as Asia/Tokyo")


@tool(timeout_s=5, pollable=True)
def get_current_time(ctx: RunContext, timezone: str = "UTC") -> dict[str, str]:
    """Tell the time now.

    Args:
        ctx: Its resource ``clock`` is asked, if there is one.
        timezone: IANA name such as Asia/Tokyo, or local for this machine's.
    """
    now = _now(timezone, ctx)
    return {
        "time": now.isoformat(timespec="seconds"),
        "weekday": now.strftime("%A"),
        "timezone": now.tzname() or timezone,
    }


@tool(timeout_s=5, pollable=True)
def get_current_date(ctx: RunContext, timezone: str = "UTC") -> dict[str, str]:
    """Tell today's date.

    Args:
        ctx: Its resource ``clock`` is asked, if there is one.
        timezone: IANA name such as Asia/Tokyo, or local for this machine's.
    """
    now = _now(timezone, ctx)
    return {"date": now.date().isoformat(), "weekday": now.strftime("%A")}
