"""The pipeline as Python sees it: load it or say it, enter it, run tasks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from agents.models.base import Model
from bus.base import Bus
from orchestrator.app import App, Source, open_app
from orchestrator.discovery import discover_model
from orchestrator.errors import UsageError
from orchestrator.pipeline_file import load_settings
from orchestrator.python_settings import Agents, settings_from_python
from orchestrator.result import RunResult
from orchestrator.run import Run, submit
from orchestrator.settings import ModelEntry, PipelineSettings
from orchestrator.store.base import RunStore


class Pipeline:
    """A team of agents, said in Python with the words of a pipeline file.

    Enter it to open its run store, bus and models; leaving closes them.

    Args:
        agents: Agents by name (``AgentSettings``, a mapping of the same keys, or a function under
            ``@agent``), or a list of functions under ``@agent``.
        name: Name of the pipeline.
        mode: ``orchestration`` or ``choreography``.
        models: Models by alias: ``provider/name``, ``ModelSettings``, or an object such as
            ``ScriptedModel``. None uses what the machine offers.
        planner: Settings of the planner, or None.
        plan: A static plan, or None.
        synthesizer: Name of the agent that writes the answer, or settings of one.
        output: Type of the answer: a pydantic class, a JSON Schema, or a reference.
        budget: Bounds of each run.
        limits: Bounds that keep a run finite.
        safety: How data from outside is treated.
        tracing: Where spans go.
        folder: Where references and relative paths start; the working directory by default.
        resources: By name: a value, or a callable that opens one; tools find them in
            ``RunContext.resources``.
        store: Path of the run store, ``:memory:``, or an open ``RunStore`` of yours.
        bus: Settings of the bus (see ``bus:`` of a pipeline file), or an open bus of yours; None
            is the memory bus.

    Raises:
        SettingsError: With everything that is wrong, up to ten.
    """

    def __init__(
        self,
        agents: Agents,
        *,
        name: str = "pipeline",
        mode: str = "orchestration",
        models: Mapping[str, str | Mapping[str, Any] | ModelEntry | Model] | None = None,
        planner: Any = None,
        plan: Any = None,
        synthesizer: Any = None,
        output: Any = None,
        budget: Any = None,
        limits: Any = None,
        safety: Any = None,
        tracing: Any = None,
        folder: str | os.PathLike[str] | None = None,
        resources: Mapping[str, Any] | None = None,
        store: str | RunStore | None = None,
        bus: Bus | Mapping[str, Any] | None = None,
    ) -> None:
        sections = {
            "name": name,
            "mode": mode,
            "planner": planner,
            "plan": plan,
            "synthesizer": synthesizer,
            "output": output,
            "budget": budget,
            "limits": limits,
            "safety": safety,
            "tracing": tracing,
            "store": {"url": store} if isinstance(store, str) else None,
            "bus": bus if isinstance(bus, Mapping) else None,
        }
        settings, objects = settings_from_python(agents, sections=sections, models=models)
        self._source = Source(
            settings, Path(folder or Path.cwd()).absolute(), None, objects, resources or {}
        )
        self._own_store = store if isinstance(store, RunStore) else None
        self._own_bus = None if isinstance(bus, Mapping) else bus
        self._serves = True
        self._stack: AsyncExitStack | None = None
        self._app: App | None = None

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        overrides: Mapping[str, str] | None = None,
        models: Mapping[str, Model] | None = None,
        resources: Mapping[str, Any] | None = None,
        record: str | os.PathLike[str] | None = None,
        store: RunStore | None = None,
        bus: Bus | None = None,
    ) -> Self:
        """Load a pipeline file; what it says is checked now, and opened when it is entered.

        Args:
            path: The file.
            overrides: Dotted path to value, for example ``{"mode": "choreography"}``.
            models: Models that take the place of aliases, for example a ``ScriptedModel``.
            resources: See ``Pipeline``.
            record: File of JSON lines to record model replies in.
            store: An open run store of yours.
            bus: An open bus of yours.

        Raises:
            SettingsError: With everything that is wrong, up to ten.
        """
        loaded = load_settings(Path(path), overrides=overrides)
        settings, objects = _with_models(loaded.settings, models or {})
        source = Source(settings, loaded.folder, loaded.path, objects, resources or {})
        if record is not None:
            source = replace(source, record=Path(record).absolute())
        return cls.of(source, store=store, bus=bus)

    @classmethod
    def of(
        cls,
        source: Source,
        *,
        store: RunStore | None = None,
        bus: Bus | None = None,
        serves: bool = True,
    ) -> Self:
        """Return a pipeline over settings that were put together elsewhere.

        Args:
            source: The settings and where the parts are found.
            store: An open run store of yours.
            bus: An open bus of yours.
            serves: Whether this process conducts and hosts what no other does.
        """
        self = cls.__new__(cls)
        self._source, self._own_store, self._own_bus = source, store, bus
        self._serves = serves
        self._stack = self._app = None
        return self

    @property
    def source(self) -> Source:
        """The settings and where the parts are found."""
        return self._source

    @property
    def app(self) -> App:
        """The open parts.

        Raises:
            UsageError: The pipeline was not entered.
        """
        if self._app is None:
            raise UsageError("the pipeline is not open; use `async with pipeline:`")
        return self._app

    async def with_some_model(self, say: Callable[[str], None] | None = None) -> Self:
        """Use what the machine offers, if the pipeline needs a model and names none.

        Args:
            say: Told which was picked, and why.

        Raises:
            SettingsError: Nothing is there; the message says how to get one.
        """
        if not self._source.settings.models and needs_model(self._source.settings):
            found = await discover_model(os.environ)
            self._source = self._source.with_model(found.model)
            if say is not None:
                say(f"    model  {found.model.model}: {found.reason}")
        return self

    async def __aenter__(self) -> Self:
        await self.with_some_model()
        async with AsyncExitStack() as stack:
            self._app = await stack.enter_async_context(
                open_app(
                    self._source,
                    store=self._own_store,
                    bus=self._own_bus,
                    conducts=self._serves,
                    hosts=None if self._serves else (),
                    joins=True,
                )
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        stack, self._stack, self._app = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    async def run(
        self,
        task: str,
        *,
        session: str | None = None,
        files: Sequence[str | os.PathLike[str]] = (),
        inputs: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> RunResult:
        """Run a task to its end, or until only people can move it on (status ``waiting``).

        Args:
            task: What is to be done.
            session: Session id, kept with the run.
            files: Paths of files that come with the run.
            inputs: Named values for tools, in ``RunContext.values``.
            tags: Labels to find the run by.

        Raises:
            UsageError: The task is empty or too large, or a file cannot be used.
        """
        async with self.start(task, session=session, files=files, inputs=inputs, tags=tags) as run:
            result = await run.result(wait_for_people=False)
            run.detach()
            return result

    @asynccontextmanager
    async def start(
        self,
        task: str,
        *,
        session: str | None = None,
        files: Sequence[str | os.PathLike[str]] = (),
        inputs: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Run]:
        """Start a run and follow it; leaving the block cancels it unless it was detached."""
        run_id = await submit(
            self.app, task, session=session, files=files, values=inputs, tags=tags
        )
        async with Run(self.app, run_id) as run:
            yield run

    def follow(self, run_id: str) -> Run:
        """Follow a run that was submitted before; detach it or leaving cancels it."""
        return Run(self.app, run_id)


def needs_model(settings: PipelineSettings) -> bool:
    """Return whether anything in the pipeline asks a model."""
    asks = any(agent.sort != "function" for agent in settings.agents.values())
    named = settings.synthesizer is not None and not isinstance(settings.synthesizer, str)
    return asks or settings.planner is not None or named


def _with_models(
    settings: PipelineSettings, models: Mapping[str, Model]
) -> tuple[PipelineSettings, dict[str, Any]]:
    objects: dict[str, Any] = {}
    entries = dict(settings.models)
    for alias, model in models.items():
        reference = f"python/{alias}"
        objects[reference] = model
        entries[alias] = ModelEntry(model=reference)
    return settings.model_copy(update={"models": entries}), objects
