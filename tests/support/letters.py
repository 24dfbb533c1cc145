"""Dead letters for tests, made through the product's own functions."""

from collections.abc import Sequence
from datetime import UTC, datetime

import make

from horai.core.outcome import Bury
from horai.db import claims
from horai.db.pool import Platform
from horai.operations.scope import Scope

SPENT = Bury("HTTP_503", "the target answered 503 Service Unavailable", ("transient_error",))


async def bury_due(connection: Platform, decision: Bury = SPENT, node: int | None = None) -> list[int]:
    """Claim the due instances and bury them; return the ids of the letters, oldest first."""
    incarnation = node or await make.node(connection)
    held = [claimed.held for claimed in await make.claim(connection, incarnation)]
    for start in range(0, len(held), 500):
        await claims.bury_if_running(connection, [(each, decision) for each in held[start : start + 500]])
    rows = await connection.fetch(
        "select id from horai.dead_letter where instance_id = any ($1::bigint[]) order by created_at, id",
        [each.id for each in held],
    )
    return [row["id"] for row in rows]


async def of_keys(
    scope: Scope, connection: Platform, keys: Sequence[str], decision: Bury = SPENT, job: str = "publish"
) -> list[int]:
    """A letter for each key, in their order."""
    found: list[int] = []
    for key in keys:
        await make.put(scope, key, datetime(2026, 1, 1, tzinfo=UTC), job=job, payload={"key": key})
        found += await bury_due(connection, decision)
    return found


async def statuses(connection: Platform) -> list[str]:
    """Return the replay status of all letters, oldest first."""
    rows = await connection.fetch("select replay_status from horai.dead_letter order by created_at, id")
    return [row["replay_status"] for row in rows]


async def live(connection: Platform) -> list[tuple[str | None, int | None]]:
    """(key, replay_of) of what is live, by key."""
    rows = await connection.fetch("select key, replay_of from horai.instance_live order by key, replay_of")
    return [(row["key"], row["replay_of"]) for row in rows]
