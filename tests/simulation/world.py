"""One simulated run: clock, lossy channel, people, processes and faults, all from one seed."""

from __future__ import annotations

import copy
import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Literal

from agents.assignment import Answer
from orchestrator.commit import Commit
from orchestrator.facts import Answered, CancelAsked, Submitted
from orchestrator.state import Event, RunState
from tests.simulation.attempt import Work
from tests.simulation.checks import Checker
from tests.simulation.process import Process
from tests.simulation.scenario import Scenario
from tests.simulation.store import SimStore

Mode = Literal["orchestration", "choreography"]
MAX_HARM = 14  # below the expiry limit of 20, so that no subtask loses its workers for good
SWEEP_S = 1.0


@dataclass(frozen=True, slots=True)
class Faults:
    """How likely each thing goes wrong."""

    lose: float = 0.0
    duplicate: float = 0.0
    delay_s: float = 0.0
    slow_commit: float = 0.0
    slow_beat: float = 0.0
    crash_commit: float = 0.0
    crash_publish: float = 0.0
    crash_claim: float = 0.0
    crash_step: float = 0.0
    crash_finish: float = 0.0
    freeze_step: float = 0.0

    def commit_delay(self, rng: random.Random) -> float:
        """Return seconds between reading a batch and writing its decision."""
        return rng.expovariate(2.0) if rng.random() < self.slow_commit else 0.001

    def beat_after(self, world: World) -> float:
        """Return seconds until the next heartbeat."""
        lease = world.scene.shape.limits.lease_s
        if world.harm(self.slow_beat):
            return lease * world.rng.uniform(0.9, 1.3)
        return lease / 3


NONE = Faults()
MANY = Faults(
    lose=0.15,
    duplicate=0.15,
    delay_s=0.3,
    slow_commit=0.3,
    slow_beat=0.1,
    crash_commit=0.02,
    crash_publish=0.03,
    crash_claim=0.03,
    crash_step=0.03,
    crash_finish=0.03,
    freeze_step=0.06,
)


class World:
    """One run of a scenario in one mode.

    Args:
        scene: The pipeline and its surroundings.
        mode: Who applies the rules.
        faults: What goes wrong.
        switches: Faults of store and drivers planted on purpose.
    """

    def __init__(
        self, scene: Scenario, mode: Mode, faults: Faults = MANY, *, switches: Sequence[str] = ()
    ) -> None:
        self.scene, self.mode, self.faults = scene, mode, faults
        self.switches = frozenset(switches)
        self.rng = random.Random(f"{scene.seed}/{mode}/{faults.lose}")
        self.run = f"r{scene.seed}"
        self.now = 0.0
        self.count: Counter[str] = Counter()
        self.harmed = 0
        self.effects: Counter[str] = Counter()
        self.snapshot: RunState | None = None
        self.agents = frozenset(scene.shape.agents)
        self.seqs_told: set[int] = set()
        self._heap: list[tuple[float, int, Process | None, int, Callable[..., None], Any]] = []
        self._n = 0
        self._misbehaved = False
        self.processes: list[Process] = []
        self.store = SimStore(
            scene.shape.limits,
            llm_calls=scene.llm_calls,
            clock=lambda: self.now,
            last_seen=self._last_seen,
            switches=self.switches,
        )
        self.checker = Checker(self)
        self.store.on_commit = self._committed
        self._start_processes()

    def _start_processes(self) -> None:
        central = self.mode == "orchestration"
        hosted = sorted(self.agents - {self.scene.absent})
        count = self.rng.randint(2, 3)
        hosts: list[set[str]] = [set() for _ in range(count)]
        for agent in hosted:
            for host in self.rng.sample(hosts, self.rng.randint(1, count)):
                host.add(agent)
        for _ in range(self.rng.randint(1, 2) if central else 0):
            self._add(frozenset(), advances=True, dispatch=True)
        for host in hosts:
            self._add(frozenset(host), advances=not central, dispatch=False)

    def _add(self, agents: frozenset[str], *, advances: bool, dispatch: bool) -> None:
        slots = self.rng.randint(1, 3)
        index = len(self.processes)
        self.processes.append(
            Process(self, index, agents=agents, advances=advances, dispatch=dispatch, slots=slots)
        )

    def _last_seen(self, agent: str) -> float:
        return max((p.seen() for p in self.processes if agent in p.agents), default=-inf)

    # --- faults

    def chance(self, probability: float) -> bool:
        """Return whether something of this probability happens."""
        return probability > 0 and self.rng.random() < probability

    def harm(self, probability: float) -> bool:
        """Return whether a crash or a freeze happens, as long as there were not too many."""
        if self.harmed < MAX_HARM and self.chance(probability):
            self.harmed += 1
            return True
        return False

    def misbehaves(self, switch: str) -> bool:
        """Return whether the driver breaks a rule now: sometimes, and once a run."""
        if switch not in self.switches or self._misbehaved or not self.chance(0.5):
            return False
        self._misbehaved = True
        return True

    # --- clock and channel

    def push(
        self, at: float, process: Process | None, act: Callable[..., None], *args: Any
    ) -> None:
        """Do something at a time."""
        self._n += 1
        epoch = process.epoch if process else 0
        heapq.heappush(self._heap, (at, self._n, process, epoch, act, args))

    def _send(self, targets: Callable[[], list[Process]], hear: str, *args: Any) -> None:
        copies = 1
        if self.chance(self.faults.lose):
            self.count["messages lost"] += 1
            return
        if self.chance(self.faults.duplicate):
            self.count["messages duplicated"] += 1
            copies = 2
        for _ in range(copies):
            delay = 0.001
            if self.faults.delay_s:
                delay += self.rng.expovariate(1 / self.faults.delay_s)
            self.push(self.now + delay, None, self._deliver, targets, hear, args)

    def _deliver(self, targets: Callable[[], list[Process]], hear: str, args: Any) -> None:
        alive = [p for p in targets() if p.alive]
        if alive:
            process = self.rng.choice(alive)
            process.later(0.0, getattr(process, hear), *args)

    def publish(self, event: Event) -> None:
        """Publish one event to everybody who listens."""
        self.seqs_told.add(event.seq)
        if self.mode == "choreography" and event.type == "subtask.ready":
            for process in self.processes:
                if event.data["agent"] in process.agents:
                    self._send(partial(list, [process]), "hear_event", event)

    def send_work(self, work: Work) -> None:
        """Write to ``work.<agent>``: one of those who host the agent hears it."""
        self._send(lambda: [p for p in self.processes if work.agent in p.agents], "hear_work", work)

    def wake(self) -> None:
        """Write to ``facts``: one of those who advance hears it."""
        self._send(lambda: [p for p in self.processes if p.advances], "advance")

    # --- people and the rest of the world

    def model_called(self, subtask: str, generation: int, label: str) -> None:
        """Note a paid model call; one that was recorded must not be made again."""
        self.count["model calls"] += 1
        for entry, _ in self.store.journals.get((subtask, generation), ()):
            if entry.kind == "model" and entry.data["label"] == label:
                self.checker.found(f"model call {label} of {subtask} made again")

    def _committed(self, commit: Commit) -> None:
        self.checker.committed(commit)
        for event in commit.events:
            if event.type == "input.requested":
                self._ask(event)
        if self.snapshot is None and len(self.store.events) > 12:
            self.snapshot = copy.deepcopy(self.checker.state)

    def _ask(self, event: Event) -> None:
        subtask, _, label = event.data["rendered"].partition("|")
        sub = self.checker.state.subtasks[subtask]
        script = self.scene.script(subtask, sub.kind, sub.hop)
        approve = next(step.approve for step in script.steps if step.label == label)
        if approve is not None:
            at = self.now + self.rng.uniform(0.5, 15.0)
            self.push(at, None, self._answer, event.data["input"], approve)
            if self.chance(0.2):
                self.push(at + 1.0, None, self._answer, event.data["input"], not approve)

    def _answer(self, input_id: str, approve: bool) -> None:
        fact = Answered(self.now, input_id, Answer(approve))
        self.count["answers"] += 1
        if self.store.put(fact, f"answer/{input_id}"):
            self.wake()

    def _submit(self) -> None:
        self.store.put(Submitted(self.now, self.run, self.scene.shape, "the task", {}))
        self.wake()

    def _cancel(self) -> None:
        self.store.put(CancelAsked(self.now, "changed my mind"))
        self.wake()

    # --- the run

    def play(self) -> Checker:
        """Play the run to its end and return what was found."""
        self.push(0.0, None, self._submit)
        if self.scene.cancel_at is not None:
            self.push(self.scene.cancel_at, None, self._cancel)
        self.push(SWEEP_S, None, self._sweep)
        horizon = self.scene.shape.limits.wall_s + 300.0
        while self._heap and self.now <= horizon:
            at, _, process, epoch, act, args = heapq.heappop(self._heap)
            if process is not None and process.epoch != epoch:
                continue
            if process is not None and process.frozen_until > at:
                self.push(process.frozen_until, process, act, *args)
                continue
            self.now = max(self.now, at)
            act(*args)
        self.checker.end()
        return self.checker

    def _sweep(self) -> None:
        if self.store.next_due() <= self.now:
            for process in self.processes:
                if process.advances and process.awake:
                    process.sweep()
        # Nothing changes before the next event: no need to look every second.
        following = min(self._heap[0][0] if self._heap else inf, self.store.next_due())
        if following < inf and not (self.store.final and not self._heap and self._idle()):
            self.push(max(self.now + SWEEP_S, following), None, self._sweep)

    def _idle(self) -> bool:
        return not self.store.inbox and self.store.published == len(self.store.events)
