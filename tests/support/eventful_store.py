"""A database in which a bit of everything has happened, and a way to break it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
import make
from stages import FixedLease

from horai.core.outcome import Bury, Complete, Release, RetryAt
from horai.core.settings import EngineSettings
from horai.db import claims, nodes, settlements
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.verify import Finding, verify
from horai.db.wakeups import Wakeups
from horai.embedded import EmbeddedPostgres
from horai.embedded.admin import admin_url
from horai.engine.rescuer import Rescuer
from horai.engine.trigger import Trigger
from horai.operations import instances
from horai.operations.scope import Scope

LATER = timedelta(hours=1)
FILLED = "horai_filled"


@dataclass(frozen=True)
class Store:
    """A database in which a bit of everything has happened, and a way to break it."""

    scope: Scope
    connection: Platform
    url: str

    async def broken(self, statement: str, *arguments: object) -> dict[str, Finding]:
        """The violations found after `statement`, by invariant."""
        await self.connection.execute(statement, *arguments)
        return {finding.invariant: finding for finding in await verify(self.connection) if not finding.holds}

    async def id_of(self, key: str) -> int:
        return await self.connection.fetchval("select instance_id from horai.job_instance where key = $1", key)


async def admin(postgres: EmbeddedPostgres, statement: str) -> None:
    connection = await asyncpg.connect(admin_url(postgres.url))
    await connection.execute(statement)
    await connection.close()


async def live_a_little(store: Store) -> None:
    """Success, failure, death, release, cancel, supersession, rescue, late result, pause, slots: through the product."""
    scope, connection = store.scope, store.connection
    await make.job(scope, retry={"maxRetry": 5})
    await make.job(scope, "tick", every="1s")
    await _claims_of_every_end(store)
    await make.put(scope, "replaced")
    node = await make.node(connection, LATER)
    (late,) = await make.claim(connection, node)
    await make.put(scope, "replaced", datetime.now(UTC) + LATER)
    await claims.keep_late(connection, [claims.LateResult(late.held, "SUCCESS", None, None)])
    await make.put(scope, "given back")
    (released,) = await make.claim(connection, node)
    await claims.release_if_running(connection, [(released.held, Release(LATER))])
    await claims.keep_late(connection, [claims.LateResult(released.held, "FAIL", "HTTP_503", "busy")])
    await make.put(scope, "moved", datetime.now(UTC) + LATER)
    await make.put(scope, "moved", datetime.now(UTC) + 2 * LATER)
    await make.put(scope, "cancelled", datetime.now(UTC) + LATER)
    await instances.cancel_by_key(scope, "publish", "cancelled")
    await make.put(scope, "waiting", datetime.now(UTC) + LATER)
    await make.job(scope, "held", status="PAUSED")
    await make.put(scope, "parked", job="held")
    await _rescue(store)
    await _make_slots(store, 3)
    await make.put(scope, "running")
    await make.claim(connection, node)


async def _claims_of_every_end(store: Store) -> None:
    connection = store.connection
    for key in ("succeeded", "failed", "dead", "released"):
        await make.put(store.scope, key)
    held = {row.key: row.held for row in await make.claim(connection, await make.node(connection))}
    await settlements.apply(
        connection,
        [
            (held["succeeded"], Complete('{"ok": true}')),
            (held["failed"], RetryAt(LATER, "HTTP_503", "busy")),
            (held["dead"], Bury("HTTP_400", "no", ("unrecoverable",))),
            (held["released"], Release(LATER)),
        ],
    )


async def _rescue(store: Store) -> None:
    await make.put(store.scope, "rescued")
    lost = await make.node(store.connection, timedelta(seconds=-1))
    await make.claim(store.connection, lost)
    line = StageConnection(store.url, "horai test")
    await Rescuer(line, FixedLease(0), Wakeups(), EngineSettings()).step(datetime.now(UTC))
    await line.close()


async def _make_slots(store: Store, count: int) -> None:
    """Slots of the job `tick` that have passed, as a trigger makes them."""
    await store.connection.execute(
        "update horai.job set active_from = active_from - interval '1 minute' where name = 'tick'"
    )
    await store.connection.execute(
        "update horai.schedule set fire_time = date_trunc('second', clock_timestamp()) - $1 * interval '1 second'",
        count,
    )
    node = await make.node(store.connection)
    line = StageConnection(store.url, "horai test")
    trigger = Trigger(line, FixedLease(node), Wakeups(), EngineSettings(), datetime.now(UTC))
    for _ in range(count):
        await trigger.step(datetime.now(UTC))
    await nodes.stop_node(store.connection, node)
    await line.close()
    for row in await make.claim(store.connection, await make.node(store.connection)):
        await settlements.apply(store.connection, [(row.held, Complete())])
