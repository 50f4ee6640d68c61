"""The clock tools, on a clock that stands still."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agents.context import RunContext
from agents.toolbox.clock import get_current_date, get_current_time

NOW = datetime(2026, 12, 31, 20, 30, tzinfo=UTC)
CTX = RunContext("r", "s", "a", 1, resources={"clock": lambda: NOW})


def test_the_time_is_told_in_the_zone_asked_for() -> None:
    assert get_current_time(CTX) == {
        "time": "2026-12-31T20:30:00+00:00",
        "weekday": "Thursday",
        "timezone": "UTC",
    }
    assert get_current_time(CTX, "asia/tokyo")["time"] == "2027-01-01T05:30:00+09:00"
    assert get_current_date(CTX, "Asia/Tokyo") == {"date": "2027-01-01", "weekday": "Friday"}
    assert get_current_date(CTX, "America/New York")["date"] == "2026-12-31"


def test_the_local_zone_and_the_systems_clock_are_the_defaults_of_a_machine() -> None:
    local = datetime.fromisoformat(get_current_time(CTX, "local")["time"])
    assert local == NOW
    told = datetime.fromisoformat(get_current_time(RunContext("r", "s", "a", 1))["time"])
    assert abs((datetime.now(UTC) - told).total_seconds()) < 5


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("Tokyo", r"no time zone 'Tokyo' \(did you mean 'Asia/Tokyo'\?\)"),
        ("Asia/Tokio", "did you mean 'Asia/Tokyo'"),
        ("../../etc/passwd", "no time zone"),
        ("/etc/localtime", "no time zone"),
        ("", "no time zone ''"),
    ],
)
def test_an_unknown_zone_is_an_error_with_near_names(zone: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        get_current_time(CTX, zone)


def test_the_context_is_hidden_from_the_model() -> None:
    assert list(get_current_time.parameters["properties"]) == ["timezone"]
