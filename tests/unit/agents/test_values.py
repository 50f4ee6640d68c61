"""Outputs, the task's text, function agents, kinds and the public names."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pydantic import BaseModel

import agents
from agents.assignment import Assignment, Input
from agents.content import Blob
from agents.context import RunContext
from agents.errors import InvalidOutput, ToolDefinitionError, UnsupportedMedia
from agents.function import FunctionAgent, agent
from agents.kinds import PROFILES, limits_for
from agents.outcome import Completed, Failed, Finding
from agents.outputs import SchemaOutput, TextOutput, read_json
from agents.task_text import fence, render_task, task_content
from agents.tool_decorator import tool
from agents.usage import Budget
from tests.unit.agents.kit import MortalJournal, attempt, job


def test_json_is_found_bare_fenced_and_between_words() -> None:
    for text in (
        '{"a": 1}',
        '```json\n{"a": 1}\n```',
        'Here you are: {"a": 1}. Bye',
        '```\n{"a": 1}```',
    ):
        assert read_json(text) == {"a": 1}
    for text in ("none", '{"a": ', ""):
        with pytest.raises(InvalidOutput):
            read_json(text)


def test_a_schema_names_what_is_wrong() -> None:
    output = SchemaOutput(
        {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    )
    assert output.parse('{"n": 1}', job()) == {"n": 1}
    with pytest.raises(InvalidOutput, match=r"\$\.n"):
        output.parse('{"n": "x"}', job())
    with pytest.raises(ValueError, match="not valid"):
        SchemaOutput({"type": "nonsense"})


def test_an_empty_text_is_no_answer() -> None:
    with pytest.raises(InvalidOutput):
        TextOutput().parse(" \n", job())


def given(subtask: str, output: Any, **more: Any) -> Input:
    return Input(subtask, "writer", "completed", output=output, **more)


def test_a_token_is_replaced_once_and_data_is_never_scanned_again() -> None:
    work = job(
        task="It costs $10. Compare {{a}} with {{ plan/b }}; keep {{c}}.",
        inputs=(given("plan/a", "{{b}} $1"), given("plan/b", {"n": 2})),
    )
    assert render_task(work) == 'It costs $10. Compare {{b}} $1 with {"n": 2}; keep {{c}}.'


def test_inputs_that_no_token_names_follow_in_blocks() -> None:
    found = given("plan/a", "low", finding="shortage")
    failed = Input("plan/b", "check", "failed", error="no data")
    text = render_task(job(inputs=(found, failed)))
    assert 'from="plan/a" agent="writer" status="completed" finding="shortage"' in text
    assert "[failed: no data]" in text


def test_data_cannot_close_its_own_fence() -> None:
    inner = fence("input", "evil", {})
    outer = fence("input", inner, {})
    assert outer.count(outer.rsplit("</input ", 1)[1]) == 2
    assert "untrusted" in render_task(job(trust="untrusted"))


def test_files_are_named_and_media_are_taken_or_refused() -> None:
    csv, png = Blob("text/csv", "0" * 64, "a.csv"), Blob("image/png", "1" * 64, "b.png")
    work = job(files=(csv, png))
    content = task_content(work, media_types=("image/*",), tools_read_files=False)
    assert content[1:] == (png,)
    assert "a.csv (text/csv)" in str(content[0])
    with pytest.raises(UnsupportedMedia, match=r"b\.png"):
        task_content(work, media_types=(), tools_read_files=False)
    assert len(task_content(work, media_types=(), tools_read_files=True)) == 1


CALLS: list[Any] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


class Verdict(BaseModel):
    good: bool


@agent
async def validate(task: str, inputs: dict[str, Any], ctx: RunContext) -> Verdict:
    """Check the numbers.

    More words.
    """
    CALLS.append((task, inputs))
    ctx.report("checked", {"n": len(inputs)})
    return Verdict(good=True)


@agent(name="other", description="in a thread")
def blocking(assignment: Assignment) -> str:
    return threading.current_thread().name


@agent
async def broken(task: str) -> None:
    raise KeyError(task)


@agent
async def flaky() -> None:
    error = ConnectionError("again")
    error.retryable = True  # type: ignore[attr-defined]  # what the agent looks for
    raise error


@agent
async def opaque() -> object:
    return object()


async def test_a_function_agent_completes_once() -> None:
    journal = MortalJournal()
    work = job(task="Check {{a}}.", inputs=(given("plan/a", 1), given("x", 2, finding="low")))
    assert (validate.name, validate.description) == ("validate", "Check the numbers.")
    outcome = await attempt(validate, journal, work)
    again = await attempt(validate, journal, work)
    assert outcome == again == Completed({"good": True}, (Finding("checked", {"n": 2}),))
    assert CALLS == [("Check 1.", {"a": 1, "low": 2})]


async def test_a_sync_function_runs_beside_the_loop() -> None:
    outcome = await attempt(blocking)
    assert isinstance(outcome, Completed)
    assert outcome.output != threading.current_thread().name
    assert blocking.name == "other"


@pytest.mark.parametrize(("made", "retryable"), [(broken, False), (flaky, True), (opaque, False)])
async def test_what_a_function_raises_is_its_outcome(made: FunctionAgent, retryable: bool) -> None:
    journal = MortalJournal()
    outcome = await attempt(made, journal)
    assert isinstance(outcome, Failed)
    assert (outcome.error_class, outcome.retryable) == ("agent_raised", retryable)
    assert len(journal.told("error")) == 1


def test_a_parameter_that_nobody_fills_is_refused_at_once() -> None:
    async def odd(temperature: float) -> None: ...

    with pytest.raises(ToolDefinitionError, match="temperature"):
        agent(odd)


def test_profiles_are_presets() -> None:
    @tool(effect="guarded")
    async def wipe() -> str:
        return ""

    @tool
    async def look() -> str:
        return ""

    assert PROFILES["explore"].keep([wipe, look]) == (look,)
    assert limits_for("react", budget=Budget()).max_iterations == 5
    assert limits_for("react", depth="deep", budget=Budget()).max_iterations == 10
    assert limits_for("model", depth="deep", budget=Budget()).max_iterations == 2


def test_the_public_names_are_sorted_and_there() -> None:
    names = agents.__all__
    assert names == sorted(names, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    assert all(hasattr(agents, n) for n in names)
