"""The same pipelines with the same model, in every combination of mode and bus, under faults."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bus.faulty import FaultyBus
from orchestrator.canonical import canonical_hash
from tests.conformance.cases import EQUAL
from tests.conformance.gear import BUSES, MODES, Played, differences, play
from tests.conformance.racing import RACING

SEEDS = {"memory": (1, 2), "kafka": (3,)}
MANY_SEEDS = range(100, 130)


async def _compare(name: str, folder: Path, bus: str, seeds: list[int | None]) -> None:
    expected = await play(EQUAL[name], folder, mode="orchestration")
    assert expected.broken == []
    assert expected.result.status == "completed"
    for few in (seeds[i : i + 4] for i in range(0, len(seeds), 4)):
        found = await asyncio.gather(
            *(
                play(EQUAL[name], folder, mode=mode, bus=bus, seed=seed)
                for mode in MODES
                for seed in few
            )
        )
        assert [line for played in found for line in differences(expected, played)] == []
        assert {canonical_hash(p.ledger) for p in found} == {canonical_hash(expected.ledger)}


@pytest.mark.parametrize("name", EQUAL)
async def test_every_combination_has_the_same_ledger_answer_and_a_whole_trace(
    name: str, data_folder: Path, bus: str
) -> None:
    await _compare(name, data_folder, bus, [None, *SEEDS[bus]])


@pytest.mark.parametrize("mode", MODES)
async def test_a_broker_that_delivers_all_three_times_and_reordered_changes_nothing(
    mode: str, data_folder: Path, bus: str
) -> None:
    expected = await play(EQUAL["colleagues"], data_folder, mode=mode)
    inner = FaultyBus(BUSES[bus](), 4, duplicate=1.0)
    carrier = FaultyBus(inner, 5, duplicate=0.5, reorder=0.5, delay=0.5, longest_delay_s=0.1)
    found = await play(EQUAL["colleagues"], data_folder, mode=mode, carrier=carrier)
    assert differences(expected, found) == []


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", EQUAL)
async def test_many_seeds_have_the_same_ledger_answer_and_a_whole_trace(
    name: str, data_folder: Path, bus: str
) -> None:
    await _compare(name, data_folder, bus, list(MANY_SEEDS))


async def _race(name: str, folder: Path, bus: str, seeds: list[int | None]) -> list[Played]:
    case, statuses = RACING[name]
    found = await asyncio.gather(
        *(play(case, folder, mode=mode, bus=bus, seed=seed) for mode in MODES for seed in seeds)
    )
    assert [(p.label, p.broken) for p in found if p.broken] == []
    assert {p.result.status for p in found} <= statuses
    return found


@pytest.mark.parametrize("name", RACING)
async def test_invariants_hold_where_siblings_are_cancelled_at_racing_moments(
    name: str, data_folder: Path, bus: str
) -> None:
    await _race(name, data_folder, bus, [None, *SEEDS[bus]])


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RACING)
async def test_invariants_hold_for_many_seeds(name: str, data_folder: Path, bus: str) -> None:
    for first in MANY_SEEDS[::5]:
        await _race(name, data_folder, bus, list(range(first, first + 5)))


async def test_any_starts_at_the_first_completion_and_cancels_what_nobody_needs(
    data_folder: Path,
) -> None:
    for played in await _race("any", data_folder, "memory", [None]):
        ends = {e.data["subtask"]: e.type for e in played.ledger if e.type.startswith("subtask.")}
        assert ends["slow"] == "subtask.cancelled"
        assert ends["end"] == "subtask.completed"


async def test_a_join_deadline_starts_with_what_is_completed(data_folder: Path) -> None:
    for played in await _race("join deadline", data_folder, "memory", [None]):
        assert set(played.result.output["checked"]) == {"fast"}


async def test_a_budget_stop_keeps_partial_results_and_never_overspends(data_folder: Path) -> None:
    for played in await _race("budget stop", data_folder, "memory", [None]):
        assert played.result.stop_reason == "budget"
        assert played.result.partial == {"z": {"checked": {}}}
        assert played.result.usage.llm_calls == sum(played.asked.values()) == 5
