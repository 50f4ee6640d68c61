"""What every run store promises of sweeping: what is due, for whom, and how often."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.facts import CancelAsked
from orchestrator.store.base import RunStore, Scope
from tests.contracts.run_store_gear import LAPSED_S, Age, RunGear, new_run, past, said


async def quiet_run(store: RunStore, *, mode: str = "orchestration") -> RunGear:
    """Return a run of which nothing is due."""
    gear = await new_run(store, mode=mode)
    await gear.take_all()
    await publish_all(gear)
    return gear


async def publish_all(gear: RunGear) -> None:
    start = await gear.store.published(gear.run)
    await gear.store.mark_published(gear.run, start=start, end=await gear.seq())


async def advances(gear: RunGear) -> bool:
    return (await gear.store.due(gear.scope())).advance == (gear.run,)


async def serve(gear: RunGear, worker: str = "w", *agents: str) -> None:
    await gear.store.beat(worker, gear.scope(*agents), attempts=[], lease_s=30.0)


class SweepContract:
    """Sweeps and timers; part of ``RunStoreContract``."""

    async def test_nothing_is_due_of_a_quiet_run(self, store: RunStore) -> None:
        gear = await quiet_run(store)
        due = await store.due(gear.scope("a"))
        assert (due.advance, due.publish, due.resend, due.roots) == ((), (), (), ())

    async def test_present_are_the_agents_that_live_workers_of_the_mode_serve(
        self, store: RunStore, age: Age
    ) -> None:
        gear = await quiet_run(store)
        other = Scope(gear.pipeline_hash, "choreography")
        await serve(gear, "old", "a")
        await age(31)
        await serve(gear, "w", "b")
        await serve(gear, "gone", "c")
        await store.leave("gone")
        assert await store.present(gear.scope(), within_s=30) == {"b"}
        assert await store.present(gear.scope(), within_s=60) == {"a", "b"}
        assert await store.present(other, within_s=60) == set()

    async def test_a_run_with_an_inbox_is_due_even_when_it_has_ended(self, store: RunStore) -> None:
        gear = await quiet_run(store)
        assert await gear.commit(said("run.completed"), final="completed")
        assert not await advances(gear)
        await store.put(gear.run, CancelAsked(0, "late"))
        assert await advances(gear)
        await gear.take_all()
        assert not await advances(gear)

    async def test_a_run_with_a_timer_in_the_past_is_due(self, store: RunStore) -> None:
        gear = await quiet_run(store)
        assert await gear.commit(said("x"), timers=[past()])
        assert await advances(gear)
        assert await gear.commit(said("x"), fired=[past()])
        assert not await advances(gear)

    async def test_a_run_with_a_lapsed_lease_is_due(self, store: RunStore, age: Age) -> None:
        gear = await quiet_run(store)
        await serve(gear, "w", "a")
        attempt = await gear.claim(lease_s=30)
        assert not await advances(gear)
        await age(31)
        assert await advances(gear)
        await gear.close(attempt)
        assert not await advances(gear)

    @pytest.mark.parametrize("sent", [True, False])
    async def test_a_run_is_due_when_nobody_served_an_agent_for_the_grace(
        self, store: RunStore, age: Age, sent: bool
    ) -> None:
        gear = await quiet_run(store, mode="choreography")
        await (gear.send() if sent else gear.ready())
        await age(59)
        assert not await advances(gear)
        await age(2)
        assert await advances(gear)
        assert [a.unserved for a in await gear.open_attempts()] == [True]
        await serve(gear, "w", "b")
        assert await advances(gear), "b's worker is none of a's"
        elsewhere = Scope(gear.pipeline_hash, "orchestration", ("a",))
        await store.beat("other mode", elsewhere, attempts=[], lease_s=30.0)
        assert await advances(gear), "a worker of the other mode does not take it"
        await serve(gear, "w", "a")
        assert not await advances(gear), "busy is not unroutable"
        assert [a.unserved for a in await gear.open_attempts()] == [False]
        await age(61)
        assert await advances(gear), "the worker was not heard of for the grace"

    async def test_a_worker_that_leaves_serves_no_longer(self, store: RunStore) -> None:
        gear = await quiet_run(store, mode="choreography")
        await gear.send(since=61)
        for worker in ("w1", "w2"):
            await serve(gear, worker, "a", "b")
        for worker in ("stranger", "w1", "w1"):
            await store.leave(worker)
            assert not await advances(gear)
        await store.leave("w2")
        assert await advances(gear)

    async def test_what_is_ready_is_due_for_an_orchestrator_alone(self, store: RunStore) -> None:
        for mode, due in (("orchestration", True), ("choreography", False)):
            gear = await quiet_run(store, mode=mode)
            await gear.ready()
            assert await advances(gear) is due

    async def test_an_ended_run_has_no_timers_leases_or_resends(self, store: RunStore) -> None:
        gear = await quiet_run(store)
        await gear.claim(lease_s=LAPSED_S)
        await gear.send("t", since=100)
        assert await gear.commit(said("run.failed"), final="failed")
        due = await store.due(gear.scope("a"))
        assert (due.advance, due.resend) == ((), ())

    async def test_committed_but_unpublished_runs_are_due(self, store: RunStore) -> None:
        gear = await quiet_run(store)
        assert await gear.commit(said("run.completed"), final="completed")
        assert (await store.due(gear.scope())).publish == (gear.run,)
        await publish_all(gear)
        assert (await store.due(gear.scope())).publish == ()

    async def test_a_root_is_exported_by_one_process(self, store: RunStore) -> None:
        gear = await quiet_run(store)
        assert not await store.root_exported(gear.run), "the run has not ended"
        assert await gear.commit(said("run.completed"), final="completed")
        assert (await store.due(gear.scope())).roots == (gear.run,)
        exported = await asyncio.gather(*(store.root_exported(gear.run) for _ in range(4)))
        assert sorted(exported) == [False] * 3 + [True]
        assert (await store.due(gear.scope())).roots == ()

    async def test_unclaimed_work_is_sent_again_at_doubling_intervals(
        self, store: RunStore, age: Age
    ) -> None:
        gear = await quiet_run(store)
        await gear.send()
        # Half a second of slack: the clock runs on while the test does.
        for interval in (1, 2, 4, 8, 16, 32, 60, 60):
            await age(interval - 0.5)
            assert (await store.due(gear.scope("a"))).resend == (), interval
            await age(0.5)
            [again] = (await store.due(gear.scope("a"))).resend
            assert (again.run, again.subtask, again.attempt) == (gear.run, "s", 1)
            assert (again.agent, again.state) == ("a", "sent")

    async def test_one_process_sends_again_what_two_find(self, store: RunStore, age: Age) -> None:
        gear = await quiet_run(store)
        await gear.send()
        await age(2)
        found = await asyncio.gather(*(store.due(gear.scope("a")) for _ in range(4)))
        assert sum(len(due.resend) for due in found) == 1

    async def test_only_hosted_agents_unclaimed_attempts_are_sent_again(
        self, store: RunStore, age: Age
    ) -> None:
        gear = await quiet_run(store, mode="choreography")
        await gear.claim("claimed", lease_s=1e6)
        await gear.close(await gear.claim("closed"))
        await gear.send("mine")
        await gear.ready("ready")
        await gear.send("other", agent="b")
        await age(5)
        again = (await store.due(gear.scope("a", "c"))).resend
        assert sorted((r.subtask, r.state) for r in again) == [("mine", "sent"), ("ready", "ready")]
        assert [r.subtask for r in (await store.due(gear.scope("b"))).resend] == ["other"]

    async def test_a_dispatch_starts_the_intervals_again(self, store: RunStore, age: Age) -> None:
        gear = await quiet_run(store, mode="choreography")
        await gear.ready()
        for _ in range(4):
            await age(20)
            assert (await store.due(gear.scope("a"))).resend
        assert await gear.commit(said("subtask.dispatched"), sent=[("s", 1)])
        await age(1)
        assert [r.state for r in (await store.due(gear.scope("a"))).resend] == ["sent"]

    async def test_other_pipelines_and_modes_are_left_to_others(self, store: RunStore) -> None:
        gear = await quiet_run(store)
        other = await new_run(store, mode="choreography", pipeline_hash=gear.pipeline_hash)
        await gear.claim(lease_s=LAPSED_S)
        assert await gear.commit(said("run.failed"), final="failed")
        await store.put(gear.run, CancelAsked(0, "x"))
        due = await store.due(other.scope("a"))
        assert (due.advance, due.publish, due.resend, due.roots) == ((other.run,), (), (), ())
        stranger = await new_run(store)
        due = await store.due(stranger.scope("a"))
        assert (due.advance, due.publish, due.resend, due.roots) == ((stranger.run,), (), (), ())
