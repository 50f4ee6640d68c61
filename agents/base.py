"""What an agent is: a name, a description, and one attempt at a subtask."""

from __future__ import annotations

from typing import Protocol

from agents.assignment import Assignment
from agents.events import OnEvent
from agents.journal import Journal
from agents.outcome import Outcome


class Agent(Protocol):
    """A role that can do subtasks; the same object serves both modes.

    Attributes:
        name: Its name in the pipeline.
        description: What planners and colleagues are told of it.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    async def attempt(self, assignment: Assignment, journal: Journal, on_event: OnEvent) -> Outcome:
        """Do one attempt.

        Args:
            assignment: What to do.
            journal: Durable memory and gate.
            on_event: Told every agent event at once; must not block.

        Returns:
            One outcome. Errors of models and tools become ``Failed``.

        Raises:
            Halt: The gate said stop: another attempt owns the subtask, or it is cancelled.
        """

    async def aclose(self) -> None:
        """Release what it holds."""
