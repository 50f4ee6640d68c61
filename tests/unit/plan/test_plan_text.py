"""Plans in the words of small models."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.outcome import PlannedSubtask
from orchestrator.plan import degrade, validate_plan
from orchestrator.plan_text import parse_plan

DATA = Path(__file__).parents[2] / "data" / "plan_replies.jsonl"
REPLIES = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
TEAM = ("researcher", "calculator", "writer")
ONE = PlannedSubtask("a", "writer", "Write.", ("b",))


def problems_of(text: str) -> str:
    try:
        plan = parse_plan(text)
    except ValueError as exc:
        return str(exc)
    return "; ".join(validate_plan(plan, agents=TEAM))


@pytest.mark.parametrize("reply", REPLIES, ids=lambda r: r["id"])
def test_recorded_replies_are_read_or_refused_with_the_reason(reply: dict[str, Any]) -> None:
    problems = problems_of(reply["text"])
    if reply["problem"] is None:
        assert problems == ""
    else:
        assert reply["problem"] in problems


@pytest.mark.parametrize("reply", REPLIES, ids=lambda r: r["id"])
def test_recorded_replies_always_degrade_to_a_valid_plan(reply: dict[str, Any]) -> None:
    try:
        plan = parse_plan(reply["text"])
    except ValueError:
        plan = None
    fitted = degrade(plan, reply["task"], TEAM)
    assert validate_plan(fitted, agents=TEAM) == []
    assert len(fitted) == (1 if plan is None else len(plan))


@pytest.mark.parametrize(
    "item",
    [
        {"id": "a", "agent": "writer", "task": "Write.", "after": ["b"]},
        {"step_id": "a", "assignee": "writer", "description": "Write.", "depends_on": ["b", "b"]},
        {"step": "a", "role": " writer ", "instruction": "Write.", "dependencies": "b"},
        {"name": "a", "assigned_to": "writer", "objective": " Write. ", "needs": [{"id": "b"}]},
        {"id": "a", "worker": "writer", "action": "Write.", "requires": "b, b,"},
        {"id": "a", "agent": "writer", "task": "Write.", "after": None, "dependsOn": ["b"]},
    ],
)
@pytest.mark.parametrize("key", ["subtasks", "steps", "tasks", "plan"])
def test_other_names_of_the_keys_are_understood(key: str, item: dict[str, Any]) -> None:
    assert parse_plan({key: [item]}) == (ONE,)
    assert parse_plan([item]) == (ONE,)
    assert parse_plan({"plan": {key: [item]}}) == (ONE,)


STEP = '{"id": "a", "agent": "writer", "task": "Write.", "after": ["b"]}'


@pytest.mark.parametrize(
    "text",
    [
        f'{{"subtasks": [{STEP}]}}',
        f'Sure! [see below]\n```json\n{{"steps": [{STEP}]}}\n```\nGood luck {{all}} of you.',
        f'<think>{{"steps": [</think>{{"steps": [{STEP}]}}',
        f'First {{"steps": []}}, no, rather: {{"steps": [{STEP}]}}',
        f"Final Answer: {STEP}",
        f"[{STEP}]",
        '{"steps": {"a": {"agent": "writer", "task": "Write.", "after": ["b"]}}}',
    ],
)
def test_a_plan_is_found_in_what_surrounds_it(text: str) -> None:
    assert parse_plan(text) == (ONE,)


def test_steps_on_lines_of_their_own_are_one_plan() -> None:
    text = '{"id": 1, "agent": "x", "task": "A"}\n{"id": 2, "agent": "x", "task": "B"}'
    assert [item.id for item in parse_plan(text)] == ["1", "2"]


def test_missing_ids_are_numbered_and_missing_agents_stay_missing() -> None:
    assert parse_plan(["Look it up", {"task": "Write"}]) == (
        PlannedSubtask("s1", "", "Look it up"),
        PlannedSubtask("s2", "", "Write"),
    )


@given(st.integers(1, len(f'{{"steps": [{STEP}, {STEP}]}}') - 1))
def test_cut_json_is_never_completed(end: int) -> None:
    text = f'{{"steps": [{STEP}, {STEP}]}}'[:end]
    with pytest.raises(ValueError, match=r"cut off|no JSON"):
        parse_plan(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I cannot do that.", "no JSON"),
        ("", "no JSON"),
        ('{"answer": 42}', "no JSON"),
        ('{"steps": [{"id": "a",}]}', "cannot be read"),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_plan(text)


@pytest.mark.parametrize("value", [None, 7, {"a": 1}, [1, 2], {"steps": "all"}])
def test_values_that_are_no_plan_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_plan(value)


def test_half_a_surrogate_pair_is_replaced() -> None:
    (item,) = parse_plan('{"steps": [{"id": "a", "agent": "w", "task": "x\\ud83dy"}]}')
    assert item.task == "x?y"


def test_join_and_deadline_are_kept() -> None:
    (item,) = parse_plan([{"id": "a", "agent": "w", "task": "t", "join": "any", "deadline_s": 2}])
    assert (item.join, item.deadline_s) == ("any", 2.0)


@given(st.text(alphabet='{}[]":,\\ as1\n') | st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        plan = parse_plan(text)
    except ValueError:
        return
    assert all(isinstance(item, PlannedSubtask) for item in plan)
