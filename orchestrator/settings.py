"""The settings of a pipeline: what may stand in its file, and the hash that pins a run to it."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field, Strict, field_validator

from agents.outcome import PlannedSubtask
from agents.usage import Budget
from orchestrator.bus_settings import BusEntry
from orchestrator.section import REFERENCE, SECRET, Count, Dollars, Name, Seconds, Section, Strings
from orchestrator.shape import Limits, RunShape

DEFAULT_MODEL = "main"
PLANNER = "planner"
SYNTHESIZER = "synthesizer"

Language = Literal["en", "ja", "auto"]
Output = str | dict[str, Any]


class StoreEntry(Section):
    """Where the ledgers of runs live."""

    url: str | None = None
    """Path of an SQLite file, relative to the pipeline file; without it `.cadenza/runs.db` in the
    working directory."""


class ModelEntry(Section):
    """A model and how to call it."""

    model: str = ""
    """`provider/name`, for example `ollama/gemma3:4b`."""
    use: Annotated[str, Field(pattern=REFERENCE)] | None = None
    """`module:function`: given these settings, returns a model of your own."""
    fallbacks: Strings = ()
    """Aliases or `provider/name`, asked in turn on 429, 5xx and time-outs."""
    api_base: Annotated[str, Field(pattern=r"^https?://[^\s@]+$")] | None = None
    """Base URL of an OpenAI-compatible server, usually ending in /v1; no user or password."""
    api_key: Annotated[str, Field(pattern=SECRET)] | None = None
    """`${VAR}`: the environment variable that holds the key; never the key itself."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """0 to 2; the provider's default when not given."""
    max_tokens: Count | None = None
    """Upper bound of one completion."""
    timeout_s: Seconds = 60.0
    """Seconds for one call, streaming included."""
    retries: Annotated[int, Field(ge=0, le=20)] = 2
    """Further tries on 429, 5xx, time-outs and broken streams."""
    stream: bool = True
    """Whether to ask for a stream."""
    dialect: Literal["native", "text"] | None = None
    """Native tool calls, or the text format for small local models; chosen when not given."""
    prefill: str = ""
    """Text that the model's turn begins with (text dialect)."""
    media_types: Strings | None = None
    """What it takes beside text, for example image/png or image/*."""
    input_usd_per_mtok: Dollars | None = None
    """Price of a million input tokens, where the price table has none."""
    output_usd_per_mtok: Dollars | None = None
    """Price of a million output tokens, where the price table has none."""
    extra_body: dict[str, Any] = {}
    """Further members of the request's JSON."""
    language: Language = "auto"
    """Language of the prompts sent to it, where the agent does not say."""


class BudgetEntry(Section):
    """Upper bounds; what is not given is not bounded."""

    usd: Dollars | None = None
    """US dollars."""
    llm_calls: Count | None = None
    """Model calls."""
    tool_calls: Annotated[int, Field(ge=0)] | None = None
    """Tool calls."""
    tokens: Count | None = None
    """Input plus output tokens."""
    wall_s: Seconds | None = None
    """Seconds of wall time."""

    def budget(self) -> Budget:
        """Return the bounds as agents and run stores take them."""
        return Budget(self.llm_calls, self.tool_calls, self.tokens, self.usd, self.wall_s)


class AgentEntry(Section):
    """A role: a model with instructions and tools, or a plain async function."""

    model: str | None = None
    """Alias under `models`, or `provider/name`."""
    use: Annotated[str, Field(pattern=REFERENCE)] | None = None
    """`module:function`: an async function does the work, without a model."""
    kind: Literal["react", "model", "function"] | None = None
    """ReAct loop, one plain model call, or function; from the other keys when not given."""
    description: str = ""
    """What planners and colleagues are told of it."""
    instructions: str = ""
    """What the model is told to be and do."""
    tools: Annotated[tuple[str | dict[str, dict[str, Any]], ...], Strict(False)] = ()
    """Built-in names or `module:function`; `{name: {option: value}}` sets options."""
    reacts_to: Annotated[tuple[Name, ...], Strict(False)] = ()
    """Kinds of findings that become a subtask of this agent; `task` is the run's own task."""
    output: Output | None = None
    """Type of its answer: `module:Class`, a JSON Schema, or the path of one."""
    profile: Literal["agent", "explore", "process"] = "agent"
    """Preset of tools and limits."""
    depth: Literal["instant", "normal", "deep"] | None = None
    """How long it may think: 3, 5 or 10 iterations; the profile's when not given."""
    max_iterations: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Iterations, where the depth does not fit."""
    budget: BudgetEntry = BudgetEntry()
    """Bounds of one attempt."""
    stops: Annotated[tuple[Annotated[str, Field(pattern=REFERENCE)], ...], Strict(False)] = ()
    """Further stop conditions, as `module:attribute`."""
    expect_tools: Strings = ()
    """Tools without which an answer counts as unverified."""
    can_ask: Strings = ()
    """Agents it may ask and wait for."""
    can_hand_off: Strings = ()
    """Agents it may hand its subtask to."""
    ask_human: bool = False
    """Whether it may ask a person."""
    language: Language = "auto"
    """Language of its prompts."""

    @property
    def sort(self) -> Literal["react", "model", "function"]:
        """The kind, given or inferred."""
        return self.kind or ("function" if self.use else "react")

    @field_validator("tools")
    @classmethod
    def _one_name_each(cls, tools: tuple[Any, ...]) -> tuple[Any, ...]:
        for tool in tools:
            if isinstance(tool, dict) and len(tool) != 1:
                raise ValueError("a tool with options is one name: `- sql: {timeout_s: 5}`")
        return tools


class SynthesizerEntry(Section):
    """A model that writes the answer from all leaves."""

    model: str | None = None
    """Alias under `models`, or `provider/name`."""
    instructions: str = ""
    """Told to the model beside its task."""
    language: Language = "auto"
    """Language of its prompts."""


class PlannerEntry(SynthesizerEntry):
    """The agent that decomposes the task."""

    review: bool = False
    """Whether a person approves each plan."""
    max_subtasks: Annotated[int, Field(ge=1, le=32)] = 32
    """Subtasks in one plan."""


class PlanStep(Section):
    """One subtask of a static plan."""

    id: str
    """Unique in the plan."""
    agent: str
    """Who does it."""
    task: str = "{{task}}"
    """What to do; `{{id}}` is a dependency's output, `{{task}}` the run's task."""
    after: Strings = ()
    """Ids of its dependencies."""
    join: Literal["all", "any"] = "all"
    """Whether it waits for all dependencies or for any one."""
    deadline_s: Seconds | None = None
    """Seconds after which it starts with what is completed."""


class LimitsEntry(Section):
    """Bounds that keep a run finite."""

    attempts: Count = 3
    """Failures of a subtask before it is exhausted."""
    expiries: Count = 20
    """Lost leases of a subtask before it fails."""
    lease_s: Seconds = 30.0
    """Seconds a claim lasts without a heartbeat."""
    grace_s: Seconds = 60.0
    """Seconds before an agent that no worker serves is unroutable."""
    hops: Count = 16
    """Length of a chain of reactions and children."""
    replans: Annotated[int, Field(ge=0)] = 2
    """Replans of a run."""
    approval_s: Seconds = 86_400.0
    """Seconds until a question to a person is denied."""
    wall_s: Seconds = 3_600.0
    """Seconds a run may take."""
    slots: Count = 4
    """Subtasks of one agent that a worker does at once."""


class SafetyEntry(Section):
    """How data from outside is treated."""

    policy: Literal["strict", "balanced", "off"] = "balanced"
    """Which effects untrusted data may cause."""
    task_trust: Literal["trusted", "untrusted"] = "trusted"
    """Whether the text of the task itself is trusted."""


class TracingEntry(Section):
    """Traces; the standard OTEL_* variables win over this."""

    file: str | None = None
    """File for spans when no collector is configured, relative to the pipeline file."""
    capture_content: bool = False
    """Whether spans carry messages, tool arguments and results."""
    choreography_parent: Literal["message", "run"] = "message"
    """What the spans of a choreographed step hang from: the step before, or the run."""


class PipelineSettings(Section):
    """A team of agents and how it works together."""

    name: Name = "pipeline"
    """Name of the pipeline; the file's name when not given."""
    mode: Literal["orchestration", "choreography"] = "orchestration"
    """Who advances a run: the orchestrator, or the agents themselves."""
    bus: BusEntry = BusEntry()
    """What carries work and news."""
    store: StoreEntry = StoreEntry()
    """Where runs are kept."""
    models: dict[Name, ModelEntry] = {}
    """Models by alias; without any, what the machine offers is used as `main`."""
    agents: Annotated[dict[Name, AgentEntry], Field(min_length=1)]
    """Agents by name."""
    planner: PlannerEntry | None = None
    """Plans each run; without `planner` and `plan` a run is emergent."""
    plan: Annotated[tuple[PlanStep, ...], Strict(False)] = ()
    """A static plan."""
    synthesizer: str | SynthesizerEntry | None = None
    """Writes the answer: an agent's name, or a model."""
    output: Output | None = None
    """Type of the pipeline's answer: `module:Class`, a JSON Schema, or the path of one."""
    budget: BudgetEntry = BudgetEntry()
    """Bounds of a run."""
    limits: LimitsEntry = LimitsEntry()
    """Attempts, leases, hops and times."""
    safety: SafetyEntry = SafetyEntry()
    """What untrusted data may cause."""
    tracing: TracingEntry = TracingEntry()
    """Traces."""
    prompts: str | None = None
    """Folder whose files replace the packaged prompts, relative to the pipeline file."""

    def model_alias(self, wanted: str | None) -> str:
        """Return the model that an entry uses: its own, else ``main``, else the only one."""
        if wanted is not None:
            return wanted
        only = next(iter(self.models)) if len(self.models) == 1 else DEFAULT_MODEL
        return DEFAULT_MODEL if DEFAULT_MODEL in self.models else only

    def shape(self) -> RunShape:
        """Return what the rules need to know; a lone agent reacts to the task."""
        reacts = {name: agent.reacts_to for name, agent in self.agents.items()}
        if len(reacts) == 1 and not self.plan and self.planner is None:
            name, kinds = next(iter(reacts.items()))
            reacts = {name: kinds if "task" in kinds else (*kinds, "task")}
        synthesizer = self.synthesizer
        own = self.limits
        limits = Limits(
            attempts=own.attempts,
            expiries=own.expiries,
            replans=own.replans,
            hops=own.hops,
            wall_s=min(own.wall_s, self.budget.wall_s or own.wall_s),
            lease_s=own.lease_s,
            grace_s=own.grace_s,
        )
        return RunShape(
            agents=reacts,
            planner=None if self.planner is None else PLANNER,
            plan=static_plan(self.plan),
            synthesizer=SYNTHESIZER if isinstance(synthesizer, SynthesizerEntry) else synthesizer,
            limits=limits,
        )


def static_plan(steps: tuple[PlanStep, ...]) -> tuple[PlannedSubtask, ...]:
    """Return the steps of a ``plan:`` as planned subtasks."""
    return tuple(PlannedSubtask(**step.model_dump()) for step in steps)


# Where a pipeline runs is not what it is: two workers with other brokers still agree on it.
_PLACE = {"bus", "store", "tracing"}


def to_json(settings: PipelineSettings) -> dict[str, Any]:
    """Return the plain-JSON form of what a run is pinned to: no bus, store, tracing, no secrets.

    Only what differs from the defaults is in it, so that a new setting leaves old hashes alone.
    """
    return settings.model_dump(mode="json", exclude=_PLACE, exclude_defaults=True)


def from_json(data: dict[str, Any]) -> PipelineSettings:
    """Read the plain-JSON form.

    Raises:
        pydantic.ValidationError: A newer release wrote it, with settings unknown here.
    """
    return PipelineSettings.model_validate(data)


def pipeline_hash(settings: PipelineSettings) -> str:
    """Return the SHA-256 of the canonical JSON; the mode, which a run pins apart, is left out."""
    data = {key: value for key, value in to_json(settings).items() if key != "mode"}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
