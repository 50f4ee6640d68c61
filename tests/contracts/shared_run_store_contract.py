"""What a run store that outlives its process promises to a second process."""

from __future__ import annotations

import asyncio

from agents.journal import Reserve
from agents.usage import Budget
from orchestrator.commit import Commit
from orchestrator.facts import CancelAsked
from orchestrator.store.base import AttemptId, RunStore
from tests.contracts.run_store_gear import LAPSED_S, LEASE_S, entry, new_run, said


class SharedRunStoreContract:
    """Give also the fixture ``second``: another process's view of ``store``."""

    async def test_both_know_the_same_store(self, store: RunStore, second: RunStore) -> None:
        assert store.uuid
        assert second.uuid == store.uuid

    async def test_what_one_wrote_the_other_reads(self, store: RunStore, second: RunStore) -> None:
        gear = await new_run(store)
        attempt = await gear.claim()
        assert await store.record(attempt, 0, [entry("a")], lease_s=LEASE_S) == "ok"
        sha = await store.put_blob(b"x", "text/plain")
        assert await gear.seen_by(second).snapshot() == await gear.snapshot()
        assert await second.journal(gear.run, "s") == [entry("a")]
        assert await second.blob(sha) == b"x"
        assert await second.pipeline(gear.pipeline_hash) == {"agents": {"a": {}}}

    async def test_what_was_returned_from_is_there_after_a_reopening(
        self, store: RunStore, second: RunStore
    ) -> None:
        gear = await new_run(store)
        await gear.take_all()
        uuid, before = store.uuid, await gear.snapshot()
        await store.close()
        await second.close()
        await store.open()
        assert (store.uuid, await gear.snapshot()) == (uuid, before)

    async def test_closing_finishes_what_was_accepted(
        self, store: RunStore, second: RunStore
    ) -> None:
        gear = await new_run(store)
        await gear.take_all()
        asked = [
            asyncio.ensure_future(store.put(gear.run, CancelAsked(0, str(i)))) for i in range(100)
        ]
        await asyncio.sleep(0)  # one step: all are accepted
        await store.close()
        assert await asyncio.gather(*asked) == [True] * 100
        assert len((await second.take(gear.run)).inbox) == 100

    async def test_the_version_changes_when_the_other_writes_and_only_then(
        self, store: RunStore, second: RunStore
    ) -> None:
        gear = await new_run(store)
        before = [await store.version(), await second.version()]
        assert [await store.version(), await second.version()] == before
        await store.put(gear.run, CancelAsked(0, "x"))
        assert await store.version() == before[0]
        assert await second.version() != before[1]
        await second.put(gear.run, CancelAsked(0, "y"))
        assert await store.version() != before[0]

    async def test_reading_and_refused_writing_change_no_version(
        self, store: RunStore, second: RunStore
    ) -> None:
        gear = await new_run(store)
        before = await second.version()
        assert not await store.commit(Commit(gear.run, 7, 0.0, events=[said("never")]))
        await store.take(gear.run)
        await store.due(gear.scope("a"))
        assert await second.version() == before

    async def test_two_processes_commits_never_fork_a_ledger(
        self, store: RunStore, second: RunStore
    ) -> None:
        gear = await new_run(store)
        stores = (store, second)
        won: list[list[int]] = [[], []]

        async def append(who: int) -> None:
            while len(won[who]) < 30:
                seq = (await stores[who].ledger(gear.run))[-1:]
                last = seq[0].seq if seq else 0
                commit = Commit(gear.run, last, 0.0, events=[said("by", who=who)])
                if await stores[who].commit(commit):
                    won[who].append(last + 1)

        await asyncio.gather(append(0), append(1))
        events = await second.ledger(gear.run)
        assert [event.seq for event in events] == list(range(1, 61))
        for who in (0, 1):
            assert [e.seq for e in events if e.data["who"] == who] == won[who]

    async def test_one_of_two_processes_claims(self, store: RunStore, second: RunStore) -> None:
        gear = await new_run(store)
        for i in range(20):
            await gear.send(f"s{i}")
            claims = [
                each.claim(AttemptId(gear.run, f"s{i}", 1, name), lease_s=LEASE_S)
                for name, each in (("w1", store), ("w2", second))
            ]
            assert sorted(await asyncio.gather(*claims)) == [False, True]

    async def test_two_processes_share_one_budget(self, store: RunStore, second: RunStore) -> None:
        gear = await new_run(store, budget=Budget(llm_calls=10))
        attempts = [await gear.claim(f"s{i}") for i in range(16)]
        verdicts = await asyncio.gather(
            *(
                (store, second)[i % 2].record(
                    attempt, 0, [entry("x")], lease_s=LEASE_S, reserve=Reserve(llm_calls=1)
                )
                for i, attempt in enumerate(attempts)
            )
        )
        assert sorted(verdicts) == ["ok"] * 10 + ["over_budget"] * 6

    async def test_an_expiry_by_one_is_void_once_the_other_has_beaten(
        self, store: RunStore, second: RunStore
    ) -> None:
        gear = await new_run(store)
        attempt = await gear.claim(lease_s=LAPSED_S)
        assert [a.lapsed for a in await gear.seen_by(second).open_attempts()] == [True]
        assert await store.record(attempt, 0, [], lease_s=LEASE_S) == "ok"
        expiry = {"still_lapsed": [("s", 1)], "closed": [("s", 1)]}
        assert not await gear.seen_by(second).commit(said("attempt.expired"), **expiry)
