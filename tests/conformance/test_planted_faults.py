"""The comparison is worth something: it reports drivers with a fault planted in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agents.journal import Verdict
from orchestrator.commit import Commit
from orchestrator.facts import Ended
from orchestrator.store.base import AttemptId, Due, Scope
from orchestrator.store.sqlite import SqliteRunStore
from tests.conformance.cases import EQUAL
from tests.conformance.gear import MODES, Played, differences, play

ALL_LOST = {"drop_before_acknowledge": 1.0, "delay": 1.0, "longest_delay_s": 0.01}
# The lease is longer than our patience; it ends what is left over then.
SHORT_LEASE = replace(
    EQUAL["planned"],
    settings=lambda: {**EQUAL["planned"].settings(), "limits": {"lease_s": 4.0}},
)


class DropsASpawn(SqliteRunStore):
    """A driver that loses one subtask between deciding and appending."""

    async def commit(self, commit: Commit) -> bool:
        """Leave out whatever concerns the subtask."""
        lost = "plan/d"
        commit.events = [e for e in commit.events if e.data.get("subtask") != lost]
        commit.announced = [a for a in commit.announced if a[0] != lost]
        commit.sent = [a for a in commit.sent if a[0] != lost]
        return await super().commit(commit)


class DispatchesTwice(SqliteRunStore):
    """A driver that appends each dispatch twice."""

    async def commit(self, commit: Commit) -> bool:
        """Repeat dispatches."""
        commit.events = [
            e for e in commit.events for _ in range(1 + (e.type == "subtask.dispatched"))
        ]
        return await super().commit(commit)


class LosesAnOutcome(SqliteRunStore):
    """A driver that is told that an outcome is written when it is not."""

    async def finish(
        self, attempt: AttemptId, fact: Ended, *, blobs: Mapping[str, bytes]
    ) -> Verdict:
        """Write all but one."""
        if attempt.subtask == "plan/c":
            return "ok"
        return await super().finish(attempt, fact, blobs=blobs)


class NeverResends(SqliteRunStore):
    """A driver whose sweeper passes over what was not claimed."""

    async def due(self, scope: Scope) -> Due:
        """Leave it out."""
        return replace(await super().due(scope), resend=())


async def _expected(folder: Path) -> Played:
    return await play(EQUAL["planned"], folder, mode="orchestration")


@pytest.mark.parametrize("mode", MODES)
async def test_a_dropped_spawn_is_reported(mode: str, data_folder: Path) -> None:
    found = await play(EQUAL["planned"], data_folder, mode=mode, wrap_store=DropsASpawn)
    told = differences(await _expected(data_folder), found)
    assert any("subtask plan/d is missing" in line for line in told)
    assert any("answer" in line for line in told)


@pytest.mark.parametrize("mode", MODES)
async def test_a_double_dispatch_is_reported(mode: str, data_folder: Path) -> None:
    found = await play(EQUAL["planned"], data_folder, mode=mode, wrap_store=DispatchesTwice)
    told = differences(await _expected(data_folder), found)
    assert any("was dispatched as attempt 1 after 1" in line for line in told)


@pytest.mark.parametrize("mode", MODES)
async def test_an_outcome_whose_writing_was_acknowledged_and_lost_is_reported(
    mode: str, data_folder: Path
) -> None:
    found = await play(
        SHORT_LEASE, data_folder, mode=mode, wrap_store=LosesAnOutcome, patience_s=2.0
    )
    told = differences(await _expected(data_folder), found)
    assert any("the run does not end" in line for line in told)


@pytest.mark.parametrize("mode", MODES)
async def test_lost_messages_are_reported_where_nobody_sends_them_again(
    mode: str, data_folder: Path
) -> None:
    found = await play(
        EQUAL["planned"],
        data_folder,
        mode=mode,
        wrap_store=NeverResends,
        seed=1,
        faults={"lose": 1.0},
        patience_s=2.0,
    )
    told = differences(await _expected(data_folder), found)
    assert any("the run does not end" in line for line in told)


@pytest.mark.parametrize("mode", MODES)
async def test_lost_acknowledgements_of_messages_change_nothing(
    mode: str, data_folder: Path
) -> None:
    # A worker once began a redelivered attempt a second time, beside the first: the store grants
    # a worker's own claim again.
    found = await play(EQUAL["planned"], data_folder, mode=mode, seed=3, faults=ALL_LOST)
    assert differences(await _expected(data_folder), found) == []
