"""What users import: ``from cadenza import Pipeline, tool, agent``."""

from orchestrator.import_guard import check_siblings

check_siblings()  # before anything of a sibling package is imported: it may be another's

from agents.content import Blob, Text
from agents.context import RunContext
from agents.errors import ModelRefused, ModelUnavailable, ToolDenied
from agents.events import AgentEvent
from agents.function import FunctionAgent, agent
from agents.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from agents.models.base import Delta, Model, ModelReply, ModelRequest
from agents.models.scripted import ScriptedModel
from agents.stops import LoopState, StopCondition
from agents.tool_decorator import tool
from agents.tools import RateLimit, Tool, ToolResult
from agents.usage import Usage
from bus.faulty import FaultyBus
from bus.memory import MemoryBus
from orchestrator.errors import CadenzaError, InputClosed, InputUnknown, UsageError
from orchestrator.pipeline import Pipeline
from orchestrator.result import RunResult
from orchestrator.run import Run
from orchestrator.settings import AgentEntry as AgentSettings
from orchestrator.settings import ModelEntry as ModelSettings
from orchestrator.settings_errors import SettingsError
from orchestrator.state import Event

__all__ = [
    "AgentEvent",
    "AgentSettings",
    "AssistantMessage",
    "Blob",
    "CadenzaError",
    "Delta",
    "Event",
    "FaultyBus",
    "FunctionAgent",
    "InputClosed",
    "InputUnknown",
    "LoopState",
    "MemoryBus",
    "Model",
    "ModelRefused",
    "ModelReply",
    "ModelRequest",
    "ModelSettings",
    "ModelUnavailable",
    "Pipeline",
    "RateLimit",
    "Run",
    "RunContext",
    "RunResult",
    "ScriptedModel",
    "SettingsError",
    "StopCondition",
    "SystemMessage",
    "Text",
    "Tool",
    "ToolCall",
    "ToolDenied",
    "ToolMessage",
    "ToolResult",
    "Usage",
    "UsageError",
    "UserMessage",
    "agent",
    "tool",
]
