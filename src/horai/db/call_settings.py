"""The queue, the priority and the expiry of one call: one function per statement of sql/call_settings.sql."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from horai.core.call_settings import CallSettings
from horai.core.states import CancelReason
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.pool import AnyWrite, Platform


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """An instance that has its settings, where it waits now, or the option that is to blame: queue, builtin or expires."""

    id: int
    woken: Claimable | None
    fault: str | None


async def place_calls(connection: AnyWrite, settings: Mapping[int, CallSettings], *, are_new: bool) -> list[PlacedRow]:
    """Give instances that do not run the settings of their calls, by id. After a fault, the caller rolls back.

    `are_new`: the caller's transaction has inserted them.
    """
    given = settings.values()
    rows = await connection.fetch(
        sql("place_calls"),
        list(settings),
        [each.queue for each in given],
        [each.rank for each in given],
        [each.expires_after for each in given],
        [each.expires_at for each in given],
        are_new,
    )
    return [
        PlacedRow(id_, None if lane is None else Claimable(id_, lane, due), fault) for id_, lane, due, fault in rows
    ]


class Expired(NamedTuple):
    """The instances that were cancelled, and the next expiry of one that is left; None if none expires."""

    ids: list[int]
    next_at: datetime | None


async def expire_waiting(connection: Platform, limit: int) -> Expired:
    """Cancel instances that have expired and do not run."""
    rows = await connection.fetch(sql("expire_waiting"), limit, int(CancelReason.EXPIRED))
    ids = [row["id"] for row in rows if row["id"] is not None]
    return Expired(ids, next((row["next_at"] for row in rows if row["id"] is None), None))
