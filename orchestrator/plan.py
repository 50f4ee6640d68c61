"""Plans: checking them, making them fit to run, and the planner's output type."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.assignment import Assignment
from agents.errors import InvalidOutput
from agents.outcome import Completed, PlannedSubtask
from orchestrator.plan_text import parse_plan
from orchestrator.settings_errors import suggest

Plan = tuple[PlannedSubtask, ...]

MAX_SUBTASKS = 32
RUN_TASK = "task"  # {{task}} is the run's task, so no subtask is called so
TOKEN = re.compile(r"\{\{\s*([\w./-]+)\s*\}\}")
_ID = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """One thing that is wrong with a plan.

    Attributes:
        message: What is wrong.
        hint: What to do next.
        index: Position of the subtask, or None for the plan as a whole.
        key: Which part of the subtask.
    """

    message: str
    hint: str = ""
    index: int | None = None
    key: Literal["id", "agent", "task", "after", "deadline_s"] = "id"

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


def validate_plan(
    plan: Plan,
    *,
    agents: Collection[str],
    max_subtasks: int = MAX_SUBTASKS,
    existing: Collection[str] = (),
) -> list[str]:
    """Return what is wrong with a plan, in words for its author; empty when nothing is.

    Args:
        plan: The plan.
        agents: Names that it may use.
        max_subtasks: How many subtasks it may have.
        existing: Ids of completed subtasks that it may depend on, for a replan.
    """
    found = plan_problems(plan, agents=agents, max_subtasks=max_subtasks, existing=existing)
    return [str(problem) for problem in found]


def plan_problems(
    plan: Plan,
    *,
    agents: Collection[str],
    max_subtasks: int = MAX_SUBTASKS,
    existing: Collection[str] = (),
) -> list[PlanProblem]:
    """Return what is wrong with a plan, each with its place; arguments as ``validate_plan``."""
    if not plan:
        return [PlanProblem("the plan has no subtask", "give at least one")]
    found: list[PlanProblem] = []
    if len(plan) > max_subtasks:
        message = f"the plan has {len(plan)} subtasks, more than {max_subtasks}"
        found.append(PlanProblem(message, "join some"))
    ids: dict[str, int] = {}
    for i, item in enumerate(plan):
        if item.id in ids:
            message = f"the id {item.id!r} is given to two subtasks"
            found.append(PlanProblem(message, "give each its own", i))
        ids.setdefault(item.id, i)
    known = {*ids, *existing}
    for i, item in enumerate(plan):
        found += _own_problems(i, item, agents)
        found += _dependency_problems(i, item, known)
    cycle = find_cycle(plan)
    if cycle:
        message = f"the dependencies run in a circle: {' → '.join(cycle)}"
        found.append(PlanProblem(message, "remove one of them", ids[cycle[0]], "after"))
    return found


def _own_problems(i: int, item: PlannedSubtask, agents: Collection[str]) -> Iterator[PlanProblem]:
    if not _ID.fullmatch(item.id) or item.id == RUN_TASK:
        hint = "letters, digits, '.', '-' and '_', at most 64; not 'task'"
        yield PlanProblem(f"{item.id!r} cannot be the id of a subtask", hint, i)
    if item.agent not in agents:
        message = f"subtask {item.id!r}: no agent is named {item.agent!r}"
        yield PlanProblem(message, suggest(item.agent, agents), i, "agent")
    if not item.task.strip():
        message = f"subtask {item.id!r} does not say what to do"
        yield PlanProblem(message, "give it a task", i, "task")
    if item.deadline_s is not None and not 0 < item.deadline_s < math.inf:
        message = f"subtask {item.id!r}: the deadline of {item.deadline_s} s is no time"
        yield PlanProblem(message, "give seconds above 0", i, "deadline_s")


def _dependency_problems(i: int, item: PlannedSubtask, known: set[str]) -> Iterator[PlanProblem]:
    for dep in dict.fromkeys(item.after):
        if dep == item.id:
            message = f"subtask {item.id!r} depends on itself"
            yield PlanProblem(message, f"remove {dep!r} from its dependencies", i, "after")
        elif dep not in known:
            message = f"subtask {item.id!r} depends on {dep!r}, which does not exist"
            yield PlanProblem(message, suggest(dep, known - {item.id}), i, "after")
    names = {RUN_TASK, *item.after, *(dep.rsplit("/", 1)[-1] for dep in item.after)}
    for token in dict.fromkeys(TOKEN.findall(item.task)):
        if token not in names:
            message = f"subtask {item.id!r}: {{{{{token}}}}} names none of its dependencies"
            hint = f"add {token!r} to them" if token in known else suggest(token, item.after)
            yield PlanProblem(message, hint, i, "task")


def find_cycle(plan: Plan) -> tuple[str, ...]:
    """Return the ids along one circle, the first again at the end; empty when there is none.

    A subtask that depends on itself alone is no circle here: that has its own message.
    """
    left = {item.id: {d for d in item.after if d != item.id} for item in reversed(plan)}
    left = dict(reversed(left.items()))
    free = [key for key, deps in left.items() if not deps & left.keys()]
    while free:
        for key in free:
            del left[key]
        free = [key for key, deps in left.items() if not deps & left.keys()]
    if not left:
        return ()
    walk = [next(iter(left))]
    while walk[-1] not in walk[:-1]:
        walk.append(min(left[walk[-1]] & left.keys()))
    return tuple(walk[walk.index(walk[-1]) :])


def degrade(
    plan: Plan | None,
    task: str,
    agents: Sequence[str],
    *,
    max_subtasks: int = MAX_SUBTASKS,
) -> Plan:
    """Return a plan that is valid whatever was given: the usable subtasks, one after the other.

    Subtasks of unknown agents and those that do not say what to do are left out. With none left,
    the first agent does the whole task.

    Args:
        plan: What the planner gave, or None.
        task: The run's task.
        agents: Names that the plan may use, at least one.
        max_subtasks: How many subtasks to keep.
    """
    kept: list[PlannedSubtask] = []
    ids: dict[str, str] = {}  # as given, to as kept
    for item in fit_agents(plan or (), agents):
        if len(kept) == max_subtasks:
            break
        if item.agent not in agents or not item.task.strip():
            continue
        previous = kept[-1].id if kept else None
        named = [*item.after, *(t for t in TOKEN.findall(item.task) if t != RUN_TASK)]
        earlier = [ids[name] for name in named if name in ids]
        after = tuple(dict.fromkeys([*earlier, *([previous] if previous else [])]))
        text = TOKEN.sub(lambda m: _token(m, ids), item.task)
        new_id = _free_id(item.id, {k.id for k in kept}, len(kept) + 1)
        ids[item.id] = new_id
        kept.append(PlannedSubtask(new_id, item.agent, text, after))
    if kept:
        return tuple(kept)
    whole = task if task.strip() and not TOKEN.search(task) else f"{{{{{RUN_TASK}}}}}"
    return (PlannedSubtask("s1", agents[0], whole),)


def _token(match: re.Match[str], ids: dict[str, str]) -> str:
    if match[1] == RUN_TASK:
        return match[0]
    return f"{{{{{ids[match[1]]}}}}}" if match[1] in ids else match[1]


def _free_id(wanted: str, taken: set[str], number: int) -> str:
    base = wanted if _ID.fullmatch(wanted) and wanted != RUN_TASK else f"s{number}"
    free, k = base, 2
    while free in taken:
        free, k = f"{base[:58]}-{k}", k + 1
    return free


def fit_agents(plan: Plan, agents: Collection[str]) -> Plan:
    """Return the plan with agents named as they are, where only the letter case differs."""
    names = {name.casefold(): name for name in agents}
    return tuple(
        item
        if item.agent in agents
        else replace(item, agent=names.get(item.agent.strip().casefold(), item.agent))
        for item in plan
    )


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return the plain-JSON form: ``{"subtasks": [{id, agent, task, after, …}]}``."""
    subtasks = []
    for item in plan:
        rest = {"join": item.join} if item.join != "all" else {}
        late = {} if item.deadline_s is None else {"deadline_s": item.deadline_s}
        own = {"id": item.id, "agent": item.agent, "task": item.task, "after": list(item.after)}
        subtasks.append(own | rest | late)
    return {"subtasks": subtasks}


class PlanOutput:
    """The output type of planners: a valid plan, or a degraded one with a warning.

    Attributes:
        schema: JSON Schema of a plan.
    """

    def __init__(self, agents: Sequence[str], *, max_subtasks: int = MAX_SUBTASKS) -> None:
        """Args: the names that a plan may use (at least one), and how many subtasks."""
        self._agents, self._max = tuple(agents), max_subtasks
        self.schema: dict[str, Any] | None = plan_schema(self._agents)

    def parse(self, text: str, assignment: Assignment) -> Plan:
        """Read and check a plan.

        Raises:
            InvalidOutput: With everything that is wrong, for the model.
        """
        try:
            plan = fit_agents(parse_plan(text), self._agents)
        except ValueError as exc:
            raise InvalidOutput(f"This is not a plan: {exc}") from exc
        existing = tuple(item.subtask for item in assignment.inputs)
        plan = tuple(replace(i, after=_whole_ids(plan, i.after, existing)) for i in plan)
        problems = validate_plan(
            plan, agents=self._agents, max_subtasks=self._max, existing=existing
        )
        if problems:
            listed = "\n".join(f"- {problem}" for problem in problems[:10])
            raise InvalidOutput(f"The plan cannot be used:\n{listed}\nWrite the whole plan again.")
        return plan

    def complete(self, value: Plan, assignment: Assignment) -> Completed:
        """Return the outcome that spawns the plan."""
        return Completed(output=plan_to_json(value), spawns=value)

    def give_up(self, text: str, assignment: Assignment, error: str) -> Completed | None:
        """Return the outcome that spawns what can be used of a plan that stayed invalid."""
        try:
            given: Plan | None = parse_plan(text)
        except ValueError:
            given = None
        plan = degrade(given, assignment.run_task, self._agents, max_subtasks=self._max)
        kept = f"{len(plan)} of {len(given or ())} subtasks run one after the other"
        if given is None or (len(plan) == 1 and plan[0].task == assignment.run_task):
            kept = f"agent {plan[0].agent!r} does the whole task"
        warning = f"the planner gave no valid plan, so {kept}: {error}"
        return replace(self.complete(plan, assignment), warnings=(warning,))


def _whole_ids(plan: Plan, after: tuple[str, ...], existing: tuple[str, ...]) -> tuple[str, ...]:
    """Let a replan name a completed subtask by the last segment of its id."""
    own = {item.id for item in plan}
    whole = []
    for dep in after:
        ends = [other for other in existing if other.rsplit("/", 1)[-1] == dep]
        whole.append(ends[0] if dep not in own and len(ends) == 1 else dep)
    return tuple(whole)


def plan_schema(agents: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of a plan; every key required, as strict providers ask."""
    about = {
        "id": {"type": "string", "description": "short and unique, for example s1"},
        "agent": {"type": "string", "enum": list(agents)},
        "task": {
            "type": "string",
            "description": "what to do; {{s1}} stands for the result of s1, listed in after",
        },
        "after": {
            "type": "array",
            "items": {"type": "string"},
            "description": "ids of the subtasks whose results this one needs",
        },
    }
    subtasks = {"type": "array", "items": _strict(about), "minItems": 1}
    return _strict({"subtasks": subtasks})


def _strict(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
