"""Random pipelines, and what each agent does with each subtask: the same in every schedule.

All of it follows from the seed and from logical ids, never from the order in which things happen,
so that two runs of a scenario can be compared whatever the mode and the faults were.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from agents.outcome import Finding, PlannedSubtask
from orchestrator.shape import Limits, RunShape

AGENTS = ("a", "b", "c", "d")
PLANNER, WRITER = "planner", "writer"
StepKind = Literal["model", "effect", "ask", "hand_off", "input", "until"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing an attempt does; ``seconds`` is how long it takes, or pauses.

    ``mixed`` waits for children, a person and time at once.
    """

    kind: StepKind
    label: str
    seconds: float = 0.1
    agents: tuple[str, ...] = ()
    approve: bool | None = None  # None: nobody answers
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """What the agent of one subtask does."""

    steps: tuple[Step, ...]
    failures: int = 0
    new_generation: bool = False
    permanent: bool = False
    findings: tuple[Finding, ...] = ()
    poison: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """One pipeline with its surroundings.

    Attributes:
        seed: Where all of it comes from.
        shape: The pipeline.
        equal: Whether all schedules must give equal canonical ledgers.
        cancel_at: When somebody cancels the run, or None.
        llm_calls: The run's budget, or None.
        absent: An agent that no worker hosts, or None.
        rough: Whether attempts may fail for good or lose their worker for ever.
    """

    seed: int
    shape: RunShape
    equal: bool
    cancel_at: float | None = None
    llm_calls: int | None = None
    absent: str | None = None
    rough: bool = False
    wall: bool = False

    def script(self, subtask: str, kind: str, hop: int) -> Script:
        """Return what the agent does with this subtask."""
        return _script(self, subtask, kind, hop)

    def plan(self, subtask: str, existing: tuple[str, ...]) -> tuple[PlannedSubtask, ...]:
        """Return the plan that a planner gives for this subtask."""
        rng = random.Random(f"{self.seed}/plan/{subtask}")
        return random_plan(rng, free=not self.equal, existing=() if self.equal else existing)

    def invalid_plans(self, subtask: str) -> int:
        """Return how often the planner first gives a plan that cannot be spawned."""
        rng = random.Random(f"{self.seed}/invalid/{subtask}")
        return rng.choice((0, 0, 0, 0, 1, 2) if self.equal else (0, 0, 0, 1, 2, 3))


def random_plan(
    rng: random.Random, *, free: bool, existing: tuple[str, ...] = ()
) -> tuple[PlannedSubtask, ...]:
    """Return a valid plan; ``free`` allows any and deadlines."""
    planned: list[PlannedSubtask] = []
    for i in range(rng.randint(1, 6)):
        before = [p.id for p in planned] + list(existing)
        after = tuple(sorted(rng.sample(before, rng.randint(0, min(3, len(before))))))
        item = PlannedSubtask(f"s{i}", rng.choice(AGENTS), f"do {i}", after)
        if free and len(after) > 1 and rng.random() < 0.5:
            item = replace(item, join="any")
        if free and after and rng.random() < 0.2:
            item = replace(item, deadline_s=rng.uniform(0.3, 8.0))
        planned.append(item)
    return tuple(planned)


def scenario(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    rng = random.Random(f"scenario/{seed}")
    equal = seed % 2 == 0
    form = rng.choice(("static", "static", "planner", "emergent"))
    limits = Limits(
        expiries=20 if equal else rng.choice((3, 20)),
        hops=rng.randint(2, 4),
        retry_base_s=0.5,
        lease_s=10.0,
        grace_s=60.0,
        wall_s=3_600.0,
    )
    trouble = (
        None if equal else rng.choice(("rough", "rough", "cancel", "budget", "wall", "absent"))
    )
    if trouble == "wall":
        limits = replace(limits, wall_s=rng.uniform(0.5, 15.0))
    names = (*AGENTS, PLANNER, WRITER)
    reacts = form == "emergent" or rng.random() < 0.5
    agents = {name: _kinds(rng) if reacts and name in AGENTS else () for name in names}
    if form == "emergent":
        agents["a"] = ("task", *agents["a"])
    shape = RunShape(
        agents,
        planner=PLANNER if form == "planner" else None,
        plan=random_plan(rng, free=not equal) if form == "static" else (),
        synthesizer=WRITER if rng.random() < 0.5 else None,
        limits=limits,
    )
    return Scenario(
        seed,
        shape,
        equal,
        cancel_at=rng.uniform(0, 15) if trouble == "cancel" else None,
        llm_calls=rng.randint(1, 12) if trouble == "budget" else None,
        absent=rng.choice(AGENTS) if trouble == "absent" else None,
        rough=trouble == "rough",
        wall=trouble == "wall",
    )


def _kinds(rng: random.Random) -> tuple[str, ...]:
    return tuple(kind for kind in ("k0", "k1", "k2") if rng.random() < 0.4)


@lru_cache(maxsize=512)
def _script(scene: Scenario, subtask: str, kind: str, hop: int) -> Script:
    rng = random.Random(f"{scene.seed}/script/{subtask}")
    steps = [_step(rng, i, hop) for i in range(rng.randint(0, 3))]
    # A hand-off beyond the hop limit fails for good, and that is no matter for a comparison.
    near = hop < scene.shape.limits.hops or not scene.equal
    if kind == "act" and near and rng.random() < 0.15 / (1 + hop):
        steps.append(Step("hand_off", "handed", agents=(rng.choice(AGENTS),)))
    elif kind != "act" and rng.random() < 0.1:
        steps.append(Step("hand_off", "refused", agents=(rng.choice(AGENTS),)))
    findings = [
        Finding(rng.choice(("k0", "k1", "k2", "k3")), {"of": subtask, "n": n})
        for n in range(rng.choice((0, 0, 1, 1, 2)))
    ]
    return Script(
        tuple(steps),
        failures=rng.choice((0, 0, 0, 1, 2)),
        new_generation=rng.random() < 0.4,
        permanent=scene.rough and rng.random() < 0.3,
        findings=tuple(findings),
        poison=scene.rough and rng.random() < 0.06,
    )


def _step(rng: random.Random, i: int, hop: int) -> Step:
    label, seconds = f"t{i}", rng.choice((0.05, 0.3, 1.0, 2.0, 12.0))
    dice = rng.random()
    if dice < 0.5:
        return Step("model", label, seconds)
    if dice < 0.75:
        return Step("effect", label, min(seconds, 1.0))
    if dice < 0.75 + 0.15 / (1 + hop):
        agents = tuple(rng.choice(AGENTS) for _ in range(rng.choice((1, 1, 2))))
        mixed = rng.random() < 0.3
        return Step("ask", label, seconds, agents, approve=rng.random() < 0.7, mixed=mixed)
    if dice < 0.95:
        return Step("input", label, approve=rng.choice((True, True, False, None)))
    return Step("until", label, seconds)
