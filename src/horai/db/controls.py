"""The rates that the governor limits, and what it holds: one function per statement of sql/controls.sql."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from horai.core.controls import Controls, GovernorMode, controls_from
from horai.db.catalog import sql
from horai.db.pool import AnyRead, Platform, TenantRead


class GovernedRate(StrEnum):
    """The names of the rates."""

    LOW = "low"
    RETRIES = "retries"


class GovernedGrant(NamedTuple):
    """Tokens that were granted. `wait`: the time until the next one if none was; `per_second`: the rate."""

    granted: int
    wait: timedelta
    per_second: float


async def grant_governed(connection: Platform, rate: GovernedRate, wanted: int) -> GovernedGrant | None:
    """Take up to `wanted` tokens; None if the rate is not limited any more."""
    row = await connection.fetchrow(sql("grant_governed"), rate, wanted)
    if row is None:
        return None
    per_second: float = row["per_second"]
    missing = 0.0 if row["granted"] else max(0.0, 1.0 - row["tokens"]) / per_second
    return GovernedGrant(row["granted"], timedelta(seconds=missing, microseconds=1), per_second)


async def return_governed(connection: Platform, rate: GovernedRate, unused: int) -> None:
    """Return tokens that were granted and not used."""
    await connection.execute(sql("return_governed"), rate, unused)


async def is_backfill_closed(connection: TenantRead, tenant_id: int) -> bool:
    """Return whether new backfills of the tenant are refused: by the governor, or by a hold of the tenant."""
    return await connection.fetchval(sql("is_backfill_closed"), tenant_id)


async def current_controls(connection: AnyRead) -> Controls:
    """Return the controls in force now."""
    return controls_from(await connection.fetchval(sql("current_controls")))


@dataclass(frozen=True, slots=True)
class ModeInForce:
    """A mode of the governor that is obeyed, and since when."""

    mode: GovernorMode
    since: datetime | None


async def modes_in_force(connection: AnyRead) -> list[ModeInForce]:
    """Return the modes that are obeyed now, without NORMAL."""
    rows = await connection.fetch(sql("modes_in_force"))
    return [ModeInForce(GovernorMode(name), since) for name, since in rows if name in GovernorMode.__members__]


@dataclass(frozen=True, slots=True)
class HoldInForce:
    """A hold by hand: `what` it holds, by the platform or by the tenant. The note and the actor are those of its operator.

    A caller of a tenant may not see the note and the actor of the platform.
    """

    is_of_platform: bool
    what: str
    since: datetime
    expires_at: datetime | None
    note: str | None
    actor: str | None


async def holds_in_force(connection: AnyRead, tenant_id: int) -> list[HoldInForce]:
    """Return the pauses and freezes that apply to a tenant, those of the platform first."""
    return [HoldInForce(*row.values()) for row in await connection.fetch(sql("holds_in_force"), tenant_id)]
