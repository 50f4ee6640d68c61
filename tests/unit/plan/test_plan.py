"""Checking plans, degrading them, and the planner's output type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.assignment import Assignment, Input
from agents.errors import InvalidOutput
from agents.outcome import PlannedSubtask
from agents.task_text import render_task
from orchestrator.plan import (
    Plan,
    PlanOutput,
    degrade,
    find_cycle,
    plan_schema,
    plan_to_json,
    validate_plan,
)
from orchestrator.plan_text import parse_plan

TEAM = ("researcher", "calculator", "writer")


def step(id_: str, *after: str, agent: str = "writer", task: str = "Do it.") -> PlannedSubtask:
    return PlannedSubtask(id_, agent, task, after)


VALID = (step("a"), step("b"), step("c", "a", "b", task="Join {{a}} and {{ b }}: {{task}}"))


def test_a_valid_plan_has_no_problem() -> None:
    assert validate_plan(VALID, agents=TEAM) == []


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ((), ["no subtask"]),
        ((step("a"), step("a")), ["'a' is given to two subtasks"]),
        ((step("a", "a"),), ["'a' depends on itself"]),
        (
            (step("find"), step("b", "fimd")),
            ["'fimd', which does not exist (did you mean 'find'?)"],
        ),
        ((step("a", "c"), step("b", "a"), step("c", "b")), ["a → c → b → a"]),
        ((step("a", agent="writr"),), ["'writr' (did you mean 'writer'?)"]),
        ((step("a", agent="cook"),), ["'cook' (known: calculator, researcher, writer)"]),
        (tuple(step(f"s{i}") for i in range(33)), ["33 subtasks, more than 32"]),
        ((step("a/b"),), ["'a/b' cannot be the id"]),
        ((step("a b"),), ["'a b' cannot be the id"]),
        ((step(""),), ["'' cannot be the id"]),
        ((step("x" * 65),), ["cannot be the id"]),
        ((step("task"),), ["'task' cannot be the id"]),
        ((step("a", task=" \n"),), ["'a' does not say what to do"]),
        ((step("a"), step("b", task="Use {{a}}")), ["{{a}} names none", "add 'a' to them"]),
        ((step("a"), step("b", "a", task="Use {{aa}}")), ["{{aa}} names none", "mean 'a'?"]),
        ((PlannedSubtask("a", "writer", "x", deadline_s=0.0),), ["deadline of 0.0 s"]),
        ((PlannedSubtask("a", "writer", "x", deadline_s=float("nan")),), ["deadline of nan s"]),
        ((step("a", "b", agent="x"), step("b", "z")), ["agent is named 'x'", "depends on 'z'"]),
    ],
)
def test_each_problem_is_named(plan: Plan, said: list[str]) -> None:
    problems = "\n".join(validate_plan(plan, agents=TEAM))
    assert [words for words in said if words not in problems] == []


def test_a_replan_may_depend_on_what_is_completed_and_call_it_by_its_last_segment() -> None:
    plan = (step("x", "plan/a", task="Go on from {{a}} or {{plan/a}}"),)
    assert validate_plan(plan, agents=TEAM, existing=("plan/a",)) == []
    assert validate_plan(plan, agents=TEAM) != []


def test_a_circle_is_found_behind_a_chain_of_two_thousand() -> None:
    chain = tuple(step(f"n{i}", f"n{i + 1}") for i in range(2_000))
    assert find_cycle((*chain, step("n2000"))) == ()
    assert find_cycle((*chain, step("n2000", "n1999"))) == ("n1999", "n2000", "n1999")


IDS = st.sampled_from(["a", "b", "s1", "s2", "a b", "", "task", "x" * 70])
TASKS = st.sampled_from(["Do it.", "", " ", "Use {{a}}", "{{s1}} {{nope}}", "{{task}}"]) | st.text()
ITEMS = st.builds(
    PlannedSubtask,
    id=IDS | st.text(max_size=5),
    agent=st.sampled_from([*TEAM, "WRITER", "cook", ""]),
    task=TASKS,
    after=st.lists(IDS, max_size=3).map(tuple),
)


@given(st.none() | st.lists(ITEMS, max_size=40).map(tuple), st.text(), st.integers(1, 32))
def test_a_degraded_plan_is_always_valid(plan: Plan | None, task: str, most: int) -> None:
    fitted = degrade(plan, task, TEAM, max_subtasks=most)
    assert validate_plan(fitted, agents=TEAM, max_subtasks=most) == []
    assert all(fitted[i].id in fitted[i + 1].after for i in range(len(fitted) - 1))


@given(st.lists(ITEMS, max_size=8).map(tuple))
def test_a_plan_without_problems_can_be_put_in_order(plan: Plan) -> None:
    if validate_plan(plan, agents=TEAM):
        return
    done: set[str] = set()
    for _ in plan:
        done |= {item.id for item in plan if set(item.after) <= done}
    assert done == {item.id for item in plan}


def test_degrading_keeps_what_is_usable_in_order() -> None:
    plan = (
        step("a", "c", agent="Writer"),
        step("b", agent="cook"),
        step("c", "a", task="Use {{b}} and {{a}}"),
        step("c", task="Again {{c}}"),
    )
    assert degrade(plan, "whole", TEAM) == (
        step("a"),
        step("c", "a", task="Use b and {{a}}"),
        step("c-2", "c", task="Again {{c}}"),
    )


def test_degrading_nothing_gives_the_whole_task_to_the_first_agent() -> None:
    assert degrade(None, "Compare.", TEAM) == (PlannedSubtask("s1", "researcher", "Compare."),)
    (only,) = degrade((step("a", agent="cook"),), "Say {{x}}", TEAM)
    assert only.task == "{{task}}"


def assignment(*inputs: str) -> Assignment:
    found = tuple(Input(name, "writer", "completed", output=1) for name in inputs)
    return Assignment("r", "plan", 1, "plan", "planner", "t", "Compare.", inputs=found)


def test_the_output_type_spawns_a_valid_plan() -> None:
    output = PlanOutput(TEAM)
    text = '{"subtasks": [{"id": "a", "agent": "Writer", "task": "Do it.", "after": []}]}'
    done = output.complete(output.parse(text, assignment()), assignment())
    assert done.spawns == (step("a"),)
    assert done.output == {
        "subtasks": [{"id": "a", "agent": "writer", "task": "Do it.", "after": []}]
    }


def test_the_output_type_tells_the_model_everything_that_is_wrong() -> None:
    text = '{"steps": [{"id": "a", "agent": "cook", "task": "x", "after": ["q"]}]}'
    with pytest.raises(InvalidOutput, match=r"(?s)named 'cook'.*'q', which does not exist"):
        PlanOutput(TEAM).parse(text, assignment())
    with pytest.raises(InvalidOutput, match="not a plan"):
        PlanOutput(TEAM).parse("no", assignment())


def test_the_output_type_bounds_the_number_of_subtasks() -> None:
    text = (
        '[{"id": "a", "agent": "writer", "task": "x"}, {"id": "b", "agent": "writer", "task": "y"}]'
    )
    with pytest.raises(InvalidOutput, match="more than 1"):
        PlanOutput(TEAM, max_subtasks=1).parse(text, assignment())


def test_a_replan_names_completed_subtasks_by_their_last_segment() -> None:
    text = '[{"id": "x", "agent": "writer", "task": "Use {{a}}", "after": ["a"]}]'
    plan = PlanOutput(TEAM).parse(text, assignment("plan/a", "plan/b"))
    assert plan == (step("x", "plan/a", task="Use {{a}}"),)


def test_giving_up_degrades_with_a_warning() -> None:
    output = PlanOutput(TEAM)
    circle = '[{"id": "a", "agent": "writer", "task": "x", "after": ["b"]},'
    circle += ' {"id": "b", "agent": "writer", "task": "y", "after": ["a"]}]'
    done = output.give_up(circle, assignment(), "a circle")
    assert done is not None
    assert done.spawns == (step("a", task="x"), step("b", "a", task="y"))
    assert done.warnings == (
        "the planner gave no valid plan, so 2 of 2 subtasks run one after the other: a circle",
    )
    done = output.give_up("nothing", assignment(), "no JSON")
    assert done is not None
    assert done.spawns == (PlannedSubtask("s1", "researcher", "Compare."),)
    assert "agent 'researcher' does the whole task" in done.warnings[0]


def test_the_plain_json_form_can_be_read_again() -> None:
    plan = (*VALID, PlannedSubtask("d", "writer", "x", ("a",), "any", 3.0))
    assert parse_plan(plan_to_json(plan)) == plan


def test_the_schema_requires_every_key_as_strict_providers_ask() -> None:
    item = plan_schema(TEAM)["properties"]["subtasks"]["items"]
    assert set(item["required"]) == set(item["properties"])
    assert item["properties"]["agent"]["enum"] == list(TEAM)


DATA = st.text() | st.sampled_from(["{{a}}", "{{b}}", "{{task}}", "$2", "\\1", "\\g<0>", "$10"])


@given(DATA, DATA, DATA)
def test_what_is_put_into_a_task_is_never_scanned_again(a: str, b: str, whole: str) -> None:
    inputs = tuple(Input(f"p/{n}", "w", "completed", output=o) for n, o in (("a", a), ("b", b)))
    given_task = "$10 for {{a}}, then {{ b }} of {{task}}; {{c}}"
    todo = Assignment("r", "p/c", 1, "act", "w", given_task, whole, inputs=inputs)
    assert render_task(todo) == f"$10 for {a}, then {b} of {whole}; {{{{c}}}}"
