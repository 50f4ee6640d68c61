"""Fixtures of the conformance suite: the bus of a play, and where its broker is."""

from __future__ import annotations

import pytest

from tests.conformance.gear import ADDRESSES, BUSES


@pytest.fixture(params=BUSES)
def bus(request: pytest.FixtureRequest) -> str:
    """The name of a bus; its broker runs."""
    name: str = request.param
    if name != "memory":
        ADDRESSES[name] = request.getfixturevalue(f"{name}_address")
    return name
