"""Topic names under a namespace: what is published where."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # no dot, or two topics could be equal


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one pipeline.

    The names are valid for Kafka (letters, digits, ``.``, ``_``, ``-``; 249 at most) and hold
    none of the characters that mean something to MQTT.

    Args:
        namespace: Prefix of all names: letters, digits, ``.``, ``_`` and ``-``, beginning with
            a letter or digit, 128 at most.

    Raises:
        ValueError: The namespace is not of that form, or its last part is ``work``, which would
            make its topics look like another namespace's work.
    """

    namespace: str

    def __post_init__(self) -> None:
        if not _NAMESPACE.fullmatch(self.namespace):
            raise ValueError(
                f"namespace {self.namespace!r} cannot prefix a topic; use letters, digits, '.', "
                "'_' and '-', begin with a letter or digit, and stay within 128 characters"
            )
        if f".{self.namespace}".endswith(".work"):
            raise ValueError(
                f"namespace {self.namespace!r} must not end in 'work', which is a topic's name; "
                "append a word of your own"
            )

    @property
    def events(self) -> str:
        """Committed ledger events with their data; key: the run."""
        return f"{self.namespace}.events"

    @property
    def facts(self) -> str:
        """Wakes whoever advances a run; whole outcomes from guests alone; key: the run."""
        return f"{self.namespace}.facts"

    @property
    def stream(self) -> str:
        """Deltas for watchers, best effort."""
        return f"{self.namespace}.stream"

    def work(self, agent: str) -> str:
        """Return the topic that carries an agent's work; key: the subtask.

        Args:
            agent: Agent name: letters, digits, ``_`` and ``-``, 64 at most.

        Raises:
            ValueError: ``agent`` is not of that form.
        """
        if not _AGENT.fullmatch(agent):
            raise ValueError(
                f"agent {agent!r} cannot name a topic; use letters, digits, '_' and '-', begin "
                "with a letter or digit, and stay within 64 characters"
            )
        return f"{self.namespace}.work.{agent}"
