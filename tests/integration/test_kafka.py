"""The Kafka bus and what goes wrong around a broker: rights, TLS, rebalances, outages."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest

from bus.base import Delivery, Route
from bus.errors import BusDenied, BusError, BusUnreachable, PublishFailed, TopicMissing
from bus.kafka import KafkaBus
from bus.kafka_settings import KafkaSettings, Sasl, Tls
from tests.contracts.bus_contract import Inbox, message, new_topic
from tests.gear.fetch import KAFKA
from tests.gear.process import free_port
from tests.gear.programs import Kafka
from tests.gear.services import required

pytestmark = pytest.mark.timeout(120)
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


async def test_a_rebalance_while_sixteen_handlers_run_repeats_none(kafka_address: str) -> None:
    settings = KafkaSettings(servers=kafka_address, partitions=4)
    topic, seen, go = new_topic(), Counter[str](), asyncio.Event()
    inbox = Inbox()

    async def slow(delivery: Delivery) -> None:
        seen[delivery.envelope.id] += 1
        inbox.note(delivery)
        await go.wait()
        await delivery.acknowledge()

    async with KafkaBus(settings) as one, KafkaBus(settings) as other:
        await one.subscribe([Route(topic, slow, 16)], group=topic)
        ids = [f"m{n}" for n in range(16)]
        for each in ids:
            await one.publish(topic, message(each), key=each)
        await inbox.until_seen(ids)
        asyncio.get_running_loop().call_later(1.0, go.set)  # within the rebalance
        await other.subscribe([Route(topic, slow, 16)], group=topic)
        more = [f"n{n}" for n in range(16)]
        for each in more:
            await one.publish(topic, message(each), key=each)
        await inbox.until_seen(more)
    assert seen == Counter([*ids, *more])


async def test_a_handler_longer_than_the_poll_interval_neither_leaves_nor_repeats(
    kafka_address: str,
) -> None:
    settings = KafkaSettings(servers=kafka_address, partitions=1, max_poll_interval_s=1.0)
    topic, inbox, go = new_topic(), Inbox(), asyncio.Event()

    async def slow(delivery: Delivery) -> None:
        inbox.note(delivery)
        if delivery.envelope.id == "slow":
            await go.wait()
        await delivery.acknowledge()

    async with KafkaBus(settings) as bus:
        await bus.subscribe([Route(topic, slow)], group=topic)
        await bus.publish(topic, message("slow"), key="k")
        await inbox.until_seen(["slow"])
        asyncio.get_running_loop().call_later(3.0, go.set)
        await go.wait()
        await bus.publish(topic, message("next"), key="k")
        await inbox.until_seen(["next"])
        assert bus.last_poll_s < 2.0
    assert inbox.ids == ["slow", "next"]


@pytest.mark.parametrize(
    ("servers", "hint"),
    [
        ("no-such-host.invalid:9092", "no such host; check the address"),
        ("127.0.0.1:{port}", "nothing listens there; is the broker running?"),
    ],
)
async def test_a_broker_that_is_not_there_is_told_with_what_to_do(servers: str, hint: str) -> None:
    address = servers.format(port=free_port())
    bus = KafkaBus(KafkaSettings(servers=address, request_timeout_s=5.0))
    with pytest.raises(BusUnreachable, match=hint):
        await bus.open()


async def test_servers_that_are_no_address_are_refused() -> None:
    with pytest.raises(BusError, match="host:port"):
        await KafkaBus(KafkaSettings(servers="127.0.0.1:kafka")).open()


async def test_a_topic_with_too_few_partitions_is_told(
    kafka_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic()
    async with KafkaBus(KafkaSettings(servers=kafka_address, partitions=1)) as bus:
        await bus.publish(topic, message("m"), key="k")
    with caplog.at_level(logging.WARNING, "cadenza.bus"):
        async with KafkaBus(KafkaSettings(servers=kafka_address, partitions=3)) as bus:
            await bus.publish(topic, message("m"), key="k")
    assert f"topic {topic}: only 1 partitions" in caplog.text
    assert "--partitions 3" in caplog.text


async def test_an_outage_is_told_bounded_and_over_when_the_broker_is_back(
    own_kafka: Kafka,
) -> None:
    settings = KafkaSettings(servers=own_kafka.address, partitions=1, request_timeout_s=3.0)
    topic, inbox = new_topic(), Inbox()
    async with KafkaBus(settings) as bus:
        await bus.subscribe([Route(topic, inbox.take)], group=topic)
        await bus.publish(topic, message("before"), key="k")
        await inbox.until_seen(["before"])
        await own_kafka.stop()
        began = time.monotonic()
        with pytest.raises(PublishFailed):
            await bus.publish(topic, message("lost"), key="k")
        assert time.monotonic() - began < 15
        await own_kafka.start()
        async with asyncio.timeout(40):
            while True:
                try:
                    await bus.publish(topic, message("after"), key="k")
                    break
                except PublishFailed:
                    continue
        await inbox.until_seen(["after"])
        await own_kafka.stop()
        began = time.monotonic()
    assert time.monotonic() - began < 30, "closing without a broker ends"


class Guarded:
    """A broker with users, rights and TLS."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        pem, self.ca = folder / "server.pem", folder / "ca.pem"
        made = subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
                *("-keyout", folder / "key.pem", "-out", self.ca),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        pem.write_text((folder / "key.pem").read_text() + self.ca.read_text())
        self.broker = Kafka(
            folder,
            listeners={"USERS": "SASL_PLAINTEXT", "TLS": "SSL"},
            settings={
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS;User:ann",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
                "listener.name.users.plain.sasl.jaas.config": (
                    f'{_PLAIN} user_ann="right" user_bob="right";'
                ),
                "listener.name.users.scram-sha-512.sasl.jaas.config": _SCRAM,
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(pem),
            },
        )

    def settings(
        self, listener: str, *, sasl: Sasl | None = None, tls: Tls | None = None
    ) -> KafkaSettings:
        """Return the settings of a client."""
        servers = self.broker.address_of(listener)
        return KafkaSettings(servers, partitions=1, sasl=sasl, tls=tls, request_timeout_s=8.0)


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    required(KAFKA)
    folder = tmp_path / "guarded"
    folder.mkdir()
    guarded = await asyncio.to_thread(Guarded, folder)
    scram = ("--add-scram", "SCRAM-SHA-512=[name=ann,password=right]")
    await asyncio.to_thread(guarded.broker.format, *scram)
    await guarded.broker.start()
    yield guarded
    guarded.broker.process.kill()


async def carries(settings: KafkaSettings) -> bool:
    """Return whether a message arrives."""
    topic, inbox = new_topic(), Inbox()
    async with KafkaBus(settings) as bus:
        await bus.subscribe([Route(topic, inbox.take)], group=topic)
        await bus.publish(topic, message("m"), key="k")
        await inbox.until_seen(["m"])
    return True


async def test_users_rights_and_tls(guarded: Guarded) -> None:
    mechanisms: tuple[Literal["PLAIN", "SCRAM-SHA-512"], ...] = ("PLAIN", "SCRAM-SHA-512")
    for mechanism in mechanisms:
        ann = Sasl("ann", "right", mechanism)
        assert await carries(guarded.settings("USERS", sasl=ann))
        wrong = Sasl("ann", "wrong", mechanism)
        with pytest.raises(BusDenied, match="check user, password"):
            await KafkaBus(guarded.settings("USERS", sasl=wrong)).open()
    with pytest.raises(BusError, match="sasl"):
        await KafkaBus(guarded.settings("USERS")).open()

    bob = guarded.settings("USERS", sasl=Sasl("bob", "right", "PLAIN"))
    with pytest.raises((BusDenied, TopicMissing), match="ACL"):
        await carries(bob)

    assert await carries(guarded.settings("TLS", tls=Tls(ca=guarded.ca)))
    with pytest.raises(BusUnreachable, match=r"tls\.ca"):
        await KafkaBus(guarded.settings("TLS", tls=Tls())).open()
    with pytest.raises(BusUnreachable, match="set tls"):
        await KafkaBus(guarded.settings("TLS")).open()
    with pytest.raises(BusError, match="TLS file"):
        await KafkaBus(guarded.settings("TLS", tls=Tls(ca=guarded.folder / "none"))).open()
