"""``cadenza approve``, ``deny`` and ``answer``: what people say to a run."""

from __future__ import annotations

import getpass
import json
from typing import Any

import click

from agents.assignment import Answer
from orchestrator.cli.sources import existing_store, store_option
from orchestrator.errors import InputUnknown, UsageError
from orchestrator.result import open_inputs
from orchestrator.run import provide
from orchestrator.store.base import RunStore

_SHORT = 8


async def approve(run: str, input_id: str | None, edit: str | None, store: str | None) -> int:
    """Approve an input request, as it is or with edited arguments."""
    value = _json("--edit", edit)
    return await _give(run, input_id, Answer(approved=True, value=value), store)


async def deny(
    run: str, input_id: str | None, reason: str, value: str | None, store: str | None
) -> int:
    """Deny an input request."""
    given = Answer(approved=False, value=_json("--value", value), reason=reason)
    return await _give(run, input_id, given, store)


async def answer(run: str, input_id: str, text: str, store: str | None) -> int:
    """Answer a question."""
    return await _give(run, input_id, Answer(value=text), store)


def how_to_answer(run: str, asked: dict[str, Any], option: str) -> list[str]:
    """Return the commands that answer an input request, as lines for people."""
    what = f"{run} {asked['input'][:_SHORT]}"
    if asked["kind"] == "question":
        return [f"   answer  cadenza answer {what} TEXT{option}"]
    doubt = asked["kind"] == "effect_unknown"
    edit, value = ("", " [--value RESULT]") if doubt else (" [--edit JSON]", "")
    return [
        f"  approve  cadenza approve {what}{edit}{option}",
        f"  or deny  cadenza deny {what} --reason WHY{value}{option}",
    ]


def _json(option: str, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as exc:
        raise UsageError(f"{option} is not JSON: {exc}") from exc


async def _give(run: str, input_id: str | None, given: Answer, path: str | None) -> int:
    async with existing_store(path) as store:
        row = await store.run(run)
        asked = await _asked(store, row.run, input_id)
        if asked is not None:
            _check(asked, given)
        await provide(store, row.run, asked["input"] if asked else str(input_id), given, by=_who())
        option = await store_option(store)
    click.echo(f"recorded for run {row.run}", err=True)
    click.echo(f"unless a process works on it: cadenza runs resume {row.run}{option}", err=True)
    return 0


async def _asked(store: RunStore, run: str, input_id: str | None) -> dict[str, Any] | None:
    """Return what is asked; None when the id is that of no open request."""
    found = open_inputs(await store.ledger(run))
    if input_id is not None:
        named = [asked for asked in found if asked["input"].startswith(input_id)]
        return named[0] if len(named) == 1 and input_id else None
    if len(found) == 1:
        return found[0]
    names = ", ".join(asked["input"][:_SHORT] for asked in found)
    hint = f"name one: {names}" if found else "nothing is to be answered"
    raise InputUnknown(f"run {run} asks for {len(found)} things; {hint}")


def _check(asked: dict[str, Any], given: Answer) -> None:
    kind, name = asked["kind"], asked["input"][:_SHORT]
    if kind == "question" and given.approved:
        raise UsageError(f"{name} is a question: use `cadenza answer`, or `cadenza deny`")
    if kind != "question" and given.approved is None:
        raise UsageError(f"{name} is no question: use `cadenza approve` or `cadenza deny`")
    if given.value is None or given.approved is None:
        return
    if given.approved and kind == "effect_unknown":
        raise UsageError("the call is made again as it was; give no --edit")
    if not given.approved and kind != "effect_unknown":
        raise UsageError("--value is for a call whose end is unknown; give --reason")
    if kind == "approval" and not isinstance(given.value, dict):
        raise UsageError("--edit needs a JSON object: the arguments of the call")


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
