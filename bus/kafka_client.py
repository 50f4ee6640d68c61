"""Clients of a Kafka cluster: how they are made and ended, and what their errors mean."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, errors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import collect_hosts, create_conn
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.helpers import create_ssl_context

from bus.errors import BusDenied, BusError, BusUnreachable, PayloadTooLarge, PublishFailed
from bus.kafka_settings import KafkaSettings

_CLOSE_S = 5.0
_RIGHTS = {
    errors.TopicAuthorizationFailedError: "DESCRIBE, and READ or WRITE, on the topic",
    errors.GroupAuthorizationFailedError: "READ on the group",
    errors.ClusterAuthorizationFailedError: "WRITE, which covers idempotence, on a topic",
}
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (socket.gaierror, "no such host; check the address"),
    (ssl.SSLCertVerificationError, "give its authority as tls.ca, and the name it certifies"),
    (ssl.SSLError, "the port may not speak TLS, or ask for a certificate: tls.cert"),
    (ConnectionRefusedError, "nothing listens there; is the broker running?"),
    (TimeoutError, "no answer; is the broker running, is a firewall between?"),
    (Exception, "if the port speaks TLS, set tls"),
)

_log = logging.getLogger("cadenza.bus")


class KafkaClients:
    """Makes the clients of one cluster."""

    def __init__(self, settings: KafkaSettings, tls: ssl.SSLContext | None) -> None:
        self.settings = settings
        self._way: dict[str, Any] = {
            "security_protocol": ("SASL_" if settings.sasl else "")
            + ("SSL" if tls else "PLAINTEXT"),
            "ssl_context": tls,
            "request_timeout_ms": int(settings.request_timeout_s * 1000),
        }
        if sasl := settings.sasl:
            self._way["sasl_mechanism"] = sasl.mechanism
            self._way["sasl_plain_username"] = sasl.user
            self._way["sasl_plain_password"] = sasl.password

    @classmethod
    async def load(cls, settings: KafkaSettings) -> KafkaClients:
        """Read certificates; raise ``BusError`` for what is wrong without asking a broker."""
        try:
            collect_hosts(settings.servers)
        except ValueError as exc:
            raise BusError(f"servers {settings.servers!r}: give host:port, commas between") from exc
        if (tls := settings.tls) is None:
            return cls(settings, None)
        files = {"cafile": tls.ca, "certfile": tls.cert, "keyfile": tls.key}
        try:
            return cls(settings, await asyncio.to_thread(lambda: create_ssl_context(**files)))
        except OSError as exc:  # ssl.SSLError is one
            raise BusError(f"a TLS file cannot be used: {exc}; check ca, cert, key") from exc

    def _common(self) -> dict[str, Any]:
        # Clients that lost one broker together must not all come back in step.
        jitter = {"retry_backoff_ms": random.randint(100, 400)}
        return {"bootstrap_servers": self.settings.servers, **jitter, **self._way}

    def producer(self) -> AIOKafkaProducer:
        """Return a producer: idempotent, acknowledged by all replicas."""
        packed = self.settings.compression
        packed_by = None if packed == "none" else packed
        options = {"acks": "all", "enable_idempotence": True, "compression_type": packed_by}
        return AIOKafkaProducer(**options, **self._common())

    def consumer(self, group: str | None, instance: str | None) -> AIOKafkaConsumer:
        """Return a consumer: of a group from the earliest message, of none from the latest."""
        return AIOKafkaConsumer(
            group_id=group,
            group_instance_id=instance,
            enable_auto_commit=False,
            auto_offset_reset="latest" if group is None else "earliest",
            # The sticky assignor keeps its state in a class, which two consumers would share.
            partition_assignment_strategy=(RoundRobinPartitionAssignor,),
            session_timeout_ms=int(self.settings.session_timeout_s * 1000),
            heartbeat_interval_ms=500,  # a rebalance is noticed by it
            max_poll_interval_ms=int(self.settings.max_poll_interval_s * 1000),
            # A partition that is wanted again waits this long, at most, for a fetch without it.
            fetch_max_wait_ms=100,
            **self._common(),
        )

    def admin(self) -> AIOKafkaAdminClient:
        """Return a client that makes topics."""
        return AIOKafkaAdminClient(**self._common())

    async def translated(self, exc: Exception, doing: str, *, sent: bool = False) -> BusError:
        """Return one of our errors for one of the library's.

        Args:
            exc: Theirs.
            doing: What failed.
            sent: Whether a message may be on its way; otherwise the brokers are asked why.
        """
        if right := _RIGHTS.get(type(exc)):
            who = repr(self.settings.sasl.user) if self.settings.sasl else "a client without user"
            return BusDenied(f"{doing}: {who} may not; grant {right} in the broker's ACLs")
        if isinstance(exc, errors.MessageSizeTooLargeError):
            return PayloadTooLarge(f"{doing}: the broker takes no message of that size: {exc}")
        if sent:
            return PublishFailed(f"{doing} failed: {exc!r}; try again")
        return await self._why_unreachable(doing)

    async def _why_unreachable(self, doing: str) -> BusError:
        told = []
        for host, port, _ in collect_hosts(self.settings.servers):
            try:
                (await create_conn(host, port, **self._way)).close()
                told.append(f"{host}:{port} answers no request; if it asks for a user, set sasl")
            except (errors.AuthenticationFailedError, errors.BrokerResponseError) as exc:
                hint = "check user, password and mechanism of sasl"
                return BusDenied(f"{doing}: {host}:{port} does not let us in: {exc}; {hint}")
            except (OSError, errors.KafkaError) as exc:
                hint = next(hint for kind, hint in _REASONS if isinstance(exc, kind))
                told.append(f"{host}:{port}: {exc or type(exc).__name__}; {hint}")
        return BusUnreachable(f"{doing}: no Kafka broker answers; {'; '.join(told)}")


async def end(stop: Callable[[], Awaitable[None]], client: AIOKafkaClient) -> None:
    """End a client within seconds; where the broker is away, what it has not taken is given up."""
    stopping = asyncio.ensure_future(stop())
    await asyncio.wait({stopping}, timeout=_CLOSE_S)
    if not stopping.done():
        _log.warning("the Kafka broker does not answer; its client is ended without it")
        for connection in tuple(client._conns.values()):  # what waits for an answer fails
            connection.close()
        await asyncio.wait({stopping}, timeout=1.0)
    if stopping.cancelled() or not stopping.done():  # a task of the library's was, by its own hand
        return
    if (error := stopping.exception()) is not None:
        _log.warning("a Kafka client did not end cleanly: %r", error)
