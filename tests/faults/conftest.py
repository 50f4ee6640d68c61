"""Folders in which processes die."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.ground import Ground, Grounds


@pytest.fixture
async def grounds(tmp_path: Path) -> AsyncIterator[Grounds]:
    """Make grounds for runs; what still lives there ends with the test."""
    made: list[Ground] = []

    def make(mode: str) -> Ground:
        folder = tmp_path / f"ground{len(made)}"
        folder.mkdir()
        made.append(Ground(folder, mode))
        return made[-1]

    yield make
    for ground in made:
        await ground.close()
