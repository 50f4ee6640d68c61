"""A process: it may advance the run, host agents, sweep, crash, freeze and come back."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from agents.outcome import AttemptCancelled, Completed, Outcome
from orchestrator.commit import Commit, plan_commit
from orchestrator.facts import Dispatched, Ended, Fact
from orchestrator.rules import ready
from orchestrator.state import Event, RunState, evolve
from tests.simulation.attempt import Attempt, Work

if TYPE_CHECKING:
    from tests.simulation.world import World

Key = tuple[str, int]
Running = Generator[float, None, tuple[Outcome | None, str]]


class Process:
    """One process of a run.

    Args:
        world: Clock, store and channel.
        index: Which one.
        agents: Agents hosted here.
        advances: Whether it advances runs and sweeps.
        dispatch: Whether it dispatches all that is ready (the orchestrator).
        slots: Attempts at once.
    """

    def __init__(
        self,
        world: World,
        index: int,
        *,
        agents: frozenset[str],
        advances: bool,
        dispatch: bool,
        slots: int,
    ) -> None:
        self.world = world
        self.index = index
        self.agents = agents
        self.advances = advances
        self.dispatch = dispatch
        self.slots = slots
        self.epoch = 0
        self.frozen_until = 0.0
        self.last_alive = 0.0
        self.start()

    def start(self) -> None:
        """Begin, with a new name and empty hands, perhaps from a snapshot of the run."""
        self.epoch += 1
        self.alive = True
        self.name = f"p{self.index}.{self.epoch}"
        self.state = RunState(run=self.world.run)
        self.spawned: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, dict[str, str]] = {}
        self.running: dict[Key, Running] = {}
        self.queue: deque[Work] = deque()
        self.busy = self.again = False
        self.proposals: list[Fact] = []
        snapshot = self.world.snapshot
        if snapshot is not None and self.advances and self.world.chance(0.5):
            self.state = copy.deepcopy(snapshot)
            for event in self.world.store.events[: self.state.seq]:
                self._read(event)

    def crash(self) -> None:
        """Die now; come back after a while."""
        self.world.count["crashes"] += 1
        self.alive = False
        self.epoch += 1
        self.last_alive = self.world.now
        self.world.push(self.world.now + self.world.rng.uniform(0.5, 15.0), None, self.start)

    def freeze(self, seconds: float) -> None:
        """Stand still for a while."""
        self.world.count["freezes"] += 1
        self.last_alive = self.world.now
        self.frozen_until = self.world.now + seconds

    @property
    def awake(self) -> bool:
        """Whether it can do something now."""
        return self.alive and self.frozen_until <= self.world.now

    def seen(self) -> float:
        """Return when it was last heard of."""
        return self.world.now if self.awake else self.last_alive

    def later(self, delay: float, act: Callable[..., None], *args: Any) -> None:
        """Do something later, unless it dies before."""
        self.world.push(self.world.now + delay, self, act, *args)

    # --- advancing

    def catch_up(self) -> None:
        """Fold what is new."""
        for event in self.world.store.events[self.state.seq :]:
            evolve(self.state, event)
            self._read(event)

    def _read(self, event: Event) -> None:
        if event.type == "subtask.spawned":
            self.spawned[event.data["subtask"]] = event.data
        elif event.type == "input.provided":
            data = event.data
            answers = self.answers.setdefault(data["subtask"], {})
            answers[data["input"]] = f"{data['approved']}/{data['expired']}"

    def advance(self, *proposals: Fact) -> None:
        """Decide what there is to decide, one decision at a time."""
        self.proposals += proposals
        if self.busy:
            self.again = True
        else:
            self._take()

    def _take(self) -> None:
        self.busy = self.again = False
        if "stale view" not in self.world.switches:
            self.catch_up()
        batch = self.world.store.take()
        facts = tuple(self.proposals)
        commit = plan_commit(self.state, batch, proposals=facts, dispatch=self.dispatch)
        self.world.count["facts"] += len(batch.inbox) + len(batch.timers) + len(facts)
        if commit.empty:
            self.proposals.clear()
            return
        self.busy = True
        self.later(self.world.faults.commit_delay(self.world.rng), self._commit, commit, len(facts))

    def _commit(self, commit: Commit, proposed: int) -> None:
        world = self.world
        if world.harm(world.faults.crash_commit):
            self.crash()
            return
        self._misbehave_before(commit)
        if not world.store.commit(commit):
            world.count["lost compare-and-sets"] += 1
            self.catch_up()
            self._take()
            return
        self._misbehave_after(commit)
        del self.proposals[:proposed]
        self.catch_up()
        if world.harm(world.faults.crash_publish):
            world.count["crashes before publishing"] += 1
            self.crash()
            return
        self._tell(commit)
        self.busy = False
        if self.again or self.proposals:
            self._take()

    def _misbehave_before(self, commit: Commit) -> None:
        needed = {dep for e in commit.events for dep in e.data.get("after", ())}
        for event in commit.events:
            name = event.data.get("subtask")
            plain = event.type == "subtask.spawned" and not event.data.get("wait_mode")
            if plain and name not in needed and self.world.misbehaves("dropped spawn"):
                commit.events = [e for e in commit.events if e.data.get("subtask") != name]
                commit.announced = [a for a in commit.announced if a[0] != name]
                commit.sent = [where for where in commit.sent if where[0] != name]
                return

    def _misbehave_after(self, commit: Commit) -> None:
        store = self.world.store
        again = Commit(commit.run, len(store.events), commit.time)
        if any(e.type == "subtask.spawned" for e in commit.events):
            if self.world.misbehaves("lost acknowledgement"):  # of the commit: it is written again
                again.events = list(commit.events)
        elif self.world.misbehaves("double dispatch"):  # the subtask was done twice, and both count
            again.events = [e for e in commit.events if e.type == "subtask.completed"]
        if again.events:
            store.commit(again)

    def _tell(self, commit: Commit) -> None:
        only_own = "watermark maximum" in self.world.switches
        self.publish(commit.expected_seq if only_own else self.world.store.published)
        for subtask, attempt in commit.sent:
            work = self.work(subtask, attempt)
            if work is None or not self.alive:
                continue
            if self.dispatch or len(self.running) >= self.slots:
                self.world.send_work(work)
            else:
                self._claim(work)

    def publish(self, start: int) -> None:
        """Publish what is committed beyond the watermark, and move it."""
        end = len(self.world.store.events)
        for event in self.world.store.events[start:end]:
            self.world.publish(event)
        self.later(
            self.world.faults.commit_delay(self.world.rng),
            self.world.store.mark_published,
            start,
            end,
        )

    def work(self, subtask: str, attempt: int) -> Work | None:
        """Put together what an agent needs, or None when the attempt is not open any more."""
        sub = self.state.subtasks.get(subtask)
        if sub is None or sub.attempt != attempt or sub.status != "open":
            return None
        subs = self.state.subtasks
        used = self.spawned[subtask].get("inputs") or sub.used or ()
        children: dict[str, tuple[str, str]] = {
            child: (subs[child].status, subs[child].output_hash or "")
            for child in sub.spawned
            if subs[child].wait_mode is not None
        }
        existing: tuple[str, ...] = ()
        if sub.kind == "plan":
            acts = (s for s in subs.values() if s.kind == "act" and s.status == "completed")
            existing = tuple(sorted(s.id for s in acts))
        return Work(
            subtask,
            attempt,
            sub.agent,
            sub.kind,
            sub.hop,
            sub.generation,
            sub.failures,
            tuple(str(subs[dep].output_hash) for dep in used),
            children,
            dict(self.answers.get(subtask, {})),
            existing,
        )

    # --- hearing

    def hear_event(self, event: Event) -> None:
        """Hear news: in choreography an agent takes what is its own."""
        agent = str(event.data.get("agent", ""))
        if event.type != "subtask.ready" or agent not in self.agents:
            return
        self.catch_up()
        found = ready(self.state, agent)
        if found:
            self.advance(*(Dispatched(self.world.now, *where) for where in found))

    def hear_work(self, work: Work) -> None:
        """Hear of work; wait for a slot, claim, begin."""
        self.queue.append(work)
        self._next()

    def sweep(self) -> None:
        """Do what was left."""
        store, switches = self.world.store, self.world.switches
        if store.published < len(store.events):
            self.publish(store.published)
        if store.must_advance(orchestration=self.dispatch):
            self.advance()
        for row in store.resends(self.world.agents if self.dispatch else self.agents):
            self.world.count["resends"] += 1
            self.catch_up()
            if row.state == "sent":
                work = self.work(row.subtask, row.attempt)
                if work is not None:
                    self.world.send_work(work)
            elif "no announcement" not in switches:
                data = {"subtask": row.subtask, "agent": row.agent}
                self.world.publish(Event("subtask.ready", data))

    # --- working

    def _next(self) -> None:
        while self.alive and self.queue and len(self.running) < self.slots:
            self._claim(self.queue.popleft())

    def _claim(self, work: Work) -> None:
        world, key = self.world, (work.subtask, work.attempt)
        if world.harm(world.faults.crash_claim):
            self.crash()
            return
        if key in self.running or not world.store.claim(*key, self.name):
            world.count["claims refused"] += 1
            return
        attempt = Attempt(world, work, self.name)
        self.running[key] = attempt.run()
        if attempt.poison or world.harm(world.faults.crash_claim):
            self.crash()
            return
        self.later(world.faults.beat_after(world), self._beat, key)
        self._step(key)

    def _beat(self, key: Key) -> None:
        if key not in self.running:
            return
        verdict = self.world.store.beat(*key, self.name)
        if verdict == "ok":
            self.later(self.world.faults.beat_after(self.world), self._beat, key)
        else:
            del self.running[key]
            self._finish(key, AttemptCancelled() if verdict == "cancelled" else None, "")

    def _step(self, key: Key) -> None:
        world, running = self.world, self.running.get(key)
        if running is None:
            return
        if world.harm(world.faults.crash_step):
            self.crash()
            return
        if world.harm(world.faults.freeze_step):
            self.freeze(world.rng.choice((3.0, 15.0, 25.0)))
        if not self.awake:
            self.later(0.0, self._step, key)
            return
        try:
            pause = next(running)
        except StopIteration as stop:
            del self.running[key]
            self._finish(key, *stop.value)
        else:
            self.later(pause, self._step, key)

    def _finish(self, key: Key, outcome: Outcome | None, output: str) -> None:
        world = self.world
        if outcome is not None:
            if world.harm(world.faults.crash_finish):
                self.crash()
                return
            output_hash = output if isinstance(outcome, Completed) else None
            verdict = world.store.finish(Ended(world.now, *key, outcome, output_hash, self.name))
            world.count[f"finish {verdict}"] += 1
            if world.harm(world.faults.crash_finish):
                self.crash()
                return
            if verdict == "ok":
                self.advance() if self.advances else world.wake()
        self._next()
