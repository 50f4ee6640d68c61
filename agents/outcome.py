"""How an attempt ends: one of four outcomes, complete in one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from agents.usage import Usage

InputKind = Literal["approval", "question", "plan_review", "effect_unknown"]
WaitMode = Literal["ask", "hand_off"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something an agent reports beside its answer; other agents may react to its kind.

    Attributes:
        kind: A name that pipelines use in ``reacts_to``.
        data: A JSON value.
    """

    kind: str
    data: Any


@dataclass(frozen=True, slots=True)
class PlannedSubtask:
    """One subtask of a plan, as a planner or a ``plan:`` gives it.

    Attributes:
        id: Unique in its plan.
        agent: Name of the agent that does it.
        task: What to do; ``{{id}}`` stands for the output of the dependency ``id``.
        after: Ids of its dependencies.
        join: Whether all dependencies must complete or any one.
        deadline_s: Seconds from the spawn after which the join stops waiting.
    """

    id: str
    agent: str
    task: str
    after: tuple[str, ...] = ()
    join: Literal["all", "any"] = "all"
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True)
class InputRequest:
    """A question to a person.

    Attributes:
        id: Hash of run, subtask, attempt and journal position.
        kind: approval, question, plan_review or effect_unknown.
        rendered: What the person reads.
        schema: JSON Schema of the answer's value; None for free text.
        data: What the answer is about, for example ``{"tool": …, "arguments": …}``.
        expires_s: Seconds until it is denied by default.
    """

    id: str
    kind: InputKind
    rendered: str
    schema: dict[str, Any] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    expires_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """A subtask that a parked attempt waits for.

    Attributes:
        agent: Who does it.
        task: What to do.
        mode: ``ask`` resumes the parent with the result, ``hand_off`` adopts it.
        k: This is the k-th child of the subtask, from 0; its id is ``<parent>/<agent>-<k>``.
    """

    agent: str
    task: str
    mode: WaitMode
    k: int


@dataclass(frozen=True, slots=True)
class Completed:
    """The attempt has an answer.

    Attributes:
        output: A JSON value.
        findings: What other agents may react to, in order.
        spawns: The subtasks of a plan (kind ``plan`` only).
        stop_reason: ``final_answer``, or the stop condition that ended the loop.
        verified: False when ``expect_tools`` was not met.
        warnings: What the reader of the answer should know, for example a degraded plan.
    """

    output: Any
    findings: tuple[Finding, ...] = ()
    spawns: tuple[PlannedSubtask, ...] = ()
    stop_reason: str = "final_answer"
    verified: bool = True
    warnings: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt has no answer.

    Attributes:
        error_class: A short stable name, for example ``model_unavailable`` or ``invalid_output``.
        message: What happened, for people.
        retryable: Whether another attempt may help.
        partial: What was found so far, or None.
        new_generation: Whether a retry starts a new journal generation: True after
            ``invalid_output`` or a stop condition, which a replay would run into again.
    """

    error_class: str
    message: str
    retryable: bool = False
    partial: Any = None
    new_generation: bool = False
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class AttemptCancelled:
    """The attempt stopped because it was told to."""

    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Parked:
    """The attempt waits; it resumes when all of this is met.

    Attributes:
        inputs: Answers of people.
        children: Subtasks to spawn and wait for.
        until: Seconds from now, or None.
    """

    inputs: tuple[InputRequest, ...] = ()
    children: tuple[ChildRequest, ...] = ()
    until: float | None = None
    usage: Usage = field(default_factory=Usage)


Outcome = Completed | Failed | AttemptCancelled | Parked
