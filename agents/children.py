"""Asking other agents: a child subtask that the attempt parks on."""

from __future__ import annotations

from collections.abc import Sequence

from agents.abilities import ability
from agents.assignment import Assignment, Input
from agents.messages import ToolCall
from agents.outcome import ChildRequest, WaitMode
from agents.replay import Place, Tape
from agents.task_text import value_text
from agents.tools import Tool, ToolResult

ASK_AGENT = "ask_agent"
HAND_OFF = "hand_off"
_MODES: dict[str, WaitMode] = {ASK_AGENT: "ask", HAND_OFF: "hand_off"}


def team_tools(
    assignment: Assignment, *, can_ask: Sequence[str], can_hand_off: Sequence[str]
) -> tuple[Tool, ...]:
    """Return ``ask_agent`` and ``hand_off`` where they are allowed and there is a team."""
    words = {"agent": "Who.", "task": "The whole task; the other agent sees nothing else."}

    def offer(name: str, allowed: Sequence[str], text: str) -> tuple[Tool, ...]:
        team = {n: d for n, d in assignment.team.items() if n in allowed and n != assignment.agent}
        names = "; ".join(f"{n}: {d}" for n, d in team.items())
        tool = ability(name, f"{text} Agents: {names}", words, one_of={"agent": tuple(team)})
        return (tool,) if team else ()

    ask = offer(ASK_AGENT, can_ask, "Give another agent a task and wait for its result.")
    if not assignment.may_hand_off:
        return ask
    text = "Give your whole task to another agent; its answer becomes yours."
    return (*ask, *offer(HAND_OFF, can_hand_off, text))


class Children:
    """The children of one attempt's subtask."""

    def __init__(self, assignment: Assignment, tape: Tape) -> None:
        self._assignment = assignment
        self._tape = tape

    def wait(self, place: Place, call: ToolCall) -> Input | ChildRequest:
        """Return the child's result, or the request to park on; its number is journalled."""
        known = self._tape.spawns.get(place)
        if known is None:
            turn, position = place
            known = {
                "turn": turn,
                "position": position,
                "agent": str(call.arguments["agent"]),
                "task": str(call.arguments["task"]),
                "mode": _MODES[call.name],
                "k": self._next(),
            }
            self._tape.put("spawn", known)
        child = f"{self._assignment.subtask}/{known['agent']}-{known['k']}"
        result = self._assignment.children.get(child)
        if result is not None:
            return result
        return ChildRequest(known["agent"], known["task"], known["mode"], known["k"])

    def _next(self) -> int:
        # Children of earlier generations are not in this journal, but their ids are taken.
        numbers = [s["k"] for s in self._tape.spawns.values()]
        for child in self._assignment.children:
            number = child.rpartition("-")[2]
            if number.isdigit():
                numbers.append(int(number))
        return max(numbers, default=-1) + 1


def child_result(child: Input) -> ToolResult:
    """Return what the model sees of a child; one that failed is an error observation."""
    if child.status == "completed":
        return ToolResult("success", data=child.output, summary=value_text(child.output))
    why = child.error or "no reason given"
    return ToolResult("error", error=f"Agent {child.agent} did not answer: {child.status}: {why}")
