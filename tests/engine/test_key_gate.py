"""The key gate, step by step: the next instance of a concurrency key may run when a holder has ended, in any way."""

from datetime import UTC, datetime, timedelta

import make
from stages import Workbench, workbench

from horai.core.call_settings import CallSettings
from horai.core.limits import SHARDS
from horai.core.wakes import KeyWake, LaneWake, OutcomeWake
from horai.db import concurrency_keys, nodes
from horai.engine.janitor import Janitor
from horai.engine.key_gate import LOOK_AGAIN, KeyGate
from horai.operations import instances
from horai.operations.instances import Item


async def add(bench: Workbench, *keys: str) -> list[int]:
    items = [Item(None, None, settings=CallSettings(key)) for key in keys]
    return [made.instance_id for made in await instances.insert_batch(bench.scope, "publish", items)]


async def waiting(bench: Workbench) -> list[int]:
    found = await bench.connection.fetch("select id from horai.instance_live where lane = 0 order by id")
    return [row["id"] for row in found]


async def states(bench: Workbench) -> list[str]:
    found = await bench.connection.fetch("select state from horai.job_instance order by instance_id")
    return [row["state"] for row in found]


async def test_a_gate_that_has_heard_of_no_key_opens_no_connection(url: str) -> None:
    async with workbench(url) as bench:
        gate = bench.key_gate()
        for hour in range(3):
            await gate.step(bench.clock.now() + timedelta(hours=hour))
        gate.hear_shards()
        await gate.step(bench.clock.now())
        assert gate.line._connection is None


async def test_a_settlement_lets_the_next_instance_of_its_key_run(url: str) -> None:
    async with workbench(url) as bench:
        await make.job(bench.scope)
        first, second, third = await add(bench, "a", "a", "b")
        gate, dispatcher = bench.key_gate(), bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        assert (await states(bench), await waiting(bench)) == (["RUNNING", "INIT", "RUNNING"], [second])
        await gate.step(bench.clock.now())
        assert await waiting(bench) == [second], "no place is free"

        bench.executor.gate.set()
        await bench.settle()
        assert gate.signal.is_set()
        await gate.step(bench.clock.now())
        await dispatcher.step(bench.clock.now())
        await bench.settle()

        assert (await states(bench), await waiting(bench)) == (["SUCCESS"] * 3, [])
        assert len(bench.executor.calls) == len({first, second, third})


async def test_the_rescue_of_a_lost_holder_lets_the_next_instance_run(url: str) -> None:
    async with workbench(url) as bench:
        await make.job(bench.scope)
        _, second = await add(bench, "a", "a")
        gate, dispatcher = bench.key_gate(), bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        await nodes.stop_node(bench.connection, bench.lease.incarnation)
        bench.lease.incarnation = await make.node(bench.connection)

        await bench.rescuer().step(bench.clock.now())
        assert gate.signal.is_set()
        await gate.step(bench.clock.now())

        assert (await states(bench), await waiting(bench)) == (["FAIL", "INIT"], [])
        lane = await bench.connection.fetchval("select lane from horai.instance_live where id = $1", second)
        assert lane != 0


async def test_a_claim_that_was_ended_from_outside_lets_the_next_instance_run(url: str) -> None:
    async with workbench(url) as bench:
        await make.job(bench.scope)
        first, second = await add(bench, "a", "a")
        gate, dispatcher = bench.key_gate(), bench.dispatcher()
        bench.scope.wakeups.subscribe(OutcomeWake, gate.hear_outcome)
        await dispatcher.step(bench.clock.now())

        await instances.cancel_by_id(bench.scope, first)
        assert gate.signal.is_set()
        await gate.step(bench.clock.now())

        assert (await states(bench), await waiting(bench)) == (["CANCELLED", "INIT"], [])
        assert second


async def test_a_sweep_finds_keys_whose_holder_died_before_it_asked(url: str) -> None:
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        await add(bench, "a", "a", "a", "b", "b")
        gate, dispatcher = bench.key_gate(), bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        await bench.connection.execute("delete from horai.instance_live where state = 1")

        bench.lease.owned = frozenset(range(SHARDS)) - {job.id % SHARDS}
        gate.rescan_all()
        await gate.step(bench.clock.now())
        assert len(await waiting(bench)) == 3, "another node sweeps this job"
        bench.lease.owned = frozenset(range(SHARDS))
        gate.hear_shards()
        await gate.step(bench.clock.now())
        assert len(await waiting(bench)) == 1

        await bench.connection.execute("delete from horai.instance_live where lane <> 0")
        await gate.step(bench.clock.now() + bench.settings.sweep * 2)
        assert await waiting(bench) == []


async def test_the_janitor_wakes_a_gate_that_has_heard_of_no_key(url: str) -> None:
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await add(bench, "a", "a")
        await bench.dispatcher().step(bench.clock.now())
        gate = bench.key_gate()
        janitor = Janitor(
            bench.line("janitor"),
            bench.scope.wakeups,
            bench.health,
            bench.settings,
            datetime.max.replace(tzinfo=UTC),
            (),
        )
        await bench.connection.execute("delete from horai.instance_live where state = 1")

        await janitor.step(bench.clock.now())
        await gate.step(bench.clock.now())

        assert await waiting(bench) == []


async def test_the_gate_looks_again_at_a_key_whose_released_instance_was_cancelled(url: str) -> None:
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        _, second, third = await add(bench, "a", "a", "a")
        gate, dispatcher = bench.key_gate(), bench.deaf_dispatcher()
        await dispatcher.step(bench.clock.now())
        await bench.connection.execute("delete from horai.instance_live where state = 1")
        woken: list[int] = []
        bench.scope.wakeups.subscribe(LaneWake, lambda wake: woken.append(wake.lane))
        bench.scope.wakeups.publish(KeyWake({(job.id, "a")}))
        now = bench.clock.now()
        coming = await gate.step(now)
        assert (await waiting(bench), len(woken)) == ([third], 1)

        await instances.cancel_by_id(bench.scope, second)
        assert coming <= now + LOOK_AGAIN
        await gate.step(now + LOOK_AGAIN)

        assert (await waiting(bench), len(woken)) == ([], 2)


async def test_keys_are_kept_while_the_database_is_away(url: str) -> None:
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        _, second = await add(bench, "a", "a")
        await bench.deaf_dispatcher().step(bench.clock.now())
        gate, now = bench.key_gate(), bench.clock.now()
        gate.rescan_all()
        await gate.step(now)  # its next sweep is not due at `now`
        await bench.connection.execute("delete from horai.instance_live where state = 1")
        line, gate.line = gate.line, type(gate.line)("postgresql://127.0.0.1:9/away", "horai key_gate")
        gate.hear(KeyWake({(job.id, "a")}))
        for _ in range(2):
            try:
                await gate.step(now)
            except OSError:
                continue
            raise AssertionError("the database is away")
        gate.line = line
        await gate.step(now)
        assert (await waiting(bench), second > 0) == ([], True)
        assert isinstance(gate, KeyGate)


async def test_a_node_that_lost_the_answer_to_its_claim_frees_the_key(url: str) -> None:
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await add(bench, "a", "a")
        gate, dispatcher = bench.key_gate(), bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        (held,) = [held for held, _ in bench.in_flight._held.values()]
        bench.in_flight.drop([held])
        bench.settler._inbox.has_keys = False  # as in a process that never got the answer
        dispatcher.parts.claimer.is_answer_lost = True
        await dispatcher.parts.claimer.release_lost(bench.connection)
        await bench.settler.step(bench.clock.now())
        assert gate.signal.is_set()
        await gate.step(bench.clock.now())
        await dispatcher.step(bench.clock.now())
        assert sorted(await states(bench)) == ["INIT", "RUNNING"]
        running = await bench.connection.fetchval("select count(*) from horai.instance_live where state = 1")
        assert running == 1
        assert await concurrency_keys.any_parked_keys(bench.connection)
