"""A planner whose plans a person reviews before they are spawned."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

from agents.assignment import Answer, Assignment
from agents.errors import Cancelled, Fenced, InvalidOutput
from agents.events import AgentEvent, OnEvent
from agents.journal import Entry, Journal
from agents.models.base import ModelRequest
from agents.outcome import Completed, Failed, InputRequest, Outcome, Parked
from agents.react import ReActAgent
from orchestrator.plan import PlanOutput


class ReviewedPlanner:
    """Parks each plan for approval; a denial's reason is given to the next attempt at planning.

    Args:
        planner: The agent that plans.
        output: Checks a plan that a person edited.
        expires_s: Seconds until an unanswered review counts as denied.
    """

    def __init__(self, planner: ReActAgent, *, output: PlanOutput, expires_s: float) -> None:
        self.name = planner.name
        self.description = planner.description
        self.planner = planner
        self._output = output
        self._expires_s = expires_s

    async def attempt(self, assignment: Assignment, journal: Journal, on_event: OnEvent) -> Outcome:
        """Plan, then wait for a person."""
        assignment = _told(assignment)
        entries = await journal.entries()
        outcome = await self.planner.attempt(assignment, journal, on_event)
        if not isinstance(outcome, Completed):
            return outcome
        asked = next((e.data["plan_review"] for e in entries if "plan_review" in e.data), None)
        answer = assignment.answers.get(asked) if asked else None
        if answer is not None:
            return self._answered(assignment, outcome, answer)
        seed = f"{assignment.run}/{assignment.subtask}/{assignment.attempt}/plan_review"
        request_id = asked or sha256(seed.encode()).hexdigest()[:16]
        if asked is None:
            verdict = await journal.record([Entry("notes", {"plan_review": request_id})])
            if verdict == "fenced":
                raise Fenced
            if verdict == "cancelled":
                raise Cancelled
        request = InputRequest(
            request_id,
            "plan_review",
            _rendered(outcome),
            schema=self._output.schema,
            data={"plan": outcome.output},
            expires_s=self._expires_s,
        )
        about = {"input": request_id, "kind": "plan_review", "rendered": request.rendered}
        event = AgentEvent(
            "input_requested",
            assignment.run,
            assignment.subtask,
            assignment.attempt,
            self.name,
            about,
        )
        on_event(event)
        return Parked(inputs=(request,), usage=outcome.usage)

    def _answered(self, assignment: Assignment, outcome: Completed, answer: Answer) -> Outcome:
        if not answer.approved:
            reason = answer.reason or "no reason given"
            return Failed(
                "plan_rejected",
                f"the plan was rejected: {reason}",
                retryable=not answer.expired,
                new_generation=True,
                usage=outcome.usage,
            )
        if answer.value is None:
            return outcome
        try:
            plan = self._output.parse(_text(answer.value), assignment)
        except InvalidOutput as exc:
            return Failed("invalid_plan", f"the edited plan cannot be used: {exc}")
        edited = self._output.complete(plan, assignment)
        return replace(edited, usage=outcome.usage)

    async def requests(self, assignment: Assignment, journal: Journal) -> list[ModelRequest]:
        """Return what the model was asked; see ``ReActAgent.requests``."""
        return await self.planner.requests(_told(assignment), journal)

    async def aclose(self) -> None:
        """Release the planner."""
        await self.planner.aclose()


def _told(assignment: Assignment) -> Assignment:
    denied = [a for a in assignment.answers.values() if a.approved is False]
    if not denied or not assignment.generation:
        return assignment
    reason = denied[-1].reason or "no reason given"
    told = f"{assignment.task}\n\nA person rejected an earlier plan: {reason}"
    return replace(assignment, task=told)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _rendered(outcome: Completed) -> str:
    lines = ["Run this plan?"]
    for item in outcome.spawns:
        after = f" after {', '.join(item.after)}" if item.after else ""
        lines.append(f"- {item.id} ({item.agent}){after}: {item.task}")
    return "\n".join(lines)
