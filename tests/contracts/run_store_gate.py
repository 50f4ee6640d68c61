"""What every run store promises of attempts: claims, leases, the gate, budgets and outcomes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agents.journal import EffectMark, Reserve
from agents.usage import Budget, Usage
from orchestrator.facts import Ended
from orchestrator.store.base import AttemptId, RunStore
from orchestrator.store.errors import StoreError
from tests.contracts.run_store_gear import LAPSED_S, LEASE_S, RunGear, ended, entry, new_run

CALL = Reserve(llm_calls=1)


async def beat(gear: RunGear, *attempts: AttemptId, lease_s: float = LEASE_S) -> list[str]:
    verdicts = await gear.store.beat("w", gear.scope("a"), attempts=attempts, lease_s=lease_s)
    return [str(verdict) for verdict in verdicts]


class GateContract:
    """Attempts and the gate; part of ``RunStoreContract``."""

    # --- claims and leases

    async def test_only_one_of_many_workers_claims_an_attempt(self, store: RunStore) -> None:
        gear = await new_run(store)
        await gear.send()
        workers = [AttemptId(gear.run, "s", 1, f"w{i}") for i in range(8)]
        won = await asyncio.gather(*(store.claim(w, lease_s=LEASE_S) for w in workers))
        assert sorted(won) == [False] * 7 + [True]
        again = await asyncio.gather(*(store.claim(w, lease_s=LEASE_S) for w in workers))
        assert again == won, "a claim is repeated for one's own attempt, and for no other"

    async def test_what_was_not_sent_is_not_claimed(self, store: RunStore) -> None:
        gear = await new_run(store)
        await gear.ready()
        for attempt in (1, 2):
            assert not await store.claim(AttemptId(gear.run, "s", attempt, "w"), lease_s=LEASE_S)

    async def test_a_closed_attempt_is_not_claimed(self, store: RunStore) -> None:
        gear = await new_run(store)
        attempt = await gear.claim()
        await gear.close(attempt)
        assert not await store.claim(attempt, lease_s=LEASE_S)

    async def test_an_attempt_that_is_to_stop_is_not_claimed(self, store: RunStore) -> None:
        gear = await new_run(store)
        await gear.send()
        attempt = AttemptId(gear.run, "s", 1, "w")
        await gear.cancel(attempt)
        assert not await store.claim(attempt, lease_s=LEASE_S)

    async def test_a_heartbeat_prolongs_the_lease_of_each_attempt(self, store: RunStore) -> None:
        gear = await new_run(store)
        mine = [await gear.claim(name, lease_s=LAPSED_S) for name in "xyz"]
        assert [a.lapsed for a in await gear.open_attempts()] == [True] * 3
        await gear.close(mine[1])
        foreign = replace(mine[0], worker="other")
        assert await beat(gear, *mine, foreign) == ["ok", "fenced", "ok", "fenced"]
        assert [a.lapsed for a in await gear.open_attempts()] == [False, False]

    async def test_no_heartbeat_prolongs_an_attempt_that_is_to_stop(self, store: RunStore) -> None:
        gear = await new_run(store)
        attempt = await gear.claim(lease_s=LAPSED_S)
        await gear.cancel(attempt)
        assert await beat(gear, attempt) == ["cancelled"]
        assert await store.record(attempt, 0, [], lease_s=LEASE_S) == "cancelled"
        assert [a.lapsed for a in await gear.open_attempts()] == [True]

    async def test_passing_the_gate_prolongs_the_lease(self, store: RunStore) -> None:
        gear = await new_run(store)
        attempt = await gear.claim(lease_s=LAPSED_S)
        assert await store.record(attempt, 0, [], lease_s=LEASE_S) == "ok"
        assert [a.lapsed for a in await gear.open_attempts()] == [False]

    async def test_an_unclaimed_attempt_never_lapses(self, store: RunStore) -> None:
        gear = await new_run(store)
        await gear.send(since=1e6)
        assert [a.lapsed for a in await gear.open_attempts()] == [False]

    # --- the journal and its fence

    async def test_a_journal_is_read_as_it_was_written(self, store: RunStore) -> None:
        gear = await new_run(store)
        attempt = await gear.claim()
        lines = [entry("前"), entry("cut \ud83d"), entry("c")]
        assert await store.record(attempt, 0, lines[:2], lease_s=LEASE_S) == "ok"
        assert await store.record(attempt, 2, lines[2:], lease_s=LEASE_S) == "ok"
        assert await store.journal(gear.run, "s", generation=0) == lines
        assert await store.journal(gear.run, "other") == []

    async def test_each_generation_has_a_journal_of_its_own(self, store: RunStore) -> None:
        gear = await new_run(store)
        first = await gear.claim()
        second = replace(first, generation=1)
        for attempt, text in ((second, "second"), (first, "first")):
            assert await store.record(attempt, 0, [entry(text)], lease_s=LEASE_S) == "ok"
        assert await store.journal(gear.run, "s", generation=1) == [entry("second")]
        assert await store.journal(gear.run, "s") == [entry("first"), entry("second")]

    @pytest.mark.parametrize("why", ["worker", "number", "closed"])
    async def test_a_fenced_attempt_writes_nothing_but_what_it_spent(
        self, store: RunStore, why: str
    ) -> None:
        gear = await new_run(store, budget=Budget(llm_calls=2))
        attempt = await gear.claim()
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=CALL) == "ok"
        late = attempt
        match why:
            case "worker":
                late = replace(attempt, worker="other")
            case "number":
                late = replace(attempt, attempt=2)
            case _:
                await gear.close(attempt)
        spent = Usage(1, 0, 10, 5, 2, 0.25)
        mark = EffectMark("k", "done", {})
        assert await store.record(
            late, 0, [entry("late")], lease_s=LEASE_S, settle=spent, reserve=CALL, effects=[mark]
        ) == "fenced"  # fmt: skip
        assert await store.journal(gear.run, "s") == []
        assert await store.effects(gear.run, "s") == {}
        assert await store.usage(gear.run) == spent

    async def test_what_a_fenced_attempt_had_reserved_is_not_counted_twice(
        self, store: RunStore
    ) -> None:
        gear = await new_run(store, budget=Budget(llm_calls=2))
        attempt = await gear.claim()
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=CALL) == "ok"
        await gear.close(attempt)
        spent = Usage(llm_calls=1)
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, settle=spent) == "fenced"
        other = await gear.claim("other")
        reserved = [
            await store.record(other, 0, [], lease_s=LEASE_S, reserve=CALL) for _ in range(2)
        ]
        assert reserved == ["ok", "over_budget"]

    async def test_a_cancelled_attempt_writes_nothing_but_what_it_spent(
        self, store: RunStore
    ) -> None:
        gear = await new_run(store)
        attempt = await gear.claim()
        await gear.cancel(attempt)
        spent = Usage(llm_calls=1)
        said = await store.record(attempt, 0, [entry("x")], lease_s=LEASE_S, settle=spent)
        assert said == "cancelled"
        assert await store.journal(gear.run, "s") == []
        assert await store.usage(gear.run) == spent

    async def test_another_attempts_line_at_this_position_fences(self, store: RunStore) -> None:
        gear = await new_run(store)
        first = await gear.claim()
        assert await store.record(first, 0, [entry("a"), entry("b")], lease_s=LEASE_S) == "ok"
        again = {"announced": [("s", 2, "a")], "sent": [("s", 2)], "closed": [("s", 1)]}
        assert await gear.commit(**again)
        second = AttemptId(gear.run, "s", 2, "w2")
        assert await store.claim(second, lease_s=LEASE_S)
        assert await store.record(second, 1, [entry("b")], lease_s=LEASE_S) == "fenced"
        assert await store.record(second, 2, [entry("c")], lease_s=LEASE_S) == "ok"
        assert await store.journal(gear.run, "s") == [entry(text) for text in "abc"]

    async def test_a_repeated_call_whose_answer_was_lost_doubles_nothing(
        self, store: RunStore
    ) -> None:
        gear = await new_run(store, budget=Budget(llm_calls=3))
        attempt = await gear.claim()
        spent = Usage(1, 0, 10, 5, 0, 0.5)
        assert await store.record(attempt, 0, [entry("a")], lease_s=LEASE_S, reserve=CALL) == "ok"
        for _ in range(3):
            assert await store.record(
                attempt, 1, [entry("b"), entry("c")], lease_s=LEASE_S, settle=spent, reserve=CALL,
                effects=[EffectMark("k", "intent")],
            ) == "ok"  # fmt: skip
        assert await store.journal(gear.run, "s") == [entry(text) for text in "abc"]
        assert await store.usage(gear.run) == spent
        left = [await store.record(attempt, 3, [], lease_s=LEASE_S, reserve=CALL) for _ in "12"]
        assert left == ["ok", "over_budget"]

    async def test_a_repeated_call_that_was_over_budget_still_is(self, store: RunStore) -> None:
        gear = await new_run(store, budget=Budget(llm_calls=0))
        attempt = await gear.claim()
        for _ in range(2):
            verdict = await store.record(attempt, 0, [entry("a")], lease_s=LEASE_S, reserve=CALL)
            assert verdict == "over_budget"
        assert await store.journal(gear.run, "s") == [entry("a")]

    async def test_one_position_does_not_take_two_lines(self, store: RunStore) -> None:
        gear = await new_run(store)
        attempt = await gear.claim()
        assert await store.record(attempt, 0, [entry("a")], lease_s=LEASE_S) == "ok"
        spent = Usage(llm_calls=1)
        for lines in ([entry("b")], [entry("a"), entry("b")]):
            with pytest.raises(StoreError, match="out of order"):
                await store.record(attempt, 0, lines, lease_s=LEASE_S, settle=spent)
        assert await store.journal(gear.run, "s") == [entry("a")]
        assert await store.usage(gear.run) == Usage()

    # --- the budget

    async def test_over_budget_keeps_the_entries_and_refuses_the_reservation(
        self, store: RunStore
    ) -> None:
        gear = await new_run(store, budget=Budget(llm_calls=1))
        attempt = await gear.claim()
        two = Reserve(llm_calls=2)
        verdict = await store.record(attempt, 0, [entry("a")], lease_s=LEASE_S, reserve=two)
        assert verdict == "over_budget"
        assert await store.journal(gear.run, "s") == [entry("a")]
        assert await store.record(attempt, 1, [], lease_s=LEASE_S, reserve=CALL) == "ok"

    @pytest.mark.parametrize(
        ("budget", "reserve"),
        [
            (Budget(llm_calls=10), Reserve(llm_calls=1)),
            (Budget(tool_calls=10), Reserve(tool_calls=1)),
            (Budget(tokens=1_000), Reserve(llm_calls=1, tokens=100)),
            (Budget(usd=0.3), Reserve(usd=0.03)),
        ],
        ids=["llm_calls", "tool_calls", "tokens", "usd"],
    )
    async def test_of_sixteen_concurrent_reservations_ten_fit_a_budget_of_ten(
        self, store: RunStore, budget: Budget, reserve: Reserve
    ) -> None:
        gear = await new_run(store, budget=budget)
        attempts = [await gear.claim(f"s{i}") for i in range(16)]
        verdicts = await asyncio.gather(
            *(store.record(a, 0, [entry("x")], lease_s=LEASE_S, reserve=reserve) for a in attempts)
        )
        assert sorted(verdicts) == ["ok"] * 10 + ["over_budget"] * 6

    async def test_a_spent_budget_of_one_kind_does_not_stop_calls_of_another(
        self, store: RunStore
    ) -> None:
        gear = await new_run(store, budget=Budget(llm_calls=1, tokens=1))
        attempt = await gear.claim()
        spent = Usage(2, 0, 9, 9)  # more than there was
        reserve = Reserve(tool_calls=1)
        said = await store.record(attempt, 0, [], lease_s=LEASE_S, settle=spent, reserve=reserve)
        assert said == "ok"
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=CALL) == "over_budget"

    async def test_a_reservation_is_settled_once(self, store: RunStore) -> None:
        gear = await new_run(store, budget=Budget(llm_calls=2))
        attempt = await gear.claim()
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=CALL) == "ok"
        for _ in range(2):  # the second call was never reserved
            spent = Usage(llm_calls=1)
            assert await store.record(attempt, 0, [], lease_s=LEASE_S, settle=spent) == "ok"
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=CALL) == "over_budget"

    async def test_settling_gives_back_what_was_not_spent(self, store: RunStore) -> None:
        gear = await new_run(store, budget=Budget(tokens=1_000, usd=1.0))
        attempt = await gear.claim()
        most = Reserve(llm_calls=1, tokens=900, usd=0.9)
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=most) == "ok"
        spent = Usage(1, 0, 80, 20, 0, 0.1)
        for _ in range(2):  # settles and reserves in one call
            verdict = await store.record(
                attempt, 0, [], lease_s=LEASE_S, settle=spent, reserve=replace(most, tokens=800,
                                                                              usd=0.8)
            )  # fmt: skip
            assert verdict == "ok"
        assert await store.usage(gear.run) == Usage(2, 0, 160, 40, 0, 0.2)
        rest = Reserve(tokens=1)
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=rest) == "over_budget"

    @pytest.mark.parametrize("spent", [Usage(1, 0, None, 5), Usage(1, 0, 5, None)])
    async def test_unknown_tokens_stay_spent(self, store: RunStore, spent: Usage) -> None:
        gear = await new_run(store, budget=Budget(tokens=1_000))
        attempt = await gear.claim()
        most = Reserve(llm_calls=1, tokens=600)
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=most) == "ok"
        said = await store.record(attempt, 0, [], lease_s=LEASE_S, settle=spent, reserve=most)
        assert said == "over_budget"
        total = await store.usage(gear.run)
        assert (total.input_tokens, total.output_tokens) == (
            spent.input_tokens,
            spent.output_tokens,
        )

    async def test_an_unknown_cost_stays_spent_and_unknown(self, store: RunStore) -> None:
        gear = await new_run(store, budget=Budget(usd=1.0))
        attempt = await gear.claim()
        most = Reserve(llm_calls=1, usd=0.6)
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=most) == "ok"
        said = await store.record(
            attempt, 0, [], lease_s=LEASE_S, settle=Usage(1, cost_usd=None), reserve=most
        )
        assert said == "over_budget"
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, settle=Usage(1)) == "ok"
        assert (await store.usage(gear.run)).cost_usd is None

    async def test_a_call_that_cost_more_than_reserved_is_counted_in_full(
        self, store: RunStore
    ) -> None:
        gear = await new_run(store, budget=Budget(tokens=100))
        attempt = await gear.claim()
        few = Reserve(llm_calls=1, tokens=10)
        assert await store.record(attempt, 0, [], lease_s=LEASE_S, reserve=few) == "ok"
        spent = Usage(1, 0, 100, 50)
        said = await store.record(attempt, 0, [], lease_s=LEASE_S, settle=spent, reserve=few)
        assert said == "over_budget"
        assert await store.usage(gear.run) == spent

    # --- effects and outcomes

    async def test_an_effects_latest_step_is_known_to_later_generations(
        self, store: RunStore
    ) -> None:
        gear = await new_run(store)
        attempt = await gear.claim()
        steps = [
            (attempt, EffectMark("k", "intent")),
            (attempt, EffectMark("k", "unknown")),
            (replace(attempt, generation=1), EffectMark("k", "done", {"data": "済"})),
            (replace(attempt, generation=1), EffectMark("other", "intent")),
        ]
        for n, (who, mark) in enumerate(steps):
            assert await store.record(who, n, [], lease_s=LEASE_S, effects=[mark]) == "ok"
        assert await store.effects(gear.run, "s") == {"k": steps[2][1], "other": steps[3][1]}
        assert await store.effects(gear.run, "another") == {}

    @pytest.mark.parametrize("stopping", [False, True])
    async def test_an_outcome_is_an_inbox_row_with_its_blobs(
        self, store: RunStore, stopping: bool
    ) -> None:
        gear = await new_run(store)
        await gear.take_all()
        attempt = await gear.claim()
        if stopping:
            await gear.cancel(attempt)
        fact = ended(attempt)
        for _ in range(2):  # again, as after a lost answer
            assert await store.finish(attempt, fact, blobs={"f00": b'"out"'}) == "ok"
        [(_, found)] = (await store.take(gear.run)).inbox
        assert isinstance(found, Ended)
        assert replace(found, time=fact.time) == fact
        assert await store.blob("f00") == b'"out"'

    @pytest.mark.parametrize("why", ["worker", "closed"])
    async def test_a_fenced_outcome_leaves_nothing(self, store: RunStore, why: str) -> None:
        gear = await new_run(store)
        await gear.take_all()
        attempt = await gear.claim()
        if why == "closed":
            await gear.close(attempt)
        else:
            attempt = replace(attempt, worker="other")
        assert await store.finish(attempt, ended(attempt), blobs={"f00": b"x"}) == "fenced"
        assert (await store.take(gear.run)).inbox == []
        with pytest.raises(KeyError):
            await store.blob("f00")
