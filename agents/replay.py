"""The journal as the loop sees it: what is known already, what is still to be written.

A new attempt runs the same code over what earlier attempts recorded: a reply or a result that is
on disk is taken from there, so no model call is made again and no effect happens twice.
Replies are known by turn, results by (turn, position); the order of completion means nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agents.errors import Cancelled, Fenced, OverBudget
from agents.journal import EffectMark, Entry, Journal, Reserve
from agents.usage import Usage

Place = tuple[int, int]


class Tape:
    """Recorded entries by what they answer, pending entries, and the gate.

    Attributes:
        replies: Data of ``model_reply`` by turn.
        intents: Data of ``tool_intent`` by (turn, position), oldest first; void ones left out.
        results: Data of ``tool_result`` by (turn, position).
        spawns: Data of ``spawn`` by (turn, position).
        inputs: Data of ``input`` by (turn, position, kind, count of intents).
        notes: Data of ``notes`` in order.
        events: Data of ``event`` in order, as recorded.
        effects: Effects of the subtask by key, all generations.
        void: Keys of intents that were written but never acted on, for want of budget.
        spent: Usage of this attempt; what earlier attempts spent is settled.
        total: Usage of the whole journal.
    """

    def __init__(
        self, journal: Journal, entries: Sequence[Entry], effects: dict[str, EffectMark]
    ) -> None:
        self.journal = journal
        self.replies: dict[int, dict[str, Any]] = {}
        self.intents: dict[Place, list[dict[str, Any]]] = {}
        self.results: dict[Place, dict[str, Any]] = {}
        self.spawns: dict[Place, dict[str, Any]] = {}
        self.inputs: dict[tuple[int, int, str, int], dict[str, Any]] = {}
        self.notes: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.effects = effects
        self.void: set[str] = set()
        self.spent = self.total = Usage()
        self._pending: list[Entry] = []
        self._marks: list[EffectMark] = []
        self._settle: Usage | None = None
        self._lock = asyncio.Lock()
        self._writing: asyncio.Future[Any] | None = None
        for entry in entries:
            self._know(entry)

    @classmethod
    async def open(cls, journal: Journal) -> Tape:
        """Read what earlier attempts of this generation wrote."""
        return cls(journal, await journal.entries(), dict(await journal.effects()))

    def put(self, kind: str, data: dict[str, Any]) -> None:
        """Add an entry; it is written with the next ``gate``."""
        entry = Entry(kind, data)
        self._pending.append(entry)
        self._know(entry)

    def mark(self, mark: EffectMark) -> None:
        """Add an effect's step; it is written with the next ``gate``."""
        self._marks.append(mark)
        self.effects[mark.key] = mark

    def spend(self, usage: Usage) -> None:
        """Count what a call did cost; it is settled with the next ``gate``."""
        self.spent += usage
        self.total += usage
        self._settle = usage if self._settle is None else self._settle + usage

    async def gate(self, reserve: Reserve | None = None, *, settle: bool = True) -> None:
        """Write all that is pending, settle, and reserve for the next call.

        Args:
            reserve: What the next call may cost.
            settle: False while other calls of the same reservation are under way.

        Raises:
            Fenced: Another attempt owns the subtask; nothing was written.
            Cancelled: The run or subtask is cancelled; nothing was written.
            OverBudget: Entries are written, the reservation is refused.
        """
        async with self._lock:
            await self._quiet()
            cost = self._settle if settle else None
            if reserve is None and not (self._pending or self._marks or cost):
                return
            entries, marks = self._pending, self._marks
            self._pending, self._marks = [], []
            self._settle = None if settle else self._settle
            # Shielded: whether a record cut off half-way was written would be unknown.
            self._writing = asyncio.ensure_future(
                self.journal.record(entries, settle=cost, reserve=reserve, effects=marks)
            )
            verdict = await asyncio.shield(self._writing)
        match verdict:
            case "fenced":
                raise Fenced
            case "cancelled":
                raise Cancelled
            case "over_budget":
                raise OverBudget

    async def rescue(self, *, within_s: float = 2.0) -> None:
        """Write what is pending, best effort, when the attempt is being cancelled."""
        task = asyncio.ensure_future(self.gate())
        await asyncio.wait({task}, timeout=within_s)
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()

    async def _quiet(self) -> None:
        if self._writing is not None and not self._writing.done():
            await asyncio.wait({self._writing})

    def _know(self, entry: Entry) -> None:
        data = entry.data
        match entry.kind:
            case "model_reply":
                self.replies[data["turn"]] = data
            case "tool_intent":
                self._know_intent(data)
            case "tool_result":
                self.results[data["turn"], data["position"]] = data
            case "spawn":
                self.spawns[data["turn"], data["position"]] = data
            case "input":
                self.inputs[data["turn"], data["position"], data["kind"], data["tries"]] = data
            case "notes":
                self.notes.append(data)
            case _:
                self.events.append(data)

    def _know_intent(self, data: dict[str, Any]) -> None:
        known = self.intents.setdefault((data["turn"], data["position"]), [])
        if data.get("void"):
            known.pop()
            self.void.add(data["key"])
        else:
            known.append(data)
            self.void.discard(data["key"])
