"""What an agent is given to do one attempt of one subtask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from agents.content import Blob

SubtaskKind = Literal["plan", "act", "synthesize"]


@dataclass(frozen=True, slots=True)
class Input:
    """The result of a dependency or a child, or a finding reacted to.

    Attributes:
        subtask: Id of the subtask it comes from.
        agent: Who made it.
        status: How that subtask ended.
        output: Its output, a JSON value; None unless completed.
        error: Why it did not complete.
        finding: The kind, when this is a finding reacted to.
    """

    subtask: str
    agent: str
    status: Literal["completed", "failed", "cancelled"]
    output: Any = None
    error: str | None = None
    finding: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to an input request.

    Attributes:
        approved: None for a question.
        value: Edited arguments, an answer, or None.
        reason: Given with a denial; the model sees it.
        expired: Nobody answered in time; counts as denied.
    """

    approved: bool | None = None
    value: Any = None
    reason: str = ""
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """One attempt of one subtask.

    Attributes:
        run: Run id.
        subtask: Subtask id, a path such as ``plan/a``.
        attempt: 1, 2, …; the fencing number.
        kind: plan, act or synthesize.
        agent: Agent name.
        task: What to do, with ``{{id}}`` tokens not yet replaced.
        run_task: The task the run was submitted with.
        inputs: Results of dependencies, sorted by subtask id.
        children: Results of children asked so far, by child id.
        answers: Answers of people so far, by input id.
        files: Files that came with the run.
        values: ``--input k=v`` of the run.
        session: Session id, or None.
        trust: ``trusted`` or ``untrusted``: where the task text comes from.
        team: Name to description of the agents a planner or ``ask_agent`` may name.
        failure: For a replan: what failed, and why.
        deadline: Store time (seconds since the epoch) at which the run's wall time ends.
        may_hand_off: False for the synthesizer and for what descends from it.
        generation: Journal generation, from 0.
    """

    run: str
    subtask: str
    attempt: int
    kind: SubtaskKind
    agent: str
    task: str
    run_task: str
    inputs: tuple[Input, ...] = ()
    children: dict[str, Input] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    files: tuple[Blob, ...] = ()
    values: dict[str, str] = field(default_factory=dict)
    session: str | None = None
    trust: Literal["trusted", "untrusted"] = "trusted"
    team: dict[str, str] = field(default_factory=dict)
    failure: Input | None = None
    deadline: float | None = None
    may_hand_off: bool = True
    generation: int = 0
