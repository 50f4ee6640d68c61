"""What an agent does in one attempt: a generator of pauses that ends with an outcome."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from agents.journal import Entry
from agents.outcome import (
    AttemptCancelled,
    ChildRequest,
    Completed,
    Failed,
    InputRequest,
    Outcome,
    Parked,
    PlannedSubtask,
    WaitMode,
)
from tests.simulation.scenario import Script, Step

if TYPE_CHECKING:
    from tests.simulation.world import World

ANSWER_EXPIRES_S = 30.0
INVALID_PLANS = (
    (),
    (PlannedSubtask("x", "nobody", "do"),),
    (PlannedSubtask("x", "a", "do", ("y",)), PlannedSubtask("y", "a", "do", ("x",))),
    (PlannedSubtask("x", "a", "do"), PlannedSubtask("x", "b", "do")),
)


@dataclass(frozen=True, slots=True)
class Work:
    """A ``work`` message: all that an agent needs for one attempt."""

    subtask: str
    attempt: int
    agent: str
    kind: str
    hop: int
    generation: int
    failures: int
    inputs: tuple[str, ...]
    children: dict[str, tuple[str, str]]
    answers: dict[str, str]
    existing: tuple[str, ...]


class _Stopped(Exception):
    """The gate said no."""


class Attempt:
    """One attempt, run by one worker."""

    def __init__(self, world: World, work: Work, worker: str) -> None:
        self._world = world
        self._work = work
        self._worker = worker
        self._script: Script = world.scene.script(work.subtask, work.kind, work.hop)
        journal = world.store.journals.get((work.subtask, work.generation), [])
        self._known = {(e.kind, str(e.data["label"])): e.data for e, _ in journal}
        self._n = len(journal)
        self._marks = dict(world.store.effects)
        self._lines: list[Entry] = []
        self._done: list[tuple[str, str]] = []
        self._answers: dict[str, str] = {}

    @property
    def poison(self) -> bool:
        """Whether whoever begins this attempt dies of it."""
        return self._script.poison

    def run(self) -> Generator[float, None, tuple[Outcome | None, str]]:
        """Yield seconds to wait; return the outcome (None: fenced, say nothing) and output hash."""
        try:
            outcome = yield from self._steps()
            if self._lines or self._done:
                self._gate()
        except _Stopped as stopped:
            match stopped.args[0]:
                case "fenced":
                    return None, ""
                case "cancelled":
                    return AttemptCancelled(), ""
                case _:
                    return Failed("budget", "over budget"), ""
        return outcome or self._end(), self._output()

    def _steps(self) -> Generator[float, None, Outcome | None]:
        yield 0.01
        for step in self._script.steps:
            if step.kind == "model":
                yield from self._model(step)
            elif step.kind == "effect":
                yield from self._effect(step)
            else:
                parked = self._wait(step)
                if parked is not None:
                    return parked
        return None

    def _gate(self, *, llm_calls: int = 0, effects: tuple[tuple[str, str], ...] = ()) -> None:
        verdict = self._world.store.record(
            (self._work.subtask, self._work.attempt),
            self._worker,
            generation=self._work.generation,
            n=self._n,
            entries=tuple(self._lines),
            llm_calls=llm_calls,
            effects=(*self._done, *effects),
        )
        if verdict != "ok":
            self._world.count[f"gate {verdict}"] += 1
            raise _Stopped(verdict)
        self._n += len(self._lines)
        self._lines, self._done = [], []

    def _note(self, kind: str, label: str, **data: str | int) -> None:
        self._lines.append(Entry(kind, {"label": label, **data}))

    def _model(self, step: Step) -> Generator[float, None, None]:
        if ("model", step.label) in self._known:
            self._world.count["model calls replayed"] += 1
            return
        self._gate(llm_calls=1)
        self._world.model_called(self._work.subtask, self._work.generation, step.label)
        yield step.seconds
        self._note("model", step.label)

    def _effect(self, step: Step) -> Generator[float, None, None]:
        key = f"{self._work.subtask}/{step.label}"
        mark = self._marks.get(key)
        if mark == "done":
            return
        self._gate(effects=((key, "intent"),))
        if mark is None or not self._world.effects[key]:  # otherwise reconciled: it did happen
            self._world.effects[key] += 1
        yield step.seconds
        self._done.append((key, "done"))

    def _wait(self, step: Step) -> Outcome | None:
        children = self._children(step) if step.agents else ()
        inputs = self._inputs(step) if step.kind == "input" or step.mixed else ()
        until = None
        if (step.kind == "until" or step.mixed) and ("until", step.label) not in self._known:
            self._note("until", step.label)
            until = step.seconds
        if not (children or inputs or until):
            return None
        return Parked(inputs=inputs, children=children, until=until)

    def _children(self, step: Step) -> tuple[ChildRequest, ...]:
        missing = []
        for i, agent in enumerate(step.agents):
            label = f"{step.label}.{i}"
            known = self._known.get(("spawn", label))
            k = int(known["k"]) if known else self._next_child()
            if known is None:
                self._note("spawn", label, k=k)
            if f"{self._work.subtask}/{agent}-{k}" not in self._work.children:
                mode: WaitMode = "hand_off" if step.kind == "hand_off" else "ask"
                missing.append(ChildRequest(agent, f"help {label}", mode, k))
        return tuple(missing)

    def _next_child(self) -> int:
        lines = [*self._known.items(), *(((e.kind, ""), e.data) for e in self._lines)]
        numbers = [int(data["k"]) for (kind, _), data in lines if kind == "spawn"]
        numbers += [int(child.rpartition("-")[2]) for child in self._work.children]
        return max(numbers, default=-1) + 1

    def _inputs(self, step: Step) -> tuple[InputRequest, ...]:
        known = self._known.get(("input", step.label))
        if known is None:
            n = self._n + len(self._lines)
            input_id = f"{self._work.subtask}!{self._work.attempt}!{n}"
            self._note("input", step.label, id=input_id)
        else:
            input_id = str(known["id"])
        if input_id in self._work.answers:
            self._answers[step.label] = self._work.answers[input_id]
            return ()
        rendered = f"{self._work.subtask}|{step.label}"
        return (InputRequest(input_id, "question", rendered, expires_s=ANSWER_EXPIRES_S),)

    def _end(self) -> Outcome:
        work, script = self._work, self._script
        if script.permanent:
            return Failed("broken", "it never works")
        if work.kind == "plan":
            invalid = self._world.scene.invalid_plans(work.subtask)
            if work.failures < invalid:
                return Completed(None, spawns=INVALID_PLANS[work.failures % len(INVALID_PLANS)])
            return Completed(None, spawns=self._world.scene.plan(work.subtask, work.existing))
        if work.failures < script.failures:
            generation = script.new_generation
            return Failed("transient", "again", retryable=True, new_generation=generation)
        return Completed(None, findings=script.findings)

    def _output(self) -> str:
        work = self._work
        said = (
            work.subtask,
            sorted(work.inputs),
            sorted(work.children.items()),
            sorted(self._answers.items()),
        )
        return blake2b(repr(said).encode(), digest_size=8).hexdigest()
