"""The bus contract for the memory bus, bare and under every fault that keeps its promises."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bus.base import Bus
from bus.faulty import FaultyBus
from bus.memory import MemoryBus
from tests.contracts.bus_contract import BusContract, QuietBusContract


class TestMemoryBus(QuietBusContract):
    @pytest.fixture
    async def bus(self) -> AsyncIterator[Bus]:
        async with MemoryBus() as bus:
            yield bus


class TestFaultyBusWithoutFaults(QuietBusContract):
    @pytest.fixture
    async def bus(self) -> AsyncIterator[Bus]:
        async with FaultyBus(MemoryBus(), seed=0) as bus:
            yield bus


class TestFaultyBus(BusContract):
    @pytest.fixture(params=[1, 2, 3])
    async def bus(self, request: pytest.FixtureRequest) -> AsyncIterator[Bus]:
        faults = FaultyBus(
            MemoryBus(),
            seed=request.param,
            duplicate=0.4,
            delay=0.5,
            reorder=0.4,
            drop_before_acknowledge=0.4,
            longest_delay_s=0.005,
        )
        async with faults as bus:
            yield bus
