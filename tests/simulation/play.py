"""Plays the runs of a seed and says what is wrong with them.

``python -m tests.simulation.play SEED…`` plays seeds again and prints what was found.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from orchestrator.canonical import canonical
from orchestrator.state import FINAL_EVENTS, Event
from tests.simulation.scenario import scenario
from tests.simulation.world import NONE, Mode, World

MODES: tuple[Mode, ...] = ("orchestration", "choreography")


@dataclass(slots=True)
class Report:
    """What came of some seeds.

    Attributes:
        violations: What is wrong, with seed and mode.
        count: Runs, comparisons, facts, and what was injected.
    """

    violations: list[str] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        seeds = sorted({line.split()[1] for line in self.violations}, key=int)
        command = f"python -m tests.simulation.play {' '.join(seeds[:5])}"
        return "\n".join(["", *self.violations[:20], f"again: {command}"])


def answer(events: Iterable[Event]) -> list[object]:
    """Return the kind and the data of the final event."""
    return [[event.type, event.data] for event in events if event.type in FINAL_EVENTS]


def play(
    seeds: Iterable[int], *, switches: Sequence[str] = (), in_mode: Mode | None = None
) -> Report:
    """Play seeds under faults in both modes; compare with a run without faults where it must be.

    Args:
        seeds: Which.
        switches: Faults planted in store and drivers.
        in_mode: Plant them in this mode alone.
    """
    report = Report()
    for seed in seeds:
        scene = scenario(seed)
        expected = None
        if scene.equal:
            quiet = World(scene, "orchestration", NONE)
            _note(report, quiet, "fault-free")
            expected = canonical(quiet.store.events), answer(quiet.store.events)
        for mode in MODES:
            planted = switches if in_mode in (None, mode) else ()
            world = World(scene, mode, switches=planted)
            _note(report, world, mode)
            if expected is None:
                continue
            report.count["comparisons"] += 1
            if (canonical(world.store.events), answer(world.store.events)) != expected:
                report.violations.append(f"seed {seed} {mode}: another canonical ledger")
    return report


def _note(report: Report, world: World, how: str) -> None:
    seed = world.scene.seed
    checker = world.play()
    report.violations += [f"seed {seed} {how}: {what}" for what in checker.violations]
    if how != "fault-free":
        report.count["runs"] += 1
        report.count["subtasks"] += len(checker.state.subtasks)
        report.count["replans"] += checker.state.replans
        report.count[f"run.{checker.state.final}"] += 1
        report.count.update(world.count)
    elif checker.state.final != "completed":
        report.violations.append(f"seed {seed} {how}: run.{checker.state.final}")


def main(arguments: Sequence[str]) -> int:
    """Play the seeds given; ``A-B`` is a range."""
    seeds: list[int] = []
    for argument in arguments:
        first, _, last = argument.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    report = play(seeds)
    for name, count in sorted(report.count.items()):
        print(f"{count:10,} {name}")
    print(report if report.violations else "\n0 violations")
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
