"""Agents: the ReAct loop, function agents, tools, models and the values they exchange."""

from agents.assignment import Answer, Assignment, Input
from agents.base import Agent
from agents.content import Blob, Content, Text
from agents.context import RunContext
from agents.errors import (
    AgentError,
    Cancelled,
    Fenced,
    Halt,
    InvalidOutput,
    ModelError,
    OverBudget,
    ToolDefinitionError,
    ToolDenied,
    UnsupportedMedia,
)
from agents.events import AgentEvent, OnEvent
from agents.function import FunctionAgent, agent
from agents.journal import EffectMark, Entry, Journal, Reserve, VolatileJournal
from agents.kinds import PROFILES, Profile
from agents.limits import DEPTHS, Limits, NoSpans, Spans
from agents.models.base import Model, ModelReply, ModelRequest, ModelSettings
from agents.models.scripted import ScriptedModel
from agents.outcome import (
    AttemptCancelled,
    ChildRequest,
    Completed,
    Failed,
    Finding,
    InputRequest,
    Outcome,
    Parked,
    PlannedSubtask,
)
from agents.outputs import ModelOutput, OutputType, SchemaOutput, TextOutput
from agents.react import ReActAgent
from agents.stops import LoopState, StopCondition
from agents.tool_decorator import tool
from agents.tools import RateLimit, Tool, ToolResult
from agents.usage import Budget, Usage

__all__ = [
    "DEPTHS",
    "PROFILES",
    "Agent",
    "AgentError",
    "AgentEvent",
    "Answer",
    "Assignment",
    "AttemptCancelled",
    "Blob",
    "Budget",
    "Cancelled",
    "ChildRequest",
    "Completed",
    "Content",
    "EffectMark",
    "Entry",
    "Failed",
    "Fenced",
    "Finding",
    "FunctionAgent",
    "Halt",
    "Input",
    "InputRequest",
    "InvalidOutput",
    "Journal",
    "Limits",
    "LoopState",
    "Model",
    "ModelError",
    "ModelOutput",
    "ModelReply",
    "ModelRequest",
    "ModelSettings",
    "NoSpans",
    "OnEvent",
    "Outcome",
    "OutputType",
    "OverBudget",
    "Parked",
    "PlannedSubtask",
    "Profile",
    "RateLimit",
    "ReActAgent",
    "Reserve",
    "RunContext",
    "SchemaOutput",
    "ScriptedModel",
    "Spans",
    "StopCondition",
    "Text",
    "TextOutput",
    "Tool",
    "ToolDefinitionError",
    "ToolDenied",
    "ToolResult",
    "UnsupportedMedia",
    "Usage",
    "VolatileJournal",
    "agent",
    "tool",
]
