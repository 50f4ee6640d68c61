"""What must be true of every run, checked after each commit and at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.commit import Commit
from orchestrator.state import FINAL_EVENTS, TERMINAL, Event, RunState, Subtask, evolve
from tests.simulation.scenario import PLANNER

if TYPE_CHECKING:
    from tests.simulation.world import World

_OUTCOMES = frozenset({"subtask.completed", "subtask.parked", "subtask.retry_scheduled"})


class Checker:
    """Folds the ledger on its own and notes what is wrong.

    Attributes:
        state: The run, folded from all that was committed.
        violations: What was found, in words.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.state = RunState(run=world.run)
        self.violations: list[str] = []
        self._live_children: set[str] = set()
        self._seen = 0
        self._ended = False
        self._finals = 0

    def found(self, what: str) -> None:
        """Note a violation."""
        if len(self.violations) < 20:
            self.violations.append(f"t={self._world.now:.2f} {what}")

    # --- after each commit

    def committed(self, commit: Commit) -> None:
        """Check one commit; called before the attempt rows change."""
        events = self._world.store.events[self._seen :]
        self._seen += len(events)
        for event in events:
            self._event(event)
        self._leases(commit)
        self._children()
        if any(event.type.startswith("subtask.") for event in events):
            self._pending(events)
            self._unneeded(events)
        if self.state.ending is not None and not self._ended:
            self._ended = True
            self._ending()
        if self.state.replans > self.state.sort_of().limits.replans:
            self.found("more replans than allowed")

    def _event(self, event: Event) -> None:
        if self._finals and event.type != "attempt.ended_late":
            self.found(f"{event.type} after the final event")
        data = event.data
        sub = self.state.subtasks.get(data.get("subtask", ""))
        if sub is not None:
            self._about(event, sub)
        if event.type == "subtask.spawned":
            self._spawned(event)
        if self.state.ending is not None and event.type in (
            "subtask.spawned",
            "subtask.ready",
            "subtask.dispatched",
        ):
            self.found(f"{event.type} while the run is ending")
        evolve(self.state, event)
        if event.type in FINAL_EVENTS:
            self._finals += 1
            self._final(event)

    def _about(self, event: Event, sub: Subtask) -> None:
        data = event.data
        if event.type == "subtask.spawned":
            self.found(f"{sub.id} spawned twice")
        elif event.type == "subtask.dispatched":
            if sub.status != "ready" or data["attempt"] != sub.attempt + 1:
                self.found(f"{sub.id} dispatched as {sub.status}")
        elif event.type in _OUTCOMES and "adopted_from" not in data:
            self._outcome(event, sub)
        elif event.type == "attempt.expired":
            if sub.status != "open" or data["attempt"] != sub.attempt:
                self.found(f"{sub.id} expired as {sub.status}")
        elif event.type == "subtask.superseded" and self._can_run(sub):
            self.found(f"{sub.id} superseded while it could run")
        if event.type.removeprefix("subtask.") in TERMINAL and sub.status in TERMINAL:
            self.found(f"{sub.id} ended twice")

    def _outcome(self, event: Event, sub: Subtask) -> None:
        row = self._world.store.rows.get((sub.id, event.data["attempt"]))
        if sub.status != "open" or sub.attempt != event.data["attempt"]:
            self.found(f"outcome of {sub.id} counted for attempt {event.data['attempt']}")
        elif row is None or row.state != "claimed":
            self.found(f"outcome of {sub.id} counted though nobody had claimed it")
        elif event.data.get("worker", row.worker) != row.worker:
            self.found(f"outcome of {sub.id} counted from another worker")
        if event.type == "subtask.parked" and sub.quiet and event.data["hand_off"]:
            self.found(f"{sub.id} handed off, but writes the answer")

    def _spawned(self, event: Event) -> None:
        data, subs = event.data, self.state.subtasks
        if data.get("wait_mode"):
            self._live_children.add(data["subtask"])
        if data.get("replan_of"):
            if subs[data["replan_of"]].wait_mode is not None:
                self.found(f"{data['replan_of']} replans though its parent waits")
            if self.state.replan_open is not None:
                self.found("two replans open at a time")
            if data["agent"] != PLANNER:
                self.found("a replan without planner")
        if data["kind"] == "synthesize":
            if self.state.synthesis is not None or self.state.outstanding:
                self.found("a synthesizer too many or too early")
            if data["inputs"] != self._leaves():
                self.found(f"the synthesizer got {data['inputs']}, not {self._leaves()}")
        trigger = data.get("trigger")
        if self.state.synthesis and (trigger or data["subtask"] == data.get("replan_of")):
            self.found(f"{data['subtask']} triggered after the synthesis began")

    def _leases(self, commit: Commit) -> None:
        for event in commit.events:
            if event.type != "attempt.expired":
                continue
            row = self._world.store.rows[event.data["subtask"], event.data["attempt"]]
            if not row.claims:
                self.found(f"{row.subtask} expired though nobody had claimed it")
            elif row.lease_until >= self._world.now:
                self.found(f"{row.subtask} expired though its lease was not past")

    def _children(self) -> None:
        for child_id in list(self._live_children):
            child = self.state.subtasks[child_id]
            if child.status in TERMINAL:
                self._live_children.discard(child_id)
                continue
            parent = self.state.subtasks[str(child.parent)]
            waits = parent.status == "parked" and child_id in parent.children
            if not (waits or child.cancelling):
                self.found(f"{child_id} lives though {parent.id} ({parent.status}) does not wait")

    def _dead(self, dep: str) -> bool:
        status = self.state.subtasks[dep].status
        return status in TERMINAL and status != "completed"

    def _can_run(self, sub: Subtask) -> bool:
        dead = [self._dead(dep) for dep in sub.after]
        patient = sub.join == "any" or sub.deadline
        return not all(dead) if patient else not any(dead)

    def _pending(self, events: list[Event]) -> None:
        ended = {event.data["subtask"] for event in events if _terminal(event)}
        for sub_id in ended & self.state.subtasks.keys():
            for dependent in self.state.subtasks[sub_id].dependents:
                sub = self.state.subtasks[dependent]
                if sub.status == "pending" and not self._can_run(sub):
                    self.found(f"{dependent} is pending and can never run")
                done = [d for d in sub.after if self.state.subtasks[d].status == "completed"]
                if (
                    sub.status == "pending"
                    and done
                    and (sub.join == "any" or len(done) == len(sub.after))
                ):
                    self.found(f"{dependent} is pending though its join is met")

    def _unneeded(self, events: list[Event]) -> None:
        for event in events:
            used = event.data.get("used")
            if event.type != "subtask.ready" or used is None:
                continue
            for dep in set(self.state.subtasks[event.data["subtask"]].after) - set(used):
                sub = self.state.subtasks[dep]
                pending = [self.state.subtasks[x].status == "pending" for x in sub.dependents]
                if sub.status not in TERMINAL and not sub.cancelling and not any(pending):
                    self.found(f"{dep} runs on though nobody needs it")

    def _ending(self) -> None:
        for sub in self.state.subtasks.values():
            if sub.status in TERMINAL:
                continue
            row = self._world.store.rows.get((sub.id, sub.attempt))
            claimed = sub.status == "open" and row is not None and row.state == "claimed"
            if not (claimed and sub.cancelling):
                self.found(f"{sub.id} is {sub.status} though the run is ending")

    # --- at the end

    def _leaves(self) -> list[str]:
        subs = self.state.subtasks
        used: set[str] = set()
        for sub in subs.values():
            if sub.status == "completed":
                used.update(sub.used or ())
                used.update(x for x in sub.spawned if subs[x].wait_mode is not None)
                if sub.trigger:
                    used.add(sub.trigger)
        return sorted(
            s.id
            for s in subs.values()
            if s.kind == "act" and s.status == "completed" and s.id not in used
            if not s.quiet and not (s.cancelling and self.state.ending is None)
        )

    def _final(self, event: Event) -> None:
        live = [sub.id for sub in self.state.subtasks.values() if sub.status not in TERMINAL]
        if live or self.state.outstanding:
            self.found(f"{event.type} while {live} live, outstanding {self.state.outstanding}")
        if event.type == "run.completed":
            synthesis, leaves = self.state.synthesis, self._leaves()
            answer = synthesis or (leaves[0] if len(leaves) == 1 else None)
            if event.data["answer"] != answer or not (answer or event.data["answers"] == leaves):
                self.found(f"the answer is {event.data['answer']} {event.data['answers']}")
            if self._world.scene.shape.synthesizer and not synthesis:
                self.found("no synthesizer ran")

    def end(self) -> None:
        """Check the whole run."""
        world = self._world
        if self._finals != 1:
            self.found(f"{self._finals} final events")
        late = self.state.ending_data.get("error_class") == "wall_time"
        if late and not world.scene.wall:
            self.found("the run stood still until its wall time was over")
        for key, times in world.effects.items():
            if times > 1:
                self.found(f"effect {key} happened {times} times")
        limit = world.scene.llm_calls
        if limit is not None and world.store.llm_calls > limit:
            self.found(f"{world.store.llm_calls} model calls of {limit}")
        missing = {event.seq for event in world.store.events} - world.seqs_told
        if missing:
            self.found(f"events never published: {sorted(missing)[:5]}")
        self._findings()
        for process in world.processes:
            if process.alive and process.state.seq:
                process.catch_up()
                if process.state != self.state:
                    self.found(f"{process.name} sees another run")

    def _findings(self) -> None:
        events = self._world.store.events
        refused = {
            (e.data["subtask"], e.data["agent"]) for e in events if e.type == "reaction.refused"
        }
        for event in events:
            if event.type != "finding.reported":
                continue
            sub = self.state.subtasks[event.data["subtask"]]
            if sub.quiet or self.state.ending is not None:
                continue
            for agent, kinds in self._world.scene.shape.agents.items():
                if event.data["kind"] not in kinds or agent == sub.agent:
                    continue
                reaction = f"{sub.id}/{agent}.{event.data['index']}"
                if reaction not in self.state.subtasks and (sub.id, agent) not in refused:
                    self.found(f"{reaction} neither spawned nor refused")


def _terminal(event: Event) -> bool:
    return event.type.startswith("subtask.") and event.type[8:] in TERMINAL
