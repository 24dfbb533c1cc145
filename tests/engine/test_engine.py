"""The stages of a process as one: chosen by roles, started and stopped in order."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
import rows
from harness import FAST
from stages import Recorder, workbench

from horai.core.health import EngineHealth
from horai.core.limits import SHARDS
from horai.core.shards import EVERY_ROLE, Duty, Role
from horai.db import nodes, shards
from horai.db.pool import Platform
from horai.db.wakeups import Wakeups
from horai.operations.scope import Scope
from horai.stages import Engine

ALWAYS = {"notifier", "listener"}
EXECUTING = {
    "settler",
    "dispatcher",
    "sweeper",
    "minute_stats",
    "overlap_gate",
    "key_gate",
    "workflow",
    "assets",
    "child_calls",
}
SCHEDULING = {
    "outbox",
    "sinks",
    "sli",
    "incidents",
    "alerts",
    "governor",
    "trigger",
    "rescuer",
    "janitor",
    "live_vacuum",
    "retention",
    "catch_up",
    "backfill",
    "overlap_gate",
    "key_gate",
    "workflow",
    "audit",
    "census",
    "eraser",
    "step_sweeper",
    "expirer",
    "assets",
    "child_calls",
}


@dataclass(frozen=True, slots=True)
class Process:
    """An engine that runs, and a caller in the same process."""

    engine: Engine
    scope: Scope
    executor: Recorder
    health: EngineHealth

    @property
    def stages(self) -> set[str]:
        return {kind_of(stage.name) for stage in self.engine._stages}


def kind_of(name: str) -> str:
    """Of a stage, without the number of those that there are several of."""
    return name.rstrip(" 0123456789")


@asynccontextmanager
async def process(
    url: str, name: str = "one", roles: frozenset[Role] = EVERY_ROLE, **changes: Any
) -> AsyncGenerator[Process]:
    """Stopped at the end, unless the test has done so."""
    wakeups, health, executor = Wakeups(), EngineHealth(), Recorder()
    engine = Engine(url, name, {"": executor}, wakeups, health, replace(FAST, **changes), roles)
    async with make.scope(url) as scope:
        await engine.start()
        try:
            yield Process(engine, replace(scope, wakeups=wakeups), executor, health)
        finally:
            if not all(task.done() for task in engine._tasks):
                executor.gate.set()
                await engine.stop()


async def called(running: Process, count: int) -> None:
    async with asyncio.timeout(30):
        while len(running.executor.calls) < count:
            await asyncio.sleep(0.01)


async def states(connection: Platform) -> dict[str, int]:
    found = await connection.fetch("select state, count(*) as n from horai.job_instance group by state")
    return {row["state"]: row["n"] for row in found}


ROLES = {
    "every role": (EVERY_ROLE, ALWAYS | EXECUTING | SCHEDULING),
    "api alone": (frozenset({Role.api}), ALWAYS),
    "executor": (frozenset({Role.executor}), ALWAYS | EXECUTING),
    "worker": (frozenset({Role.worker}), ALWAYS | EXECUTING | {"progress_writer", "claim_revoker"}),
    "scheduler": (frozenset({Role.scheduler}), ALWAYS | SCHEDULING),
}


@pytest.mark.parametrize(("roles", "stages"), ROLES.values(), ids=ROLES.keys())
async def test_its_roles_choose_the_stages_of_a_process(url: str, roles: frozenset[Role], stages: set[str]):
    async with process(url, roles=roles) as running:
        assert running.stages == stages
        assert {kind_of(task.get_name()) for task in running.engine._tasks} == stages


async def test_instances_added_in_the_process_run_and_are_settled(
    url: str, connection: Platform, runner: asyncio.Runner
):
    async with process(url) as running:
        await make.job(running.scope)
        running.executor.gate.set()

        await make.many(running.scope, 50)
        await make.many(running.scope, 5, at=datetime.now(UTC) + timedelta(seconds=0.5))

        async def is_done() -> bool:
            return await states(connection) == {"SUCCESS": 55}

        await rows.until(is_done)
        assert len({call.idempotency_key for call in running.executor.calls}) == 55
        assert running.health.settled == 55


async def test_a_process_without_the_executors_role_runs_nothing_and_another_does(
    url: str, connection: Platform, runner: asyncio.Runner
):
    async with process(url, "api", frozenset({Role.api})) as api, process(url, "worker") as worker:
        worker.executor.gate.set()
        await make.job(api.scope)
        await make.many(api.scope, 20)

        async def is_done() -> bool:
            return await states(connection) == {"SUCCESS": 20}

        await rows.until(is_done)
        assert (len(api.executor.calls), len(worker.executor.calls)) == (0, 20)


async def test_stopping_hands_the_shards_over_before_its_calls_have_ended(
    url: str, connection: Platform, runner: asyncio.Runner
):
    async with process(url) as running:
        await make.job(running.scope)
        await make.many(running.scope, 5)
        await called(running, 5)
        held = "select count(*) from horai.shard_lease where node is not null"
        assert await connection.fetchval(held) == 64

        stopping = asyncio.create_task(running.engine.stop())

        async def are_given_back() -> bool:
            return await connection.fetchval(held) == 0

        await rows.until(are_given_back)
        assert not stopping.done(), "the calls still run"
        await make.many(running.scope, 3)
        running.executor.gate.set()
        await stopping

        assert await states(connection) == {"SUCCESS": 5, "INIT": 3}, "and nothing more was begun"
        assert len(running.executor.calls) == 5
        node = await connection.fetchrow("select stopped_at is not null, fenced_at is null from horai.node")
        assert node is not None
        assert tuple(node) == (True, True)


async def test_calls_that_do_not_end_within_the_grace_fail_and_are_settled(
    url: str, connection: Platform, runner: asyncio.Runner
):
    async with process(url, grace=timedelta(milliseconds=200)) as running:
        await make.job(running.scope)
        await make.many(running.scope, 5)
        await called(running, 5)

        await running.engine.stop()

        assert await states(connection) == {"FAIL": 5}
        codes = await connection.fetch("select distinct error_code from horai.instance_live")
        assert [code for (code,) in codes] == ["NODE_STOPPED"]
        assert running.health.in_flight == 0


async def test_stopping_leaves_no_connection_and_no_loop_behind(url: str, connection: Platform, runner: asyncio.Runner):
    others = (
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and application_name like 'horai %' and application_name <> 'horai test'"
    )
    async with process(url) as running:
        await make.job(running.scope)
        running.executor.gate.set()
        await make.many(running.scope, 3)
        await called(running, 3)
        assert await connection.fetchval(others) > 0

        await running.engine.stop()

        async def are_closed() -> bool:
            return await connection.fetchval(others) == 0

        await rows.until(are_closed)
        assert all(task.done() for task in running.engine._tasks)


async def test_the_death_of_a_loop_is_told(url: str):
    async with process(url) as running:
        watching = asyncio.create_task(running.engine.watch())
        await asyncio.sleep(0)
        assert not watching.done()

        next(task for task in running.engine._tasks if task.get_name() == "sweeper").cancel()

        with pytest.raises(RuntimeError, match="sweeper"):
            async with asyncio.timeout(30):
                await watching


async def test_a_slot_that_waits_for_a_gate_of_a_dead_node_goes_with_its_shards(
    url: str, connection: Platform, runner: asyncio.Runner
):
    """The node that made the slot died before its gate was asked; no sweep runs during the test."""
    async with workbench(url) as bench:
        await make.job(bench.scope, "job", every="1m", overlap="queue", misfireAfter="24h")
        await connection.execute("update horai.job set active_from = '2020-01-01'")
        await connection.execute("update horai.schedule set fire_time = fire_time - interval '2 minutes'")
        await bench.trigger().step(bench.clock.now())
        await connection.execute("update horai.schedule set fire_time = fire_time + interval '1 day'")
        await nodes.stop_node(connection, bench.lease.incarnation)
    dead, _ = await nodes.register_node(connection, "dead", "test", 1, "test", FAST.lease)
    await shards.take_shards(connection, dead, [(duty, shard) for duty in Duty for shard in range(SHARDS)])

    async with process(url, sweep=timedelta(hours=1)) as running:
        await called(running, 1)
