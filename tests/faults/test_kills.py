"""A process is killed at a named point, and another one brings the run to the same end."""

from __future__ import annotations

import asyncio
import json
import signal
from random import Random
from typing import Any

import pytest

from tests.conformance.gear import MODES
from tests.faults.bombs import POINTS
from tests.faults.ground import ANSWER, Ground, Grounds, ended

pytestmark = pytest.mark.timeout(120)

Ledger = list[dict[str, Any]]
_EXPECTED: list[Ledger] = []  # played once by each of xdist's workers

_TRIES = 5

# Passages that every schedule of the run has, by call.
MOST = {
    "commit": 5,
    "publish": 20,
    "mark": 4,
    "acknowledge": 10,
    "claim": 5,
    "gate": 16,
    "outcome": 5,
    "effect": 2,
}
ALL = [
    (mode, point, n)
    for mode in MODES
    for point in POINTS
    for n in range(1, MOST[point.split()[0]] + 1)
]
SOME = [(m, p, Random(f"{m} {p} 3").randint(1, MOST[p.split()[0]])) for m in MODES for p in POINTS]


async def _kill(ground: Ground, point: str, n: int) -> None:
    process = await ground.start("run", point, str(n))
    await ended(process, code=-signal.SIGKILL)
    marker = await asyncio.to_thread((ground.folder / "marker").read_text)
    assert json.loads(marker) == [point, n]


async def _same_end(ground: Ground, expected: Ledger, *, lost: int = 1) -> None:
    assert {r["output"] for r in await ground.results()} == {ANSWER}
    assert await ground.canonical() == expected
    assert await ground.faults(lost=lost) == []


async def _undisturbed(grounds: Grounds) -> Ledger:
    if not _EXPECTED:
        ground = grounds("orchestration")
        await ended(await ground.start("run"))
        assert await ground.faults(lost=0) == []
        _EXPECTED.append(await ground.canonical())
    return _EXPECTED[0]


async def _killed_and_resumed(grounds: Grounds, mode: str, point: str, n: int) -> None:
    ground = grounds(mode)
    _, expected = await asyncio.gather(_kill(ground, point, n), _undisturbed(grounds))
    await ended(await ground.start("join"))
    await _same_end(ground, expected)


@pytest.mark.parametrize(("mode", "point", "n"), SOME)
async def test_a_run_whose_process_was_killed_is_resumed_to_the_same_end(
    grounds: Grounds, mode: str, point: str, n: int
) -> None:
    await _killed_and_resumed(grounds, mode, point, n)


@pytest.mark.heavy
@pytest.mark.parametrize(("mode", "point", "n"), [case for case in ALL if case not in SOME])
async def test_every_passage_of_every_point_is_survived(
    grounds: Grounds, mode: str, point: str, n: int
) -> None:
    await _killed_and_resumed(grounds, mode, point, n)


async def _killed_beside_another(grounds: Grounds, mode: str, point: str, n: int) -> None:
    expected = await _undisturbed(grounds)
    for _ in range(_TRIES):
        ground = grounds(mode)
        other = await ground.start("join")
        await ground.there("joined")
        first = await ground.start("run", point, str(n))
        await first.communicate()
        await ended(other)
        if first.returncode:  # else the other one was faster, and the point was not passed
            break
    assert first.returncode == -signal.SIGKILL
    assert json.loads(await asyncio.to_thread((ground.folder / "marker").read_text)) == [point, n]
    await _same_end(ground, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "point", ["commit after", "publish before", "claim after", "gate after", "outcome after"]
)
async def test_a_process_that_is_there_already_takes_over(
    grounds: Grounds, mode: str, point: str
) -> None:
    await _killed_beside_another(grounds, mode, point, 2)


@pytest.mark.heavy
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("point", POINTS)
async def test_a_process_that_is_there_already_takes_over_at_every_point(
    grounds: Grounds, mode: str, point: str
) -> None:
    await _killed_beside_another(grounds, mode, point, 1)


@pytest.mark.parametrize("mode", MODES)
async def test_the_command_line_resumes_a_run_whose_process_was_killed(
    grounds: Grounds, mode: str
) -> None:
    ground = grounds(mode)
    _, expected = await asyncio.gather(_kill(ground, "gate after", 7), _undisturbed(grounds))
    assert ANSWER in await ground.resume_by_command()
    assert await ground.canonical() == expected
    assert await ground.faults(lost=1) == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_survives_one_kill_after_another(grounds: Grounds, mode: str) -> None:
    ground = grounds(mode)
    await _kill(ground, "commit before", 1)
    for point, n in (("claim after", 2), ("gate after", 4), ("outcome before", 2)):
        await asyncio.to_thread((ground.folder / "marker").unlink)
        process = await ground.start("resume", point, str(n))
        await ended(process, code=-signal.SIGKILL)
        assert json.loads(await asyncio.to_thread((ground.folder / "marker").read_text))[0] == point
    await ended(await ground.start("join"))
    await _same_end(ground, await _undisturbed(grounds), lost=4)
