"""What a tool or a function agent is told about the run it works in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.content import Blob
from agents.journal import Journal
from agents.outcome import Finding


@dataclass(slots=True)
class RunContext:
    """The run, seen from a tool.

    Attributes:
        run: Run id.
        subtask: Subtask id.
        agent: Agent name.
        attempt: Attempt number; do not use it in an idempotency key.
        idempotency_key: The same for every attempt at the same call; hand it to the service.
        deadline: Seconds since the epoch at which this call must be over.
        session: Session id, or None.
        resources: What the pipeline was given by name, opened once a process.
        files: Files that came with the run.
        values: ``--input k=v`` of the run.
        findings: What this subtask has reported so far.
    """

    run: str
    subtask: str
    agent: str
    attempt: int
    idempotency_key: str = ""
    deadline: float = float("inf")
    session: str | None = None
    resources: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Blob, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    journal: Journal | None = field(default=None, repr=False)

    def report(self, kind: str, data: Any) -> None:
        """Report a finding; agents with ``reacts_to: [kind]`` get a subtask from it.

        Args:
            kind: The finding's kind.
            data: A JSON value.
        """
        self.findings.append(Finding(kind, data))

    async def read_file(self, name: str) -> bytes:
        """Return the bytes of a file that came with the run.

        Raises:
            KeyError: No file of that name came with the run.
        """
        for blob in self.files:
            if blob.name == name and self.journal is not None:
                return await self.journal.load_blob(blob.sha256)
        raise KeyError(name)
