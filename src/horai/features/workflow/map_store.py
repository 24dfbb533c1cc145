"""Maps of runs and their items: one function per statement of features/workflow/map_store.sql.

A caller that writes has locked the row of the run.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from horai.core.limits import SHARDS
from horai.core.states import State
from horai.core.stored_text import TRUNCATED
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.pool import AnyRead, AnyWrite, TenantRead
from horai.features.workflow.map_settings import MapSettings
from horai.features.workflow.trigger_rules import NodeCause


class MapKey(NamedTuple):
    """The node of a run that a map is."""

    run_id: int
    name: str
    generation: int


@dataclass(frozen=True, slots=True)
class MapState:
    """A map of a run. `total` is None until the node starts; the first `made` items have an instance.

    `ended` counts items that have ended, `failed` those of them that did not succeed.
    """

    settings: MapSettings
    key: MapKey
    job_id: int
    total: int | None = None
    made: int = 0
    ended: int = 0
    failed: int = 0

    @property
    def open(self) -> int:
        """Return how many items have an instance that has not ended."""
        return self.made - self.ended


async def payload_of_run(connection: AnyRead, run_id: int) -> str | None:
    """Return the payload of a run as JSON text."""
    return await connection.fetchval(sql("payload_of_run"), run_id)


async def result_to_map(connection: AnyRead, instance_id: int, since: datetime) -> str | None:
    """Return the stored result of an instance that succeeded, not before `since`; None if it has none."""
    return await connection.fetchval(sql("result_to_map"), instance_id, since)


async def make_items(
    connection: AnyWrite, state: MapState, fire_time: datetime, payloads: Sequence[str | None]
) -> list[Claimable]:
    """Create the instances of the next items. A payload of None stands for that of the job."""
    rows = await connection.fetch(
        sql("make_items"), *state.key, fire_time, state.made, state.job_id, list(payloads), SHARDS
    )
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def note_item_ends(connection: AnyWrite, key: MapKey, since: datetime) -> tuple[int, int]:
    """Record the ends of items. Return how many have ended since the last call, and how many of them failed."""
    row = await connection.fetchrow(sql("note_item_ends"), *key, since)
    assert row is not None  # noqa: S101 — a count has one row
    return row["ended"], row["failed"]


async def follow_item_replays(connection: AnyWrite, key: MapKey) -> int:
    """Point dead items to their replays, and return how many; those have not ended then."""
    return await connection.fetchval(sql("follow_item_replays"), *key)


async def open_items(connection: AnyRead, key: MapKey) -> list[int]:
    """Return the instances of items that have not ended."""
    return [row["instance_id"] for row in await connection.fetch(sql("open_items"), *key)]


@dataclass(frozen=True, slots=True)
class MapWrite:
    """The part of a write beside the counts: a fault, the result as it is stored, and whether a dead map goes on."""

    fault: NodeCause | None = None
    result: str | None = None
    is_reopened: bool = False
    is_over: bool = False


async def set_map(connection: AnyWrite, state: MapState, write: MapWrite) -> None:
    """Write the progress of a map."""
    await connection.execute(
        sql("set_map"),
        *state.key,
        state.total,
        state.made,
        state.ended,
        state.failed,
        None if write.fault is None else int(write.fault),
        write.result,
        write.is_reopened,
        write.is_over,
    )


async def map_results(connection: AnyRead, node_ids: Collection[int]) -> dict[int, str]:
    """Return the results of maps that are small enough to pass on, by the reserved ids of their nodes."""
    rows = await connection.fetch(sql("map_results"), list(node_ids)) if node_ids else ()
    return {row["instance_id"]: row["result"] for row in rows if row["result"] != TRUNCATED}


async def item_results(connection: AnyRead, key: MapKey, since: datetime, first: int, last: int) -> list[str | None]:
    """Return the stored results of the items at positions from `first` to before `last`; None for one that failed."""
    rows = await connection.fetch(sql("item_results"), *key, since, first, last)
    return [None if row["result"] == TRUNCATED else row["result"] for row in rows]


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item of a map with the known data of its instance."""

    position: int
    instance_id: int
    state: State
    attempt: int | None
    error_code: str | None
    error_msg: str | None
    claimed_at: datetime | None
    finished_at: datetime | None
    result: str | None

    @property
    def kept_result(self) -> str | None:
        """Return the result, if all of it was stored."""
        return None if self.result == TRUNCATED else self.result


@dataclass(frozen=True, slots=True)
class ItemPage:
    """A page request: up to `limit` items after the position `after`; with `is_failed` only those that failed."""

    after: int = -1
    limit: int = 100
    is_failed: bool = False


async def items_page(connection: TenantRead, key: MapKey, since: datetime, page: ItemPage) -> list[ItemRow]:
    """Return a page of the items that have an instance, in order."""
    rows = await connection.fetch(sql("items_page"), *key, since, page.after, page.limit, page.is_failed)
    return [
        ItemRow(
            row["position"],
            row["instance_id"],
            State(State.DEAD if row["state"] is None else row["state"]),
            row["attempt"],
            row["error_code"],
            row["error_msg"],
            row["claimed_at"],
            row["finished_at"],
            row["result"],
        )
        for row in rows
    ]


async def dead_items_of(connection: AnyRead, run_id: int, names: Collection[str]) -> list[int]:
    """Return the dead items of maps of a run."""
    return [row["instance_id"] for row in await connection.fetch(sql("dead_items_of"), run_id, list(names))]
