"""The words of the command line: commands, arguments, options.

Only click is imported here, so that help, completion and usage errors come at once; what a command
does is imported when it is called.
"""

from __future__ import annotations

import importlib
from typing import Any

import click
from click import Argument, Option

from orchestrator.cli.completion import complete_runs


class Action(click.Command):
    """A command whose work lies in a module of its own.

    Args:
        name: Its word.
        does: ``module:function`` below ``orchestrator.cli``; it takes the parameters by name.
        about: Help; its first sentence stands in lists.
        params: Arguments and options.
    """

    def __init__(self, name: str, does: str, about: str, *params: click.Parameter) -> None:
        super().__init__(name, params=list(params), help=about)
        self.does = does

    def action(self) -> Any:
        """Import and return what the command does."""
        module, _, function = self.does.partition(":")
        return getattr(importlib.import_module(f"orchestrator.cli.{module}"), function)

    def invoke(self, ctx: click.Context) -> Any:
        """Do it, and return the exit code."""
        return self.action()(**ctx.params)


class Words(click.Group):
    """A group that lists its commands in the order of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names as they were given."""
        return list(self.commands)


def _group(name: str, about: str, *commands: click.Command) -> click.Group:
    words = {str(command.name): command for command in commands}
    return Words(name, words, help=about, no_args_is_help=True)


def _flag(*names: str, about: str) -> Option:
    return Option(list(names), is_flag=True, help=about)


def _run_argument() -> Argument:
    return Argument(["run"], shell_complete=complete_runs)


def _pipeline(*, required: bool = True) -> Argument:
    return Argument(["pipeline"], type=click.Path(), required=required)


def _opt(names: str, about: str, metavar: str | None = None, *, many: bool = False) -> Option:
    return Option(names.split(), metavar=metavar, multiple=many, help=about)


STORE = Option(
    ["--store"],
    metavar="PATH",
    type=click.Path(),
    envvar="CADENZA_STORE__URL",
    help="Run store; .cadenza/runs.db here if neither this nor the pipeline says.",
)
JSON = _flag("--json", "as_json", about="Print JSON lines.")
DRIVE = (
    STORE,
    JSON,
    _flag("--quiet", "-q", about="Print the answer only."),
    _flag("--verbose", "-v", about="Show each turn, and where errors were raised."),
    _flag("--wait", about="Stay until people have answered, from another terminal."),
)
OVERRIDES = (
    Option(["--mode"], type=click.Choice(["orchestration", "choreography"]), help="Who conducts."),
    Option(["--bus"], type=click.Choice(["memory", "kafka", "mqtt"]), help="What carries work."),
    _opt("--set settings", "Any setting, such as limits.lease_s=5.", "KEY=VALUE", many=True),
)

NEW = Action(
    "new",
    "new:new",
    """Make a starter pipeline in the folder DIR.

    It has comments, a tool, a function and a passing test, and runs without a model.
    """,
    Argument(["folder"], metavar="DIR", type=click.Path()),
)
RUN = Action(
    "run",
    "run:run_task",
    """Run TASK through the pipeline file PIPELINE.

    Without TASK the line "# task: …" of the file is taken; "-" reads the task from standard input.
    The answer goes to standard output, everything else to standard error.
    """,
    _pipeline(),
    Argument(["task"], required=False),
    Option(["--file", "-f", "files"], type=click.Path(), multiple=True, help="A file to work on."),
    _opt("--input -i inputs", "A named value, for tools.", "KEY=VALUE", many=True),
    _opt("--session", "Runs of one session share a history.", "ID"),
    Option(["--record"], type=click.Path(dir_okay=False), help="Record model replies as JSONL."),
    *OVERRIDES,
    *DRIVE,
)
RUNS = _group(
    "runs",
    "List, show, resume and cancel runs.",
    Action(
        "list",
        "runs:list_runs",
        "List the runs of a run store, the newest first.",
        Option(["--limit"], type=click.IntRange(1), default=20, show_default=True, help="At most."),
        JSON,
        STORE,
    ),
    Action(
        "show",
        "runs:show",
        """Tell what happened in RUN.

        The plan, who did what in which order and with which result, and why it ended. RUN is an
        id, or the beginning of one.
        """,
        _run_argument(),
        _opt("--messages", "Every request that a subtask sent to its model.", "SUBTASK"),
        _flag("--canonical", "as_canonical", about="The canonical ledger, as JSON lines."),
        _flag("--json", "as_json", about="The ledger, or the messages, as JSON lines."),
        STORE,
    ),
    Action(
        "resume",
        "runs:resume",
        """Go on with RUN where it stands.

        It keeps the settings it was submitted with, whatever its file says now. A run that has
        ended is shown again.
        """,
        _run_argument(),
        *DRIVE,
    ),
    Action(
        "cancel",
        "runs:cancel",
        "Ask to cancel RUN; whoever works on it stops within one lease.",
        _run_argument(),
        Option(["--reason"], default="asked on the command line", help="Why, for the record."),
        STORE,
    ),
)
_ONLY = "INPUT may be left out where RUN asks for one thing only."
PEOPLE = (
    Action(
        "approve",
        "people:approve",
        f"Approve INPUT of RUN, as it is or edited.\n\n{_ONLY}",
        _run_argument(),
        Argument(["input_id"], metavar="[INPUT]", required=False),
        _opt("--edit", "Other arguments of the call, or another plan.", "JSON"),
        STORE,
    ),
    Action(
        "deny",
        "people:deny",
        f"Deny INPUT of RUN.\n\n{_ONLY}",
        _run_argument(),
        Argument(["input_id"], metavar="[INPUT]", required=False),
        Option(["--reason"], default="", help="Why; the model is told."),
        _opt("--value", "The result of a call that did happen, where that is in doubt.", "JSON"),
        STORE,
    ),
    Action(
        "answer",
        "people:answer",
        "Answer the question INPUT of RUN with TEXT.",
        _run_argument(),
        Argument(["input_id"], metavar="INPUT"),
        Argument(["text"]),
        STORE,
    ),
)
TRACE = _group(
    "trace",
    "Show the trace of a run.",
    Action(
        "show",
        "trace:show",
        "Draw the trace of RUN as a tree; say whether it is whole.",
        _run_argument(),
        Option(["--file"], type=click.Path(), help="File of OTLP JSON lines, if it is elsewhere."),
        STORE,
    ),
)
PROMPTS = _group(
    "prompts",
    "Show what a model is told.",
    Action(
        "show",
        "prompts:show",
        "Print the first request of AGENT of PIPELINE: system prompt, task and tools.",
        _pipeline(),
        Argument(["agent"]),
        Option(["--task"], default="(the task)", show_default=True, help="Its task."),
        *OVERRIDES,
        JSON,
    ),
)
OTHERS = (
    Action("schema", "schema:show", "Print the JSON Schema of pipeline files."),
    Action(
        "doctor",
        "doctor:doctor",
        "Say what is ready to use, and whether PIPELINE can run.",
        _pipeline(required=False),
        STORE,
    ),
    Action(
        "completion",
        "completion:show",
        """Print the completion script of SHELL.

        \b
        bash: eval "$(cadenza completion bash)"
        zsh:  eval "$(cadenza completion zsh)"
        fish: cadenza completion fish | source
        """,
        Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"])),
    ),
)
cli = Words(
    "cadenza",
    {str(word.name): word for word in (NEW, RUN, RUNS, *PEOPLE, TRACE, PROMPTS, *OTHERS)},
    help="""Run teams of LLM agents: orchestrated, or choreographed over a bus.

    Begin with "cadenza new DIR".
    """,
    epilog="""Exit codes: 0 answer, 1 the run failed, 2 bad usage or configuration, 3 stopped by
    its budget, 4 waits for a person, 130 interrupted, 143 terminated.""",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
click.version_option(package_name="cadenza-agents", prog_name="cadenza")(cli)
