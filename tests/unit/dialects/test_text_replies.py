"""150 replies of small models, each with what a person reads in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.dialects.base import Parsed
from tests.unit.dialects.toolset import REPLY_TOOLS, read_native, read_text

DATA = Path(__file__).parents[2] / "data"


def _rows(name: str) -> dict[str, dict[str, Any]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


REPLIES = _rows("text_replies.jsonl")
EXPECTED = _rows("text_replies_expected.jsonl")


def _read(number: str) -> Parsed:
    raw, row = REPLIES[number]["raw"], EXPECTED[number]
    tools = REPLY_TOOLS if row.get("tools", True) else ()
    return read_native(raw, tools) if row["dialect"] == "native" else read_text(raw, tools)


def test_every_reply_has_an_expectation() -> None:
    assert list(EXPECTED) == list(REPLIES)
    assert len(REPLIES) == 150


@pytest.mark.parametrize("number", REPLIES)
def test_a_real_reply_is_read_as_a_person_reads_it(number: str) -> None:
    parsed, row = _read(number), EXPECTED[number]
    final = REPLIES[number]["raw"].strip() if "final_is_whole_text" in row else row.get("final")
    assert [[call.name, call.arguments] for call in parsed.calls] == row.get("calls", [])
    assert parsed.final == final
    assert row.get("hint", "") in (parsed.hint or "")
    assert (parsed.hint is None) == ("hint" not in row)
    errors = " ".join(call.error for call in parsed.calls if call.error)
    assert row.get("error", "") in errors
    assert bool(errors) == ("error" in row)
    assert list(parsed.repairs) == row.get("repairs", [])


@pytest.mark.parametrize("number", REPLIES)
def test_the_history_of_a_real_reply_holds_no_invented_observation(number: str) -> None:
    parsed = _read(number)
    if parsed.calls or parsed.final is not None:
        lines = parsed.text.splitlines()
        assert not [line for line in lines if line.startswith(("Observation", "Action Output"))]
        assert sum(line.startswith("Action:") for line in lines) <= 1


@pytest.mark.parametrize(
    "number", [n for n, row in EXPECTED.items() if row["dialect"] == "text" and "calls" in row]
)
def test_what_is_kept_of_a_real_reply_reads_as_the_same_call(number: str) -> None:
    parsed = _read(number)
    again = read_text(parsed.text, REPLY_TOOLS)
    assert [(c.name, c.arguments) for c in again.calls] == [
        (c.name, c.arguments) for c in parsed.calls
    ]
    dropped = [r for r in again.repairs if r.endswith(("_dropped", "_cut"))]
    assert dropped == []
