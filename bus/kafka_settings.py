"""How a Kafka cluster is reached and used; apart from the client, which takes long to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Tls:
    """Encryption.

    Attributes:
        ca: File of the authorities to trust; None trusts the system's.
        cert: File of our own certificate, or None.
        key: File of its key, or None.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class Sasl:
    """Who we are.

    Attributes:
        user: User name.
        password: Not shown by ``repr``.
        mechanism: How the password is proven.
    """

    user: str
    password: str = field(repr=False)
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """How a cluster is reached and used.

    Attributes:
        servers: ``host:port``, several with commas between.
        partitions: Partitions of topics that are created.
        replication: Copies of each message of topics that are created; -1 is the broker's default.
        compression: How messages are packed.
        instance: Static membership: this host's name among a group's members, or None.
        tls: Encryption, or None.
        sasl: User and password, or None.
        session_timeout_s: Seconds after which the broker gives up a silent consumer.
        max_poll_interval_s: Seconds without a poll after which a consumer leaves its group.
        request_timeout_s: Seconds for one request, and for one message to be taken.
    """

    servers: str = "127.0.0.1:9092"
    partitions: int = 8
    replication: int = -1
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    instance: str | None = None
    tls: Tls | None = None
    sasl: Sasl | None = None
    session_timeout_s: float = 10.0
    max_poll_interval_s: float = 300.0
    request_timeout_s: float = 30.0
