"""Fixtures of the fleets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.fleet.fleet import Fleet

Fleets = Callable[..., Fleet]


@pytest.fixture
async def fleets(tmp_path: Path) -> AsyncIterator[Fleets]:
    """Makes fleets in folders of their own, and ends them."""
    made: list[Fleet] = []

    def make(mode: str, broker: str, **more: object) -> Fleet:
        folder = tmp_path / f"fleet{len(made)}"
        folder.mkdir()
        made.append(Fleet(folder, mode, broker, **more))  # type: ignore[arg-type]  # passed on
        return made[-1]

    yield make
    for fleet in made:
        await fleet.close()
