"""People in a run: approve, edit, deny, answer, from another terminal, before or after its end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.cli_kit import Cli, Told, team, until

MODES = ("orchestration", "choreography")
REFUND = """
import pathlib
from cadenza import tool

@tool(effect="guarded", needs_approval=True)
def refund(order: int, usd: float) -> str:
    \"\"\"Refund an order.

    Args:
        order: Its number.
        usd: How much.
    \"\"\"
    with pathlib.Path(__file__).with_name("refunds").open("a") as log:
        log.write(f"{order} {usd:.2f}\\n")
    return f"refunded {usd:.2f}"
"""
CALL = {"tool_calls": [{"name": "refund", "arguments": {"order": 7, "usd": 50}}]}
AGENT = '{"tools": ["till:refund"], "ask_human": true}'


def commands(told: Told, word: str) -> list[str]:
    """Return the arguments of the command that a run tells people to type."""
    line = next(x for x in told.err.splitlines() if x.split()[:1] == word.split()[:1])
    return line.partition("cadenza ")[2].partition(" [")[0].split()


def refunds(cli: Cli) -> list[str]:
    log = cli.folder / "refunds"
    return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def waiting(cli: Cli) -> Told:
    """A run that waits for approval; nobody works on it."""
    cli.write(**team([CALL, "I was told: {{observation.-1}}"], AGENT), till__py=REFUND)
    told = cli("run", "pipeline.yaml", "Refund order 7.")
    assert (told.code, told.out, refunds(cli)) == (4, "", [])
    assert "Agent 'clerk' wants to call refund(order=7, usd=50)." in told.err
    assert "waiting" in cli("runs", "list").out
    return told


def test_what_a_run_tells_to_type_is_what_is_to_be_typed(cli: Cli, waiting: Told) -> None:
    assert cli(*commands(waiting, "approve")).code == 0
    done = cli(*commands(waiting, "then"))
    assert (done.code, done.out) == (0, "I was told: refunded 50.00\n")
    assert refunds(cli) == ["7 50.00"]


def test_arguments_can_be_edited_and_the_record_says_by_whom(
    cli: Cli, waiting: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    told = cli("approve", waiting.run, "--edit", '{"order": 7, "usd": 20}')
    assert told.code == 0
    assert f"cadenza runs resume {waiting.run}" in told.err
    done = cli("runs", "resume", waiting.run)
    assert "refunded 20.00" in done.out
    assert refunds(cli) == ["7 20.00"]
    story = cli("runs", "show", waiting.run).out
    assert 'approved with {"order": 7, "usd": 20} by ada' in story


def test_a_denial_reaches_the_model_with_its_reason(cli: Cli, waiting: Told) -> None:
    assert cli(*commands(waiting, "or")[:-1], "too much").code == 0
    done = cli("runs", "resume", waiting.run, "--quiet")
    assert "did not approve this call: too much" in done.out
    assert refunds(cli) == []


def test_only_the_first_answer_counts(cli: Cli, waiting: Told) -> None:
    request = commands(waiting, "approve")[2]
    assert cli("approve", waiting.run, request).code == 0
    told = cli("deny", waiting.run, request)
    assert told.code == 2
    assert "was answered" in told.err
    assert cli("runs", "resume", waiting.run).code == 0
    told = cli("approve", waiting.run)
    assert told.code == 2
    assert "nothing is to be answered" in told.err
    assert refunds(cli) == ["7 50.00"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["approve", "RUN", "--edit", "[1]"], "needs a JSON object"),
        (["approve", "RUN", "--edit", "{"], "--edit is not JSON"),
        (["answer", "RUN", "INPUT", "yes"], "use `cadenza approve` or `cadenza deny`"),
        (["deny", "RUN", "--value", "1"], "give --reason"),
        (["approve", "RUN", "ffffffffffff"], "has no input request 'ffffffffffff'"),
        (["approve", "RUN", ""], "has no input request ''"),
    ],
)
def test_an_answer_of_another_kind_is_refused_and_can_be_given_again(
    cli: Cli, waiting: Told, words: list[str], hint: str
) -> None:
    names = {"RUN": waiting.run, "INPUT": commands(waiting, "approve")[2]}
    told = cli(*(names.get(word, word) for word in words))
    assert told.code == 2
    assert hint in told.err
    assert cli("approve", waiting.run).code == 0


def test_resuming_before_anybody_answered_tells_again_what_is_asked(
    cli: Cli, waiting: Told
) -> None:
    again = cli("runs", "resume", waiting.run)
    assert again.code == 4
    assert commands(again, "approve") == commands(waiting, "approve")
    assert commands(again, "then") == commands(waiting, "then")
    story = cli("runs", "show", waiting.run)
    assert "cadenza approve" in story.out


def test_a_waiting_run_can_be_cancelled(cli: Cli, waiting: Told) -> None:
    assert cli("runs", "cancel", waiting.run, "--reason", "no longer needed").code == 0
    done = cli("runs", "resume", waiting.run)
    assert done.code == 1
    assert "no longer needed" in done.err
    assert "cancelled" in cli("runs", "list").out
    assert refunds(cli) == []


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_waits_in_its_process_goes_on_when_another_terminal_answers(
    cli: Cli, mode: str
) -> None:
    cli.write(**team([CALL, "{{observation.-1}}"], AGENT), till__py=REFUND)
    process = cli.start("run", "pipeline.yaml", "Refund.", "--wait", "--mode", mode)
    until(lambda: "or deny" in cli.err())
    told = Told(0, "", cli.err())
    assert cli.process(*commands(told, "approve"), "--edit", '{"order": 8, "usd": 1}').code == 0
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "refunded 1.00" in out
    assert "Traceback" not in cli.err()
    assert refunds(cli) == ["8 1.00"]


@pytest.mark.parametrize("mode", MODES)
def test_a_question_is_answered_with_text(cli: Cli, mode: str) -> None:
    ask = {"tool_calls": [{"name": "ask_human", "arguments": {"question": "Which order?"}}]}
    cli.write(**team([ask, "It is {{observation.-1}}."], AGENT), till__py=REFUND)
    told = cli("run", "pipeline.yaml", "Find it.", "--mode", mode)
    assert told.code == 4
    words = commands(told, "answer")
    assert words[-1] == "TEXT"
    refused = cli("approve", told.run)
    assert refused.code == 2
    assert "is a question" in refused.err
    assert cli(*words[:-1], "the 7th").code == 0
    assert cli("runs", "resume", told.run).out == "It is the 7th.\n"
    assert "Which order?" in cli("runs", "show", told.run).out


@pytest.mark.parametrize("mode", MODES)
def test_a_plan_is_reviewed_edited_and_run(cli: Cli, mode: str) -> None:
    plan = {"subtasks": [{"id": "a", "agent": "clerk", "task": "Refund all of them."}]}
    replies: list[Any] = [
        {"agent": "planner", "text": json.dumps(plan)},
        {"agent": "clerk", "match": "only the 7th", "text": "Only the 7th."},
    ]
    cli.write(**team(replies, planner={"model": "main", "review": True}))
    told = cli("run", "pipeline.yaml", "Refund.", "--mode", mode)
    assert told.code == 4
    assert "- a (clerk): Refund all of them." in told.err
    edited = {"subtasks": [{"id": "a", "agent": "clerk", "task": "Refund only the 7th."}]}
    assert cli(*commands(told, "approve"), "--edit", json.dumps(edited)).code == 0
    assert cli("runs", "resume", told.run).out == "Only the 7th.\n"


def test_an_effect_in_doubt_is_not_repeated_once_a_person_gives_its_result(cli: Cli) -> None:
    free = REFUND.replace(", needs_approval=True", "")
    killed = "    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n    return"
    dies = free.replace("    return", killed)
    cli.write(**team([CALL, "{{observation.-1}}"], AGENT, limits={"lease_s": 1}), till__py=dies)
    process = cli.start("run", "pipeline.yaml", "Refund.")
    process.communicate(timeout=30)
    assert (process.returncode, refunds(cli)) == (-9, ["7 50.00"])
    cli.write(till__py=free)
    told = cli("runs", "resume", cli("runs", "list").out.split()[0])
    assert told.code == 4
    assert "stopped before its result was seen" in told.err
    assert "--reason WHY [--value RESULT]" in told.err
    refused = cli("approve", told.run, "--edit", "{}")
    assert (refused.code, "give no --edit" in refused.err) == (2, True)
    assert cli("deny", told.run, "--value", '"the bank says: refunded"').code == 0
    assert cli("runs", "resume", told.run).out == "the bank says: refunded\n"
    assert refunds(cli) == ["7 50.00"]
