"""Everything that a page says to do works as it says."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from agents.toolbox.registry import BUILT_IN
from tests.acceptance.cli_kit import until
from tests.docs.page import DOCS, Session, blocks, commands, pages, pattern
from tests.gear.fake_openai import FakeOpenAI, text
from tests.gear.programs import JaegerAt

PAGES = {str(page.relative_to(DOCS)): page for page in pages()}
LOCAL = "how-to/use-a-local-model.md"
KAFKA = "how-to/run-over-kafka.md"
TRIED = sorted(set(PAGES) - {LOCAL, KAFKA})
# What each page that adds something makes: the thing itself stands in one file.
ADDED = {
    "add-a-tool": "shop.py",
    "add-a-function-agent": "checks.py",
    "add-a-stop-condition": "stops.py",
    "add-a-model-adapter": "echo.py",
    "add-an-agent": "shop.yaml",
}


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.timeout(300)  # some pages start a process a dozen times
def test_a_page_does_what_it_says(name: str, tmp_path: Path) -> None:
    Session(tmp_path).do(PAGES[name])


@pytest.mark.timeout(300)
async def test_the_page_on_local_models_does_what_it_says(tmp_path: Path) -> None:
    replies = [
        text(' I need a tool.\nAction: calculator\nAction Input: {"expression": "12 * (3 + 7)"}'),
        text(" I now know the final answer.\nFinal Answer: 120"),
    ]
    async with FakeOpenAI(replies) as server:
        address = server.base.removeprefix("http://").removesuffix("/v1")
        session = Session(tmp_path, {"OLLAMA_HOST": address})
        await asyncio.to_thread(session.do, PAGES[LOCAL])
    first, second = server.requests
    assert first["model"] == "gemma3:4b"
    assert first["messages"][-1] == {"role": "assistant", "content": "Thought:"}
    assert "\nObservation:" in first["stop"]
    assert (first["keep_alive"], first["max_tokens"], first["temperature"]) == ("30m", 512, 0)
    assert "tools" not in first
    assert second["messages"][-2]["content"].endswith("120")


@pytest.mark.timeout(300)
def test_the_page_on_kafka_does_what_it_says(
    tmp_path: Path, kafka_address: str, jaeger: JaegerAt
) -> None:
    environment = {
        "CADENZA_BUS__URL": kafka_address,
        "CADENZA_BUS__NAMESPACE": f"page-{uuid.uuid4().hex[:8]}",
        "CADENZA_JAEGER_URL": jaeger.query,
        "OTEL_EXPORTER_OTLP_ENDPOINT": jaeger.otlp,
    }
    session = Session(tmp_path, environment)
    with ExitStack() as stack:
        for block in blocks(PAGES[KAFKA].read_text("utf-8")):
            if block.kind == "sh" and block.text.startswith("cadenza up "):
                stack.close()  # with Ctrl-C, as the page says
                stack.callback(second_terminal(block.text, tmp_path, environment))
            session.block(block, f"{KAFKA}:{block.line}")


def second_terminal(command: str, folder: Path, environment: dict[str, str]) -> Callable[[], None]:
    """Start ``cadenza up`` and wait until each part is ready; return how to end it."""
    words = [sys.executable, "-m", "orchestrator.cli.main", *command.split()[1:]]
    path = {"PYTHONPATH": str(DOCS.parent)}
    log = folder / "up.log"
    with log.open("w") as told:
        process = subprocess.Popen(
            words, cwd=folder, env={**os.environ, **path, **environment}, stderr=told
        )
    parts = 3 if "choreography" in command else 4
    until(lambda: log.read_text().count("│    ready") == parts, within_s=60)

    def end() -> None:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, log.read_text()

    return end


@pytest.mark.parametrize("name", ADDED)
def test_what_a_page_adds_stands_in_one_place(name: str) -> None:
    """The thing, and the line of the pipeline file that gives it to somebody; nothing else."""
    files = [b.name for b in blocks(PAGES[f"how-to/{name}.md"].read_text("utf-8")) if b.name]
    code = [file for file in files if file.endswith(".py") and not file.startswith("try_")]
    assert ADDED[name] in files
    assert len(code) <= (2 if name == "add-a-tool" else 1), "one file for one thing"
    assert any(file.endswith(".yaml") for file in files)


def test_links_lead_somewhere() -> None:
    lost = []
    for name, page in PAGES.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
            path, _, anchor = target.partition("#")
            if "://" in target:
                continue
            there = page if not path else (page.parent / path).resolve()
            if not there.is_file() or (anchor and anchor not in anchors(there)):
                lost.append(f"{name}: {target}")
    assert lost == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_index_names_every_page() -> None:
    index = PAGES["README.md"].read_text("utf-8")
    assert [name for name in PAGES if name != "README.md" and f"({name})" not in index] == []


def test_the_glossary_is_in_order_and_has_each_word_once() -> None:
    words = re.findall(
        r"^\| ([a-z][a-z ]+) \| ", PAGES["glossary.md"].read_text("utf-8"), re.MULTILINE
    )
    assert words == sorted(set(words))
    assert len(words) > 30


def test_every_built_in_tool_is_told() -> None:
    text_ = PAGES["reference/tools.md"].read_text("utf-8")
    assert [name for name in BUILT_IN if f"### {name}\n" not in text_] == []


@pytest.mark.parametrize(
    ("said", "printed", "matches"),
    [
        ("a RUN b\n", "a 0123456789abcdef b\n", True),
        ("a RUN b\n", "a 0123 b\n", False),
        ("RUN and RUN\n", "0123456789abcdef and 0123456789abcdee\n", False),
        ("a … b\n", "a 1 2 3 b\n", True),
        ("a … b\n", "a 1\n2 b\n", False),
        ("…\nb\n", "a\na\nb\n", True),
        ("…\nb\n", "a\na\nc\n", False),
        ("a\n…\n", "a\n", True),
        ("a.c\n", "abc\n", False),
    ],
)
def test_what_is_printed_is_compared(said: str, printed: str, matches: bool) -> None:
    assert (pattern(said, {}).fullmatch(printed) is not None) is matches


def test_a_known_id_must_come_again() -> None:
    assert pattern("RUN\n", {"RUN": "0123456789abcdef"}).fullmatch("ffffffffffffffff\n") is None


def test_files_and_commands_are_found_in_a_page() -> None:
    python = "Put this into `a/b.py`:\n\n```python\nx = 1\n```\n"
    file, console = blocks(f"{python}\n```console\n$ one \\\n  more\nout\n$ two\n```\n")
    assert (file.kind, file.name, file.text, file.line) == ("python", "a/b.py", "x = 1\n", 3)
    assert console.name == ""
    told = commands(console.text)
    assert [(c.line, c.printed) for c in told] == [("one more", "out\n"), ("two", "")]


def test_a_page_that_is_wrong_is_found(tmp_path: Path) -> None:
    session = Session(tmp_path)
    for wrong in ("$ echo one\ntwo\n", "$ false\n", "$ echo RUN\n"):
        (block,) = blocks(f"```console\n{wrong}```\n")
        with pytest.raises((AssertionError, KeyError)):
            session.block(block, "here")
