"""Compensation of durable steps: one function per statement of sql/compensations.sql, and the detour of a death."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from horai.core.outcome import COMPENSATION_FAILED, Bury, RetryAt
from horai.core.states import State
from horai.db import claims
from horai.db.catalog import sql
from horai.db.claims import Claim, Claimable
from horai.db.pool import AnyWrite, TenantWrite

Dying = list[tuple[Claim, Bury]]


async def before_death(connection: AnyWrite, batch: Dying) -> tuple[Dying, list[tuple[Claim, RetryAt]]]:
    """Split claims whose instances are to die: those that die now, and those whose compensations run first.

    The latter are marked, and due again at once. A row that another transaction has locked is in neither list. Call this in
    the transaction that writes the decisions.
    """
    rows = await connection.fetch(sql("owed_compensations"), *claims.guards([held for held, _ in batch]))
    if not rows:
        return batch, []
    owed = {row["id"]: row for row in rows}
    dying = [(held, how) for held, how in batch if held.id in owed and not owed[held.id]["is_rewinding"]]
    failed = {row["id"]: row["steps"] for row in rows if row["is_rewinding"]}
    rest = [
        (held, _left_undone(how, failed[held.id]) if held.id in failed else how)
        for held, how in batch
        if held.id not in owed or held.id in failed
    ]
    held_ids = await claims.hold_running(connection, [held for held, _ in dying])
    dying = [(held, how) for held, how in dying if held.id in held_ids]
    await connection.execute(
        sql("mark_deaths"),
        [held.id for held, _ in dying],
        [how.code for _, how in dying],
        [how.message for _, how in dying],
        [json.dumps(how.tags) for _, how in dying],
    )
    again = [(held, RetryAt(timedelta(0), how.code, how.message, how.is_loss)) for held, how in dying]
    return rest, again


def _left_undone(how: Bury, steps: Sequence[str]) -> Bury:
    """Return the death of an instance whose compensations did not all run, with the names of their steps."""
    if how.code == COMPENSATION_FAILED:
        return how
    return replace(
        how,
        code=COMPENSATION_FAILED,
        message=f"Not compensated: {', '.join(steps)}. The attempt that was to compensate them ended with {how.code}: {how.message}",
        tags=tuple(dict.fromkeys((*how.tags, COMPENSATION_FAILED.lower()))),
    )


async def hold_for_cancel(connection: TenantWrite, tenant_id: int, instance_id: int) -> State | None:
    """Lock a live instance and return its state; None if it is not live."""
    state = await connection.fetchval(sql("hold_for_cancel"), tenant_id, instance_id)
    return None if state is None else State(state)


async def open_compensations(
    connection: TenantWrite, tenant_id: int, instance_id: int, *, is_running: bool
) -> list[str]:
    """Return the names of the steps that are to be compensated, the last first."""
    rows = await connection.fetch(sql("open_compensations"), tenant_id, instance_id, is_running)
    return [row["step"] for row in rows]


async def mark_cancel(connection: TenantWrite, tenant_id: int, instance_id: int) -> Claimable | None:
    """Mark a held instance as cancelled with compensation. Return it with its due time; None if it runs."""
    row = await connection.fetchrow(sql("mark_cancel"), tenant_id, instance_id)
    return None if row is None else Claimable(*row.values())
