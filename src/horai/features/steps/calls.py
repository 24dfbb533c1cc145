"""Child calls: one function per statement of calls.sql."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from horai.core.calls import Call
from horai.core.states import CancelReason, State
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.pool import Platform
from horai.features.steps.rules import ChildEnd, Kind, StepId, StepRecord, StepState
from horai.features.steps.store import Held


class CallOf(NamedTuple):
    """A call of another job by an attempt. `payload` is JSON text; None for the payload of the job."""

    call: Call
    id: StepId
    job: str
    payload: str | None


class RecordedCall(NamedTuple):
    """A call as it is stored. `end`: how its child ended; None while it is live."""

    instance_id: int
    record: StepRecord
    end: ChildEnd | None


async def rewound_now(connection: Platform, ids: Collection[int]) -> set[Held]:
    """Return the claims of held instances that were cancelled with compensation meanwhile."""
    return {(row["id"], row["fence"]) for row in await connection.fetch(sql("rewound_now"), list(ids))}


async def calls_of(connection: Platform, batch: Sequence[CallOf]) -> list[RecordedCall]:
    """Return those of these calls that are recorded."""
    rows = await connection.fetch(
        sql("calls_of"),
        [asked.call.instance_id for asked in batch],
        [asked.id.name for asked in batch],
        [asked.id.n for asked in batch],
    )
    return [
        RecordedCall(
            row["instance_id"],
            StepRecord(
                StepId(Kind.CALL, row["name"], row["n"]),
                StepState(row["progress"]),
                result=row["result"],
                error_type=row["error_type"],
                error_msg=row["error_msg"],
                child=row["child"],
            ),
            None
            if row["is_live"]
            else ChildEnd(
                None if row["state"] is None else State(row["state"]),
                None if row["reason"] is None else CancelReason(row["reason"]),
                row["output"],
                row["error_code"],
                row["death"],
                row["replay"],
            ),
        )
        for row in rows
    ]


async def open_calls(connection: Platform, made: Sequence[tuple[CallOf, int]]) -> None:
    """Record calls of held instances with the children that this transaction has created."""
    await connection.fetch(
        sql("open_calls"),
        [asked.call.instance_id for asked, _ in made],
        [asked.id.name for asked, _ in made],
        [asked.id.n for asked, _ in made],
        [child for _, child in made],
    )


async def take_calls(connection: Platform, ended: Sequence[tuple[int, StepRecord]]) -> None:
    """Record the results of ended children. A failure is not recorded yet: the caller may raise it."""
    await connection.execute(
        sql("take_calls"),
        [instance_id for instance_id, _ in ended],
        [record.id.name for _, record in ended],
        [record.id.n for _, record in ended],
        [record.child for _, record in ended],
        [record.result for _, record in ended],
        [record.state is StepState.FINISHED for _, record in ended],
    )


async def replace_children(connection: Platform, replayed: Mapping[tuple[int, StepRecord], int]) -> None:
    """Give open calls the replays of their dead children."""
    await connection.execute(
        sql("replace_children"),
        [instance_id for instance_id, _ in replayed],
        [record.id.name for _, record in replayed],
        [record.id.n for _, record in replayed],
        [record.child for _, record in replayed],
        list(replayed.values()),
    )


async def has_open_calls(connection: Platform) -> bool:
    """Return whether any call has no end that its caller was told of."""
    return await connection.fetchval(sql("has_open_calls"))


async def open_calls_among(connection: Platform, ids: Collection[int]) -> list[int]:
    """Return the children of open calls that these instances are, or have made."""
    return [row["child_id"] for row in await connection.fetch(sql("open_calls_among"), list(ids))]


async def calls_to_decide(connection: Platform, after: int, limit: int) -> list[int]:
    """Return a page of open calls whose child or caller has ended."""
    return [row["child_id"] for row in await connection.fetch(sql("calls_to_decide"), after, limit)]


async def wake_callers(connection: Platform, children: Collection[int]) -> list[Claimable]:
    """Make suspended callers of ended children due; return those that were woken."""
    rows = await connection.fetch(sql("wake_callers"), list(children))
    return [Claimable(*row.values()) for row in rows]


async def orphans_among(connection: Platform, children: Collection[int]) -> list[int]:
    """Return those of these children whose callers have ended or started over."""
    return [row["child_id"] for row in await connection.fetch(sql("orphans_among"), list(children))]


async def close_calls(connection: Platform, children: Collection[int]) -> None:
    """Mark the ends of these children as told, of those that have ended."""
    await connection.execute(sql("close_calls"), list(children))


async def forget_calls(connection: Platform, above: int, limit: int) -> int | None:
    """Forget `limit` calls whose instances have left the history; return the last child that was looked at."""
    return await connection.fetchval(sql("forget_calls"), above, limit)
