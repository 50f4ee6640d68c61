"""A tour without a model and without a key: small teams, each run in both modes.

``python -m examples.demo`` runs them through the command line, as a user would, and compares the
canonical ledgers of the two modes. It ends with 1 when a run fails or two ledgers differ.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from examples import over_kafka

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 100
CADENZA = (sys.executable, "-m", "orchestrator.cli.main")
_FOOTER = re.compile(r"\s+(?P<word>cost|trace|run|ledger)  (?P<rest>.*)")


@dataclass(frozen=True, slots=True)
class Tour:
    """One example of the tour.

    Attributes:
        name: Its folder.
        about: What it shows, in one line.
        modes: Modes in the order to run them; the first is shown in full.
    """

    name: str
    about: str
    modes: tuple[str, str]


@dataclass(slots=True)
class Told:
    """What the command line told of a run.

    Attributes:
        code: Exit code.
        answer: What it wrote on standard output.
        progress: The lines before the answer.
        footer: The lines after the answer.
        words: What the footer says, by its first word.
    """

    code: int
    answer: str
    progress: list[str]
    footer: list[str]
    words: dict[str, str]

    @property
    def run(self) -> str:
        """The run id."""
        return self.words.get("run", "").partition(" ")[0]


BOTH = ("orchestration", "choreography")
TOURS = (
    Tour("countries", "a question to a table: planner, two queries at once, writer", BOTH),
    Tour("incident", "triage over log files: two searchers, a correlator, a check, a report", BOTH),
    Tour("watch", "no plan: agents that react to each other's findings", BOTH[::-1]),
)
FLEET = ("incident", "failures jobs", "correlator", "check reporter")  # agents of each worker
_RESULTS = {True: "well in both modes", False: "FAILED", None: "not shown, see above"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tour and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--store", help="run store; .cadenza/runs.db in the repository by default")
    store = parser.parse_args(arguments).store
    options = () if store is None else ("--store", str(Path(store).absolute()))
    say(
        "Cadenza runs a team of agents in two modes: an orchestrator conducts (orchestration), or",
        "the agents take the next step by themselves (choreography). The pipelines stay the same.",
        "All replies below are RECORDED: no model is asked, nothing is paid. The tools really run,",
        "and the answers follow the data in examples/*/data.",
    )
    if not Path(sys.executable).with_name("cadenza").exists():
        say("`cadenza` stands for `python -m orchestrator.cli.main`; `make setup` installs it.")
    good = [tour(number, each, options) for number, each in enumerate(TOURS, 1)]
    heading("=", f"{len(TOURS) + 1}. {FLEET[0]}: the same pipeline by four processes over Kafka")
    over = fleet(options)
    heading("=", "What now")
    say(
        "With a model of yours:  CADENZA_MODEL=ollama/qwen3:4b cadenza run "
        "examples/countries/pipeline.yaml",
        "What an agent saw:      cadenza runs show RUN --messages SUBTASK",
        f"Result of this tour:    {sum(good)} of {len(good)} examples went well in both modes",
        f"                        over Kafka: {_RESULTS[over]}",
    )
    return 0 if all(good) and over is not False else 1


def fleet(options: tuple[str, ...]) -> bool | None:
    """Run an example over Kafka in both modes; return whether all went well, None if it cannot."""
    name, *groups = FLEET
    file = f"examples/{name}/pipeline.yaml"
    with over_kafka.services(say) as found:
        if found is None:
            return None
        memory = run(["run", file, *options], full=False)
        good = [one_fleet(file, mode, groups, found, memory, options) for mode in BOTH]
    return all(good)


def one_fleet(
    file: str,
    mode: str,
    groups: Sequence[str],
    found: over_kafka.Services,
    memory: Told,
    options: tuple[str, ...],
) -> bool:
    """Run an example by several processes, and compare it with its run in one."""
    heading("-", f"{mode} over Kafka")
    more = found.environment(mode)
    commands = [["worker", file, *_agents(group)] for group in groups]
    if mode == "orchestration":
        commands.insert(0, ["orchestrator", file])
    served = [[*CADENZA, *command, *options] for command in commands]
    with over_kafka.serving(served, folder=ROOT, environment=environment() | more, say=say):
        told = run(["run", file, *options], full=True, more=more)
    at = () if found.jaeger is None else ("--jaeger", found.jaeger.query)
    code = subprocess.call(
        [*CADENZA, "trace", "verify", told.run, *at, *options], cwd=ROOT, env=environment() | more
    )
    equal = told.words.get("ledger", "none") == memory.words["ledger"]
    same = told.answer == memory.answer
    say(f"ledger and answer: {'equal' if equal and same else 'NOT EQUAL'} to those in one process")
    return not told.code and not code and equal and same


def _agents(group: str) -> list[str]:
    return [word for agent in group.split() for word in ("--agent", agent)]


def tour(number: int, example: Tour, options: tuple[str, ...]) -> bool:
    """Run one example in both modes; return whether all went well."""
    heading("=", f"{number}. {example.name}: {example.about}")
    file = f"examples/{example.name}/pipeline.yaml"
    say(f"Pipeline  {file}", f"Task      {task_of(ROOT / file)}")
    runs: list[Told] = []
    good = True
    for mode in example.modes:
        heading("-", mode)
        told = run(["run", file, "--mode", mode, *options], full=not runs)
        say("", "Answer", *told.answer.splitlines(), "", *told.footer, "", "Trace")
        runs.append(told)
        trace = [*CADENZA, "trace", "show", told.run, *options]
        code = subprocess.call(trace, cwd=ROOT, env=environment())
        if told.code or code:
            say(f"FAILED    the run ended with {told.code}, showing its trace with {code}")
            good = False
    heading("-", "the two modes compared")
    hashes = [told.words.get("ledger", "none") for told in runs]
    equal = hashes[0] == hashes[1] != "none"
    same = runs[0].answer == runs[1].answer
    for mode, found in zip(example.modes, hashes, strict=True):
        say(f"{mode:<13}  canonical ledger {found}")
    say(f"ledgers        {'equal' if equal else 'NOT EQUAL'}")
    say(f"answers        {'equal' if same else 'NOT EQUAL'}")
    return good and equal and same


def run(arguments: list[str], *, full: bool, more: dict[str, str] | None = None) -> Told:
    """Run the command line; show its progress as it comes, if it is to be shown in full."""
    say(f"$ cadenza {shlex.join(arguments)}")
    process = subprocess.Popen(
        [*CADENZA, *arguments],
        cwd=ROOT,
        env=environment() | (more or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    answer: list[str] = []
    reader = threading.Thread(target=lambda out: answer.append(out.read()), args=[process.stdout])
    reader.start()
    told = Told(0, "", [], [], {})
    listen(process.stderr, told, show=full)
    reader.join()
    told.code, told.answer = process.wait(), "".join(answer).rstrip("\n")
    process.stdout.close()
    process.stderr.close()
    if told.code and not full:
        say(*told.progress)
    elif not full:
        say(f"           ({len(told.progress)} lines of progress, much as above)")
    return told


def listen(lines: IO[str], told: Told, *, show: bool) -> None:
    """Read the progress, and hold back what follows the answer."""
    for line in lines:
        text = line.rstrip("\n")
        found = _FOOTER.match(text)
        if told.footer or (found is not None and found["word"] == "cost"):
            told.footer.append(text)
            if found is not None:
                told.words[found["word"]] = found["rest"].strip()
            continue
        told.progress.append(text)
        if show:
            say(text)


def environment() -> dict[str, str]:
    """Return the environment without settings that would change the tour."""
    return {k: v for k, v in os.environ.items() if not k.startswith("CADENZA_")}


def task_of(file: Path) -> str:
    """Return the task that stands in a pipeline file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return next(x for x in lines if x.startswith("# task:")).removeprefix("# task:").strip()


def heading(sign: str, text: str) -> None:
    """Print a heading across the page."""
    if sign == "=":
        say("", sign * WIDTH, text, sign * WIDTH)
    else:
        say("", f"{sign * 3} {text} ".ljust(WIDTH, sign))


def say(*lines: str) -> None:
    """Print lines at once, so that they stand before what a child process prints."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
