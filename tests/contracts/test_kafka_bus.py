"""The bus contract for the Kafka bus on a real broker, bare and under faults."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bus.base import Bus
from bus.faulty import FaultyBus
from bus.kafka import KafkaBus
from bus.kafka_settings import KafkaSettings
from tests.contracts.bus_contract import BusContract, QuietBusContract


@pytest.fixture
def settings(kafka_address: str) -> KafkaSettings:
    return KafkaSettings(servers=kafka_address, partitions=2)


class TestKafkaBus(QuietBusContract):
    @pytest.fixture
    async def bus(self, settings: KafkaSettings) -> AsyncIterator[Bus]:
        async with KafkaBus(settings) as bus:
            yield bus


class TestFaultyBus(BusContract):
    @pytest.fixture
    async def bus(self, settings: KafkaSettings) -> AsyncIterator[Bus]:
        faults = FaultyBus(
            KafkaBus(settings),
            seed=1,
            duplicate=0.4,
            delay=0.5,
            reorder=0.4,
            drop_before_acknowledge=0.4,
            longest_delay_s=0.005,
        )
        async with faults as bus:
            yield bus
