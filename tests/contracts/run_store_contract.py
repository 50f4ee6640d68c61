"""What every run store promises, as tests that each implementation inherits: runs and ledgers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from agents.assignment import Answer
from agents.usage import Usage
from orchestrator.facts import Answered, CancelAsked, Submitted
from orchestrator.store.base import AttemptId, RunStore
from orchestrator.store.errors import RunUnknown, StoreClosed, StoreError
from tests.contracts.run_store_gate import GateContract
from tests.contracts.run_store_gear import LAPSED_S, LEASE_S, Age, new_run, past, said
from tests.contracts.run_store_sweep import SweepContract


class RunStoreContract(GateContract, SweepContract):
    """Give the fixtures ``store``, opened and empty, and ``age`` (see ``Age``)."""

    # --- runs

    async def test_a_run_is_found_as_it_was_submitted(self, store: RunStore) -> None:
        gear = await new_run(store, session="u1", traceparent="00-a-b-01", tags={"名": "前"})
        row = await store.run(gear.run)
        assert (row.run, row.pipeline, row.mode, row.status) == (
            gear.run, "stock", "orchestration", "running",
        )  # fmt: skip
        assert (row.task, row.session, row.trace) == ("Count the stock.", "u1", "00-a-b-01")
        assert (row.seq, row.ended, row.data["tags"]) == (0, None, {"名": "前"})
        assert abs(row.created - time.time()) < 30
        assert await store.pipeline(gear.pipeline_hash) == {"agents": {"a": {}}}
        assert await store.usage(gear.run) == Usage()

    async def test_a_submission_is_the_first_row_of_the_inbox(self, store: RunStore) -> None:
        gear = await new_run(store, session="u1")
        batch = await store.take(gear.run)
        [(_, fact)] = batch.inbox
        assert isinstance(fact, Submitted)
        assert (fact.run, fact.task, fact.data) == (gear.run, "Count the stock.", {"session": "u1"})
        assert fact.time == batch.time
        assert await store.ledger(gear.run) == []

    async def test_a_run_id_is_used_once(self, store: RunStore) -> None:
        gear = await new_run(store)
        with pytest.raises(StoreError, match="submitted before"):
            await new_run(store, run=gear.run, pipeline_hash="other")
        assert len((await store.take(gear.run)).inbox) == 1
        with pytest.raises(KeyError):
            await store.pipeline("other")

    async def test_half_a_surrogate_pair_is_kept(self, store: RunStore) -> None:
        gear = await new_run(store, note="cut \ud83d")
        assert (await store.run(gear.run)).data == {"note": "cut \ud83d"}

    async def test_a_run_is_found_by_an_unambiguous_beginning(self, store: RunStore) -> None:
        for run in ("ab1", "ab2", "ab", "b%c", "B", "zz~"):
            await new_run(store, run=run)
        assert (await store.run("ab1")).run == "ab1"
        assert (await store.run("ab")).run == "ab"
        assert (await store.run("b")).run == "b%c"
        assert (await store.run("z")).run == "zz~"
        with pytest.raises(RunUnknown, match="several runs begin with 'a': ab, ab1, ab2"):
            await store.run("a")

    @pytest.mark.parametrize("run", ["", "a%", "_", "zz", "AB", "a\\"])
    async def test_what_is_no_beginning_finds_nothing(self, store: RunStore, run: str) -> None:
        await new_run(store, run="ab1")
        with pytest.raises(RunUnknown, match=r"there is no run .*; the latest: ab1"):
            await store.run(run)

    async def test_who_looks_for_no_run_is_told_what_there_is(self, store: RunStore) -> None:
        with pytest.raises(RunUnknown, match="no run 'abcdef' in this store; it is empty"):
            await store.run("abcdef")
        for run in ("abcdeg", "zzzzzz"):
            await new_run(store, run=run)
        with pytest.raises(RunUnknown, match=r"did you mean abcdeg\?"):
            await store.run("abcdef")

    async def test_runs_are_listed_the_newest_first(self, store: RunStore, age: Age) -> None:
        gears = []
        for _ in range(3):
            await age(10)
            gears.append(await new_run(store))
        assert await gears[1].commit(said("run.completed"), final="completed")
        newest_first = [gear.run for gear in reversed(gears)]
        assert [row.run for row in await store.runs()] == newest_first
        assert [row.run for row in await store.runs(limit=1)] == newest_first[:1]
        assert [r.run for r in await store.runs(status="completed")] == [gears[1].run]

    async def test_an_unknown_run_is_an_error(self, store: RunStore) -> None:
        for call in (
            store.run("nobody"),
            store.published("nobody"),
            store.usage("nobody"),
            store.put("nobody", CancelAsked(0, "why")),
        ):
            with pytest.raises(RunUnknown, match="nobody"):
                await call
        assert await store.ledger("nobody") == []
        assert (await store.take("nobody")).inbox == []

    # --- the inbox

    async def test_facts_are_taken_in_order_of_arrival(self, store: RunStore) -> None:
        gear = await new_run(store)
        answered = Answered(0, "i1", Answer(approved=True, reason="ok"), by="me")
        assert await store.put(gear.run, answered)
        assert await store.put(gear.run, CancelAsked(0, "enough"))
        batch = await store.take(gear.run)
        assert [type(fact) for _, fact in batch.inbox] == [Submitted, Answered, CancelAsked]
        taken = batch.inbox[1][1]
        assert isinstance(taken, Answered)
        assert (taken.input_id, taken.answer, taken.by) == ("i1", answered.answer, "me")

    async def test_at_most_one_fact_of_a_key_is_ever_taken(self, store: RunStore) -> None:
        gear, other = await new_run(store), await new_run(store)
        await gear.take_all()
        asked = [store.put(gear.run, CancelAsked(0, str(i)), key="cancel") for i in range(8)]
        assert sorted(await asyncio.gather(*asked)) == [False] * 7 + [True]
        assert len((await store.take(gear.run)).inbox) == 1
        await gear.take_all()
        assert not await store.put(gear.run, CancelAsked(0, "late"), key="cancel")
        assert await store.put(other.run, CancelAsked(0, "mine"), key="cancel")
        assert (await store.take(gear.run)).inbox == []

    # --- commits

    async def test_a_commit_appends_and_writes_all_it_says(self, store: RunStore) -> None:
        gear = await new_run(store)
        [(row, _)] = (await store.take(gear.run)).inbox
        assert await gear.commit(
            said("run.submitted", run=gear.run),
            said("subtask.ready", text="数える"),
            inbox=[row],
            timers=[past(), past("wall", "", 0)],
            announced=[("s", 1, "a"), ("t", 1, "b"), ("u", 1, "a")],
            sent=[("t", 1)],
            closed=[("u", 1)],
            time=50.0,
        )
        assert await gear.commit(said("third"), fired=[past()], time=60.0)
        events = await store.ledger(gear.run)
        assert [(e.seq, e.type, e.time) for e in events] == [
            (1, "run.submitted", 50.0), (2, "subtask.ready", 50.0), (3, "third", 60.0),
        ]  # fmt: skip
        assert events[1].data == {"text": "数える"}
        assert await store.ledger(gear.run, after=2) == events[2:]
        batch = await store.take(gear.run)
        assert (batch.inbox, batch.timers) == ([], [past("wall", "", 0)])
        states = [(a.subtask, a.attempt, a.agent, a.state) for a in batch.attempts]
        assert states == [("s", 1, "a", "ready"), ("t", 1, "b", "sent")]

    async def test_a_later_commit_dispatches_what_was_ready(self, store: RunStore) -> None:
        gear = await new_run(store)
        await gear.ready()
        assert not await store.claim(AttemptId(gear.run, "s", 1, "w"), lease_s=LEASE_S)
        assert await gear.commit(said("subtask.dispatched"), sent=[("s", 1)])
        assert [a.state for a in await gear.open_attempts()] == ["sent"]

    async def test_a_timer_waits_for_its_time(self, store: RunStore, age: Age) -> None:
        gear = await new_run(store)
        later = replace(past(), at=time.time() + 100)
        assert await gear.commit(said("x"), timers=[later])
        assert (await store.take(gear.run)).timers == []
        await age(101)
        assert [t.key for t in (await store.take(gear.run)).timers] == ["s"]

    async def test_one_of_two_commits_on_the_same_seq_is_refused(self, store: RunStore) -> None:
        gear = await new_run(store)
        commits = [gear.commit(said(f"by {i}"), expected_seq=0) for i in range(8)]
        assert sorted(await asyncio.gather(*commits)) == [False] * 7 + [True]
        assert [event.seq for event in await store.ledger(gear.run)] == [1]

    @pytest.mark.parametrize("why", ["seq", "inbox", "lease", "claim", "unclosed", "service"])
    async def test_nothing_of_a_refused_commit_remains(self, store: RunStore, why: str) -> None:
        gear = await new_run(store)
        attempt = await gear.claim()
        await store.beat("w", gear.scope("a"), attempts=[],
                         lease_s=LEASE_S)  # fmt: skip
        await gear.send("free")
        assert await gear.commit(said("x"), timers=[past()])
        wrong: dict[str, dict[str, Any]] = {
            "seq": {"expected_seq": 1},
            "inbox": {"inbox": [10_000]},
            "lease": {"still_lapsed": [("s", 1)]},
            "claim": {"still_unclaimed": [("s", 1)]},
            "unclosed": {"still_unclaimed": [("nobody", 1)]},
            "service": {"still_unserved": ["b", "a"]},
        }
        before = await gear.snapshot()
        rows = [row for row, _ in (await store.take(gear.run)).inbox]
        what: dict[str, Any] = {
            "inbox": rows,
            "fired": [past()],
            "timers": [past("join")],
            **wrong[why],
        }
        assert not await gear.commit(
            said("never"), **what, announced=[("n", 1, "a")], sent=[("n", 1)],
            closed=[("free", 1)], cancelled=[("s", 1)], final="failed",
        )  # fmt: skip
        assert await gear.snapshot() == before
        assert await store.record(attempt, 0, [], lease_s=LEASE_S) == "ok"

    async def test_guards_that_hold_let_a_commit_pass(self, store: RunStore) -> None:
        gear = await new_run(store)
        await gear.claim("late", lease_s=LAPSED_S)
        await gear.send("free")
        assert await gear.commit(
            said("x"), still_lapsed=[("late", 1)], still_unclaimed=[("free", 1)],
            still_unserved=["a"], closed=[("late", 1), ("free", 1)],
        )  # fmt: skip
        assert await gear.open_attempts() == []

    async def test_a_heartbeat_between_decision_and_commit_voids_the_expiry(
        self, store: RunStore
    ) -> None:
        # The heartbeat does not move seq, so compare-and-set alone would expire a live attempt.
        gear = await new_run(store)
        attempt = await gear.claim(lease_s=LAPSED_S)
        assert [a.lapsed for a in await gear.open_attempts()] == [True]
        await store.beat("w", gear.scope("a"), attempts=[attempt],
                         lease_s=LEASE_S)  # fmt: skip
        expiry = {"still_lapsed": [("s", 1)], "closed": [("s", 1)]}
        assert not await gear.commit(said("attempt.expired"), **expiry)
        assert [a.lapsed for a in await gear.open_attempts()] == [False]

    async def test_a_final_event_ends_the_run_and_its_timers(self, store: RunStore) -> None:
        gear = await new_run(store)
        assert await gear.commit(said("x"), timers=[past()])
        assert await gear.commit(said("run.failed"), final="failed", time=70.0)
        row = await store.run(gear.run)
        assert (row.status, row.ended, row.seq) == ("failed", 70.0, 2)
        assert (await store.take(gear.run)).timers == []

    # --- publishing

    async def test_the_watermark_moves_only_from_where_it_is(self, store: RunStore) -> None:
        gear = await new_run(store)
        assert await gear.commit(*(said(str(i)) for i in range(6)))
        assert await store.published(gear.run) == 0
        await store.mark_published(gear.run, start=2, end=6)  # a gap: 1 and 2 were not published
        assert await store.published(gear.run) == 0
        await store.mark_published(gear.run, start=0, end=2)
        await store.mark_published(gear.run, start=2, end=5)
        await store.mark_published(gear.run, start=2, end=3)  # a slower process comes late
        assert await store.published(gear.run) == 5

    # --- blobs, and the end

    async def test_bytes_are_kept_under_their_hash(self, store: RunStore) -> None:
        data = bytes(range(256)) * 2_000
        shas = await asyncio.gather(*(store.put_blob(data, "image/png") for _ in range(2)))
        assert set(shas) == {sha256(data).hexdigest()}
        assert await store.blob(shas[0]) == data
        assert await store.blob(await store.put_blob(b"", "text/plain")) == b""
        with pytest.raises(KeyError):
            await store.blob("0" * 64)

    async def test_a_closed_store_says_so_and_closes_twice(self, store: RunStore) -> None:
        gear = await new_run(store)
        await store.close()
        await store.close()
        for call in (store.run(gear.run), store.put(gear.run, CancelAsked(0, "")), store.version()):
            with pytest.raises(StoreClosed):
                await call

    async def test_a_cancelled_callers_accepted_write_still_happens(self, store: RunStore) -> None:
        gear = await new_run(store)
        await gear.take_all()
        asking = asyncio.ensure_future(store.put(gear.run, CancelAsked(0, "why")))
        await asyncio.sleep(0)  # one step: the write is accepted
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await store.put(gear.run, CancelAsked(0, "after it"))
        inbox = (await store.take(gear.run)).inbox
        assert [f.reason for _, f in inbox if isinstance(f, CancelAsked)] == ["why", "after it"]
