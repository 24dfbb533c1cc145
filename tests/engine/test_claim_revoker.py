"""A worker is told when another process ends its claim: by a wake, or else by the sweep."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import make
import pytest
import rows
from ears import ear
from stages import Workbench, workbench

from horai.core.outcome import Accepted, Complete, Release, Succeeded
from horai.core.states import State
from horai.core.wakes import OutcomeWake, Wake
from horai.db import claims
from horai.db.claims import Claim
from horai.db.pool import Platform
from horai.engine.claim_revoker import ClaimRevoker
from horai.engine.dispatch.dispatcher import Dispatcher
from horai.operations import instances
from horai.operations.instances import Item
from horai.operations.outcome import report_outcome
from horai.operations.scope import Scope

KEY = "article:42"
SWEEP = timedelta(seconds=31)
HOUR = timedelta(hours=1)

End = Callable[[Scope, Claim], Awaitable[object]]
ENDS: dict[str, End] = {
    "cancel by id": lambda scope, held: instances.cancel_by_id(scope, held.id),
    "cancel by key": lambda scope, _: instances.cancel_by_key(scope, "publish", KEY),
    "put": lambda scope, _: make.put(scope, KEY, datetime.now(UTC) + HOUR),
    "batch": lambda scope, _: instances.insert_batch(scope, "publish", [Item(datetime.now(UTC) + HOUR, None, KEY)]),
    "report": lambda scope, held: report_outcome(scope, held.id, held.fence, Succeeded()),
}
ends = pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())


def passed_on(scope: Scope) -> list[Wake]:
    """Collect the wakes that are passed on to other processes from now on."""
    told: list[Wake] = []
    scope.wakeups.pass_on_to(told.append)
    return told


def endings(told: list[Wake]) -> list[Wake]:
    return [wake for wake in told if isinstance(wake, OutcomeWake)]


# Who is told


@ends
async def test_ending_a_running_instance_publishes_an_outcome_wake_here_and_to_other_processes(
    url: str, connection: Platform, end: End
):
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection, KEY)).held
        here, elsewhere = list[tuple[int, int]](), passed_on(scope)
        scope.wakeups.subscribe(OutcomeWake, lambda wake: here.append((wake.instance_id, wake.fence)))

        await end(scope, held)

        assert here == [(held.id, held.fence)]
        assert endings(elsewhere) == [OutcomeWake(held.id, held.fence)]


@ends
async def test_ending_an_instance_that_does_not_run_publishes_no_outcome_wake(url: str, end: End):
    async with make.scope(url) as scope:
        await make.job(scope)
        _, row = await make.put(scope, KEY, datetime.now(UTC) + HOUR)
        elsewhere = passed_on(scope)

        if end is not ENDS["report"]:
            await end(scope, Claim(row.id, row.job_id, 0, 0, 0, 0))

        assert endings(elsewhere) == []


async def test_a_batch_tells_of_each_that_it_supersedes(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        for number in range(5):
            await make.put(scope, f"key-{number}")
        running = await make.claim(connection, await make.node(connection))
        elsewhere = passed_on(scope)

        await instances.insert_batch(scope, "publish", [Item(None, None, f"key-{number}") for number in range(7)])

        assert set(endings(elsewhere)) == {OutcomeWake(row.held.id, row.held.fence) for row in running}


SQL = {
    "put": "select horai.put_instance('publish', $1, clock_timestamp() + interval '1 hour', null)",
    "cancel": "select horai.cancel_instance('publish', $1)",
}


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("statement", SQL.values(), ids=SQL.keys())
async def test_sql_in_the_callers_transaction_tells_with_their_commit_and_never_without(
    url: str, connection: Platform, runner: asyncio.Runner, statement: str, commits: bool
):
    async with make.scope(url) as scope, rows.connections(url, 1) as (caller,), ear(url) as listening:
        await make.job(scope)
        held = (await make.running(scope, connection, KEY)).held
        transaction = caller.transaction()
        await transaction.start()
        await caller.execute(statement, KEY)
        assert endings(await listening.wakes()) == []

        await (transaction.commit() if commits else transaction.rollback())

        assert endings(await listening.wakes()) == ([OutcomeWake(held.id, held.fence)] if commits else [])


# The row is asked before its holder is told


class Told:
    """A recall over the workbench's hands, and whom it has told of."""

    def __init__(self, bench: Workbench) -> None:
        self.claim_revoker = ClaimRevoker(bench.line("claim_revoker"), bench.in_flight)
        self.claims: list[tuple[int, int]] = []
        self.claim_revoker.listen(lambda *claim: self.claims.append(claim))
        bench.scope.wakeups.subscribe(OutcomeWake, self.claim_revoker.hear)


async def in_hand(bench: Workbench, count: int = 1) -> tuple[Dispatcher, list[Claim]]:
    """Calls that have begun."""
    await make.job(bench.scope)
    for number in range(count):
        await make.put(bench.scope, KEY if number == 0 else f"{KEY}-{number}")
    dispatcher = bench.dispatcher()
    await bench.until_idle(dispatcher)
    await bench.called(count)
    return dispatcher, [held for claim in sorted(bench.in_flight.known()) if (held := bench.in_flight.find(*claim))]


async def let_go(bench: Workbench) -> None:
    bench.executor.gate.set()
    await bench.settle()


@ends
async def test_a_holder_is_told_that_its_claim_is_over(url: str, end: End):
    async with workbench(url) as bench:
        _, (held,) = await in_hand(bench)
        told = Told(bench)

        await end(bench.scope, held)
        assert told.claim_revoker.signal.is_set()
        await told.claim_revoker.step(bench.clock.now())

        assert told.claims == [(held.id, held.fence)]
        await let_go(bench)


async def test_an_outcome_wake_alone_does_not_revoke_a_claim_that_still_runs(url: str):
    async with workbench(url) as bench:
        _, (held,) = await in_hand(bench)
        told = Told(bench)

        bench.scope.wakeups.deliver(OutcomeWake(held.id, held.fence))
        await told.claim_revoker.step(bench.clock.now())

        assert told.claims == []
        await let_go(bench)


async def test_the_claim_revoker_makes_no_query_for_claims_that_are_not_in_flight(url: str):
    async with workbench(url) as bench:
        _, (held,) = await in_hand(bench)
        told = Told(bench)
        tap = await bench.tap(told.claim_revoker.line)

        for number in range(100):
            bench.scope.wakeups.deliver(OutcomeWake(held.id, held.fence + 1 + number))
            bench.scope.wakeups.deliver(OutcomeWake(10**9 + number, held.fence))
        await told.claim_revoker.step(bench.clock.now())

        assert not told.claim_revoker.signal.is_set()
        assert await tap.names() == []
        await let_go(bench)


async def test_many_that_end_at_once_are_asked_after_together(url: str):
    async with workbench(url) as bench:
        _, found = await in_hand(bench, 30)
        told = Told(bench)
        tap = await bench.tap(told.claim_revoker.line)
        for held in found[:20]:
            await instances.cancel_by_id(bench.scope, held.id)
        for held in found[20:]:
            bench.scope.wakeups.deliver(OutcomeWake(held.id, held.fence))

        await told.claim_revoker.step(bench.clock.now())

        assert sorted(told.claims) == sorted((held.id, held.fence) for held in found[:20])
        assert await tap.names() == ["ended_claims"]
        await let_go(bench)


async def test_a_look_that_failed_is_made_again(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        _, (held,) = await in_hand(bench)
        told = Told(bench)
        await instances.cancel_by_id(bench.scope, held.id)

        async def fails(*_: object) -> set[tuple[int, int]]:
            raise ConnectionResetError("gone")

        monkeypatch.setattr(claims, "ended_claims", fails)
        with pytest.raises(ConnectionResetError):
            await told.claim_revoker.step(bench.clock.now())
        monkeypatch.undo()
        await told.claim_revoker.step(bench.clock.now())

        assert told.claims == [(held.id, held.fence)]
        await let_go(bench)


# No wake came: the sweep


@ends
async def test_a_claim_that_was_ended_without_a_wake_is_found_by_the_sweep(url: str, end: End):
    async with workbench(url) as bench, make.scope(url) as deaf:
        dispatcher, (held,) = await in_hand(bench)
        told, sweeper, elsewhere = Told(bench), bench.sweeper(dispatcher), passed_on(bench.scope)
        now = bench.clock.now()
        await end(deaf, held)

        await sweeper.step(now + SWEEP)
        await told.claim_revoker.step(now + SWEEP)

        assert told.claims == [(held.id, held.fence)]
        assert endings(elsewhere) == [], "no other node holds it"
        await let_go(bench)


async def test_a_sweep_asks_only_after_what_has_run_for_longer_than_a_sweep(url: str):
    async with workbench(url, sweep=timedelta(seconds=30)) as bench, make.scope(url) as deaf:
        dispatcher, (held,) = await in_hand(bench)
        told, sweeper = Told(bench), bench.sweeper(dispatcher)
        sweeper._swept_at -= SWEEP
        await instances.cancel_by_id(deaf, held.id)
        now = bench.clock.now()

        tap = await bench.tap(sweeper.line)
        await sweeper.step(now)
        assert "ended_claims" not in await tap.names()
        await sweeper.step(now + SWEEP)
        assert (await tap.names()).count("ended_claims") == 1
        await told.claim_revoker.step(now)

        assert told.claims == [(held.id, held.fence)]
        await let_go(bench)


async def test_a_sweep_says_nothing_of_what_still_runs(url: str):
    async with workbench(url) as bench:
        dispatcher, _ = await in_hand(bench, 3)
        heard: list[tuple[int, int]] = []
        bench.scope.wakeups.subscribe(OutcomeWake, lambda wake: heard.append((wake.instance_id, wake.fence)))

        await bench.sweeper(dispatcher).step(bench.clock.now() + SWEEP)

        assert heard == []
        await let_go(bench)
        assert await bench.states() == {"SUCCESS": 3}


# The database's word


async def test_a_claim_is_over_when_its_row_is_not_its_own_any_more(connection: Platform):
    mine, done, released = [await rows.instance(connection, State.RUNNING) for _ in range(3)]
    waiting = await rows.instance(connection, State.INIT)
    await claims.finish_if_running(connection, rows.NODE, [(done, Complete())])
    await claims.release_if_running(connection, [(released, Release())])
    others = [mine._replace(fence=4), mine._replace(attempt=4), mine._replace(node=8)]

    assert await claims.ended_claims(connection, [mine]) == set()
    assert await claims.ended_claims(connection, [mine, done, released, waiting]) == {
        (held.id, held.fence) for held in (done, released, waiting)
    }
    for other in others:
        assert await claims.ended_claims(connection, [other]) == {(other.id, other.fence)}


# 202 Accepted: the target's work goes on, in any state of the row


async def test_A13_a_cancelled_call_that_was_accepted_keeps_its_slot_while_the_target_may_be_at_it(url: str):
    async with workbench(url) as bench:
        await bench.set_queue(max_concurrency=1)
        bench.executor.answer = lambda _: Accepted(HOUR)
        bench.executor.gate.set()
        dispatcher, (held,) = await in_hand(bench)
        attempts = dispatcher.parts.attempts
        bench.scope.wakeups.subscribe(OutcomeWake, attempts.hear)
        tap = await bench.tap(attempts._line)

        await instances.cancel_by_id(bench.scope, held.id)

        async def has_looked() -> bool:
            return await tap.names() == ["is_awaited"]

        await rows.until(has_looked)
        await bench.settler.step(bench.clock.now())
        taken = "select count(*) from horai.queue_slot where instance_id is not null"
        assert await bench.connection.fetchval(taken) == 1
        await attempts.break_off()
        await bench.settle()
        assert await bench.connection.fetchval(taken) == 0
        assert await bench.states() == {"CANCELLED": 1}


async def test_a_cancelled_accepted_call_leaves_in_flight_without_a_late_result(url: str):
    async with workbench(url) as bench:
        bench.executor.answer = lambda _: Accepted(timedelta(milliseconds=300))
        bench.executor.gate.set()
        dispatcher, (held,) = await in_hand(bench)
        bench.scope.wakeups.subscribe(OutcomeWake, dispatcher.parts.attempts.hear)

        await instances.cancel_by_id(bench.scope, held.id)
        await bench.settle()

        assert await bench.states() == {"CANCELLED": 1}
        assert bench.health.late_results == 0
