"""The words of the command line: commands, arguments, options.

Only click is imported here, so that help, completion and usage errors come at once; what a command
does is imported when it is called.
"""

from __future__ import annotations

import asyncio
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
        done = self.action()(**ctx.params)
        return asyncio.run(done) if asyncio.iscoroutine(done) else done


class Words(click.Group):
    """A group that lists its commands in the order of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names as they were given."""
        return list(self.commands)


def _group(name: str, about: str, *commands: click.Command) -> click.Group:
    words = {str(command.name): command for command in commands}
    return Words(name, words, help=about, no_args_is_help=True)


def _flag(names: str, about: str) -> Option:
    return Option(names.split(), is_flag=True, help=about)


def _opt(names: str, about: str, metavar: str | None = None, *, many: bool = False) -> Option:
    return Option(names.split(), metavar=metavar, multiple=many, help=about)


STORE = Option(
    ["--store"],
    metavar="PATH",
    type=click.Path(),
    envvar="CADENZA_STORE__URL",
    help="Run store; .cadenza/runs.db here if neither this nor the pipeline says.",
)
JSON = _flag("--json as_json", "Print JSON lines.")
QUIET = _flag("--quiet -q", "Print the answer only.")
VERBOSE = _flag("--verbose -v", "Show each turn, and where errors were raised.")
WAIT = _flag("--wait", "Stay until people have answered, from another terminal.")
DRIVE = (STORE, JSON, QUIET, VERBOSE, WAIT)
MODES = click.Choice(["orchestration", "choreography"])
MODE = Option(
    ["--mode"], type=MODES, help="Who takes the next step: an orchestrator, or the agents."
)
BUS = Option(["--bus"], type=click.Choice(["memory", "kafka", "mqtt"]), help="What carries work.")
SET = _opt("--set settings", "Any setting, such as limits.lease_s=5.", "KEY=VALUE", many=True)
FILES = "A file to work on; may be given more than once."
FILE = Option(["--file", "-f", "files"], type=click.Path(), multiple=True, help=FILES)
LIMIT = Option(["--limit"], type=click.IntRange(1), default=20, show_default=True, help="At most.")
TAPE = Option(["--record"], type=click.Path(dir_okay=False), help="Record model replies as JSONL.")
TRACES = Option(["--file"], type=click.Path(), help="Read this file of OTLP JSON lines.")
JAEGER = _opt("--jaeger", "Jaeger, for example http://127.0.0.1:16686.", "URL")
LATE = Option(
    ["--deadline", "deadline_s"],
    type=click.FloatRange(0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for spans that come late.",
)
DRAIN = Option(
    ["--drain", "drain_s"],
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long what runs may take to end.",
)
EOF = Option(["--until-eof"], is_flag=True, hidden=True)
SERVE = (DRAIN, EOF, MODE, BUS, SET, STORE, VERBOSE)
WHY = "asked on the command line"
PIPELINE = Argument(["pipeline"], type=click.Path())
ANY_PIPELINE = Argument(["pipeline"], type=click.Path(), required=False)
A_RUN = Argument(["run"], shell_complete=complete_runs)
AN_INPUT = Argument(["input_id"], metavar="[INPUT]", required=False)

NEW = """Make a starter pipeline in the folder DIR.

It has comments, a tool, a function and a passing test, and runs without a model."""
RUN = """Run TASK through the pipeline file PIPELINE.

Without TASK the line "# task: …" of the file is taken; "-" reads the task from standard input.
The answer goes to standard output, everything else to standard error."""
SHOW = """Tell what happened in RUN.

The plan, who did what in which order and with which result, and why it ended. RUN is an id, or
the beginning of one."""
RESUME = """Go on with RUN where it stands.

It keeps the settings it was submitted with, whatever its file says now. A run that has ended is
shown again."""
WATCH = """Follow RUN from any terminal, until it ends or waits for people.

Ctrl-C leaves; the run does not notice."""
UP = """Run a process for each agent of PIPELINE on this host.

What ends is started again. It shows who talks to whom, until SIGTERM or Ctrl-C."""
WORKER = """Host agents of PIPELINE, until SIGTERM or Ctrl-C.

Then it takes nothing more, waits for what runs, and gives the rest back."""
AGENTS = "Agent to host, may be given more than once; all, if none is given."
ONLY = "INPUT may be left out where RUN asks for one thing only."
VERIFY = """Compare the trace of RUN with its ledger.

The exit code is 0 if it is whole, and 1 if not. Whole means one trace with one closed root, every
parent and link there, every agent, and as many attempts and calls as were made. Without --file and
--jaeger it reads Jaeger where spans are sent to a collector and Jaeger's address is known, else
the file."""
COMPLETION = """Print the completion script of SHELL.

\b
bash: eval "$(cadenza completion bash)"
zsh:  eval "$(cadenza completion zsh)"
fish: cadenza completion fish | source"""

WORDS = (
    Action("new", "new:new", NEW, Argument(["folder"], metavar="DIR", type=click.Path())),
    Action(
        "run",
        "run:run_task",
        RUN,
        PIPELINE,
        Argument(["task"], required=False),
        FILE,
        _opt(
            "--input -i inputs",
            "A named value for tools; may be given more than once.",
            "KEY=VALUE",
            many=True,
        ),
        _opt("--session", "Session id, kept with the run.", "ID"),
        TAPE,
        *(MODE, BUS, SET),
        *DRIVE,
        _flag("--detach -d", "Print the run's id and leave it to the processes that serve it."),
    ),
    Action("up", "up:up", UP, PIPELINE, DRAIN, *(MODE, BUS, SET, STORE, QUIET, VERBOSE)),
    Action(
        "worker",
        "serve:worker",
        WORKER,
        PIPELINE,
        Option(["--agent", "-a", "agents"], metavar="NAME", multiple=True, help=AGENTS),
        Option(["--concurrency"], type=click.IntRange(1), help="Subtasks of one agent at once."),
        *SERVE,
    ),
    Action(
        "orchestrator",
        "serve:orchestrator",
        "Advance the runs of PIPELINE, until SIGTERM or Ctrl-C.\n\nA second one is harmless.",
        *(PIPELINE, *SERVE),
    ),
    _group(
        "runs",
        "List, show, resume and cancel runs.",
        Action("list", "runs:list_runs", "List runs, the newest first.", LIMIT, JSON, STORE),
        Action(
            "show",
            "runs:show",
            SHOW,
            A_RUN,
            _opt("--messages", "Every request that a subtask sent to its model.", "SUBTASK"),
            _flag("--canonical as_canonical", "The canonical ledger, as JSON lines."),
            _flag("--json as_json", "The ledger, or the messages, as JSON lines."),
            STORE,
        ),
        Action("watch", "watch:watch", WATCH, A_RUN, *DRIVE),
        Action("resume", "runs:resume", RESUME, A_RUN, *DRIVE),
        Action(
            "cancel",
            "runs:cancel",
            "Ask to cancel RUN; whoever works on it stops within one lease.",
            A_RUN,
            Option(["--reason"], default=WHY, help="Why, for the record."),
            STORE,
        ),
    ),
    Action(
        "approve",
        "people:approve",
        f"Approve INPUT of RUN, as it is or edited.\n\n{ONLY}",
        *(A_RUN, AN_INPUT, STORE),
        _opt("--edit", "Other arguments of the call, or another plan.", "JSON"),
    ),
    Action(
        "deny",
        "people:deny",
        f"Deny INPUT of RUN.\n\n{ONLY}",
        *(A_RUN, AN_INPUT, STORE),
        Option(["--reason"], default="", help="Why; the model is told."),
        _opt("--value", "The result of a call that did happen, where that is in doubt.", "JSON"),
    ),
    Action(
        "answer",
        "people:answer",
        "Answer the question INPUT of RUN with TEXT.",
        *(A_RUN, Argument(["input_id"], metavar="INPUT"), Argument(["text"]), STORE),
    ),
    _group(
        "trace",
        "Show and verify the trace of a run.",
        Action(
            "show",
            "trace:show",
            "Draw the trace of RUN as a tree; say whether it is whole.",
            *(A_RUN, TRACES, JAEGER, STORE),
        ),
        Action("verify", "trace:verify", VERIFY, *(A_RUN, TRACES, JAEGER, LATE, STORE)),
        Action(
            "open",
            "trace:open_page",
            "Print the address of RUN's trace in Jaeger.",
            *(A_RUN, JAEGER, STORE),
        ),
    ),
    _group(
        "prompts",
        "Show what a model is told.",
        Action(
            "show",
            "prompts:show",
            "Print the first request of AGENT of PIPELINE: system prompt, task and tools.",
            *(PIPELINE, Argument(["agent"])),
            Option(["--task"], default="(the task)", show_default=True, help="Its task."),
            *(MODE, BUS, SET, JSON),
        ),
    ),
    Action("schema", "schema:show", "Print the JSON Schema of pipeline files."),
    Action(
        "doctor",
        "doctor:doctor",
        "Say what is ready to use, and whether PIPELINE can run.",
        *(ANY_PIPELINE, STORE),
    ),
    Action(
        "completion",
        "completion:show",
        COMPLETION,
        Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"])),
    ),
)
cli = Words(
    "cadenza",
    {str(word.name): word for word in WORDS},
    help="""Run teams of LLM agents: orchestrated, or choreographed over a bus.

    Begin with "cadenza new DIR".
    """,
    epilog="""Exit codes: 0 answer, 1 the run failed, 2 bad usage or configuration, 3 stopped by
    its budget, 4 waits for a person, 130 interrupted, 143 terminated.""",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
click.version_option(package_name="cadenza-agents", prog_name="cadenza")(cli)
