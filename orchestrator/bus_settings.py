"""The settings of the bus: which broker, where, and who we are for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bus.kafka_settings import KafkaSettings, Sasl, Tls
from orchestrator.section import SECRET, Count, Name, Section, secret_name


class TlsEntry(Section):
    """Encryption of the way to a broker; paths are relative to the pipeline file."""

    ca: str | None = None
    """File of the authorities to trust; the system's when not given."""
    cert: str | None = None
    """File of our own certificate, where the broker asks for one."""
    key: str | None = None
    """File of our certificate's key."""


class SaslEntry(Section):
    """Who we are for a broker."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """How the password is proven; PLAIN sends it, so use it with `tls` alone."""
    user: str
    """User name."""
    password: Annotated[str, Field(pattern=SECRET)]
    """`${VAR}`: the environment variable that holds the password; never the password itself."""


class BusEntry(Section):
    """What carries work and news between processes."""

    kind: Literal["memory", "kafka", "mqtt"] = "memory"
    """The broker; memory is one process."""
    namespace: Name | None = None
    """Prefix of all topics; the pipeline's name when not given."""
    url: str = "127.0.0.1:9092"
    """Where the broker is: `host:port`, several with commas between."""
    partitions: Count = 8
    """Partitions of topics that are created: processes that may share one agent's work."""
    replication: Annotated[int, Field(ge=-1)] = -1
    """Brokers that keep each message of topics that are created; -1 is the broker's default."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    """How messages are packed."""
    instance: str | None = None
    """Name of this host among those that run the same agents: it may restart within the session
    time-out and keep its share. Unique, for example `${HOSTNAME}`."""
    tls: TlsEntry | None = None
    """Encryption, `{}` with the system's authorities; without it nothing is encrypted."""
    sasl: SaslEntry | None = None
    """User and password."""


def kafka_settings(entry: BusEntry, folder: Path) -> KafkaSettings:
    """Return the settings as the Kafka bus takes them; relative paths start in ``folder``."""

    def path(file: str | None) -> Path | None:
        return None if file is None else folder / file

    tls, sasl = entry.tls, entry.sasl
    return KafkaSettings(
        servers=entry.url,
        partitions=entry.partitions,
        replication=entry.replication,
        compression=entry.compression,
        instance=entry.instance,
        tls=None if tls is None else Tls(path(tls.ca), path(tls.cert), path(tls.key)),
        sasl=None
        if sasl is None
        else Sasl(sasl.user, os.environ[secret_name(sasl.password)], sasl.mechanism),
    )
