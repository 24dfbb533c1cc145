"""Instances before they run: one function per statement of sql/instances.sql."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from horai.core.limits import SHARDS
from horai.core.put import Past
from horai.core.sealed_values import is_sealed
from horai.core.states import CancelReason, State
from horai.db import quotas
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.jobs import JobRow
from horai.db.payload_digests import PartedPayloads, part_payloads
from horai.db.pool import AnyRead, AnyWrite, TenantRead, TenantWrite


@dataclass(frozen=True, slots=True)
class InsertTarget:
    """The target of new instances: the job, its tenant, the lane, and the default payload as it is stored."""

    job_id: int
    tenant_id: int
    lane: int
    payload: str | None
    is_metered: bool = False
    """The instances are charged to the quotas of the tenant. Those that Horai makes by itself are not."""
    sealed_for: str | None = None
    """The name of the job if it is encrypted: payloads have to be sealed before they are inserted."""
    search_paths: tuple[str, ...] = ()
    """The fields that instances of an encrypted job are found by: sealed payloads have their digests with them."""

    def require_sealed(self, payloads: Iterable[str | None]) -> None:
        """Raise an error, instead of storing it, if a payload of an encrypted job was not sealed."""
        if self.sealed_for is not None and not all(payload is None or is_sealed(payload) for payload in payloads):
            raise RuntimeError(f"a payload of the encrypted job {self.sealed_for!r} was not sealed")

    def parted(self, payloads: Sequence[str | None], sources: Sequence[int | None] = ()) -> PartedPayloads:
        """Return payloads apart from their digests. `sources` are the instances that payloads were copied from.

        Raises an error, instead of storing it, if a payload was not sealed, or has no digests and was not copied.
        """
        made = part_payloads(payloads, sources) if self.search_paths else PartedPayloads(payloads)
        self.require_sealed(made.texts)
        return made


def target_of(job: JobRow, *, is_charged: bool = True) -> InsertTarget:
    """Return the target for new instances of a job. Those that Horai makes by itself are not charged."""
    sealed_for = job.name if job.is_encrypted else None
    is_metered = is_charged and job.is_metered
    return InsertTarget(job.id, job.tenant_id, job.lane_now, job.payload, is_metered, sealed_for, job.search_paths)


@dataclass(frozen=True, slots=True)
class LiveOfKey:
    """The live instance of a key, locked."""

    id: int
    state: State
    version: int | None
    fence: int
    execute_time: datetime
    lane: int
    due: datetime
    payload: str | None
    fire_time: datetime
    """The time of the last put; retries do not change it."""

    @property
    def woken(self) -> Claimable:
        """Return the row as claimable.

        A claimer may have skipped it while it was locked, so its lane has to be scanned again.
        """
        return Claimable(self.id, self.lane, self.due)


@dataclass(frozen=True, slots=True)
class NewInstance:
    """An instance that a put asks for. `supersedes` and `fence` continue the chain of the instance that it replaces."""

    key: str
    at: datetime
    payload: str | None
    version: int | None
    supersedes: int | None = None
    fence: int = 0


@dataclass(frozen=True, slots=True)
class KeyPast:
    """The history of a key: its highest fence, the ids of its dead instances and of the last one that finished."""

    past: Past = field(default_factory=Past)
    fence: int = 0
    dead: tuple[int, ...] = ()
    last: int | None = None


@dataclass(frozen=True, slots=True)
class LastOfKey:
    """The last finished instance of a key: the version, the time and the payload of its put."""

    version: int | None
    fire_time: datetime
    payload: str | None


@dataclass(frozen=True, slots=True)
class CancelledRow:
    """A cancelled instance, and the fence of its claim that ended: None if it was not running."""

    id: int
    fence: int | None


async def live_of_keys(connection: TenantWrite, job_id: int, keys: Sequence[str]) -> dict[str, LiveOfKey]:
    """Lock and return the live instances of keys."""
    rows = await connection.fetch(sql("live_of_keys"), job_id, list(keys))
    return {
        row["key"]: LiveOfKey(
            row["id"],
            State(row["state"]),
            row["version"],
            row["fence"],
            row["execute_time"],
            row["lane"],
            row["due"],
            row["payload"],
            row["fire_time"],
        )
        for row in rows
    }


async def move_planned(
    connection: TenantWrite, moves: Sequence[tuple[LiveOfKey, NewInstance]], place: InsertTarget | None = None
) -> dict[int, Claimable]:
    """Move instances that have not started to another time; instances that have started meanwhile are absent.

    Payloads of an encrypted job need its `place`.
    """
    given = [wish.payload for _, wish in moves]
    payloads = PartedPayloads(given) if place is None else place.parted(given)
    rows = await connection.fetch(
        sql("move_planned"),
        [live.id for live, _ in moves],
        [wish.at for _, wish in moves],
        payloads.texts,
        [wish.version for _, wish in moves],
        [live.execute_time for live, _ in moves],
    )
    moved = {row["id"]: Claimable(row["id"], row["lane"], row["due"]) for row in rows}
    await payloads.index(
        connection, [live.id if wish.payload is not None and live.id in moved else None for live, wish in moves]
    )
    return moved


async def supersede_running(connection: TenantWrite, moves: Sequence[tuple[LiveOfKey, NewInstance]]) -> set[int]:
    """Supersede running instances, RUNNING → CANCELLED (SUPERSEDED); return the ids that were superseded."""
    rows = await connection.fetch(
        sql("supersede_running"), [live.id for live, _ in moves], [wish.at for _, wish in moves]
    )
    return {row["id"] for row in rows}


async def insert_keyed(
    connection: AnyWrite, place: InsertTarget, wishes: Sequence[NewInstance]
) -> dict[str, Claimable]:
    """Insert live instances of keys; a key that got one from another transaction is absent."""
    payloads = place.parted([wish.payload for wish in wishes], [wish.supersedes for wish in wishes])
    if place.is_metered:
        await quotas.charge(connection, place.tenant_id, len(wishes), payloads.texts)
    rows = await connection.fetch(
        sql("insert_keyed"),
        place.job_id,
        place.tenant_id,
        place.lane,
        SHARDS,
        [wish.key for wish in wishes],
        [wish.at for wish in wishes],
        payloads.texts,
        [wish.version for wish in wishes],
        [wish.supersedes for wish in wishes],
        [wish.fence for wish in wishes],
        place.payload,
    )
    made = {row["key"]: Claimable(row["id"], row["lane"], row["due"]) for row in rows}
    await payloads.index(connection, [made[wish.key].id if wish.key in made else None for wish in wishes])
    return made


async def insert_many(
    connection: AnyWrite,
    place: InsertTarget,
    items: Sequence[tuple[datetime | None, str | None]],
    *,
    execute_now: bool = False,
) -> list[Claimable]:
    """Insert an instance without a key per (fire time, payload), in order; a time of None means now.

    With `execute_now`, an instance of a past fire time counts as planned for now, and not as late.
    """
    payloads = place.parted([payload for _, payload in items])
    if place.is_metered:
        await quotas.charge(connection, place.tenant_id, len(items), payloads.texts)
    rows = await connection.fetch(
        sql("insert_many"),
        place.job_id,
        place.tenant_id,
        place.lane,
        SHARDS,
        [at for at, _ in items],
        payloads.texts,
        place.payload,
        execute_now,
    )
    await payloads.index(connection, [row["id"] for row in rows])
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def past_of_keys(connection: AnyRead, job_id: int, keys: Sequence[str]) -> Mapping[str, KeyPast]:
    """Return the history of keys. Call it after the statement that saw no live row."""
    rows = await connection.fetch(sql("past_of_keys"), job_id, list(keys))
    return {
        row["key"]: KeyPast(Past(row["succeeded"], row["version"]), row["fence"], tuple(row["dead"]), row["last"])
        for row in rows
    }


async def repeated_keys(connection: TenantRead, job_id: int, wishes: Sequence[NewInstance]) -> list[str]:
    """Return the keys whose last finished instance has the same version, time and payload as the put."""
    keys, times = [wish.key for wish in wishes], [wish.at for wish in wishes]
    payloads, versions = [wish.payload for wish in wishes], [wish.version for wish in wishes]
    rows = await connection.fetch(sql("repeated_keys"), job_id, keys, times, payloads, versions)
    return [row["key"] for row in rows]


async def last_of_keys(connection: TenantRead, job_id: int, keys: Sequence[str]) -> dict[str, LastOfKey]:
    """Return the last finished instance of each key."""
    rows = await connection.fetch(sql("last_of_keys"), job_id, list(keys))
    return {row["key"]: LastOfKey(row["version"], row["fire_time"], row["payload"]) for row in rows}


async def inherit(connection: AnyWrite, pasts: Mapping[int, KeyPast]) -> None:
    """Copy version and fence from the history of the keys to rows that this transaction has just inserted."""
    versions, fences = [known.past.version for known in pasts.values()], [known.fence for known in pasts.values()]
    await connection.execute(sql("inherit"), list(pasts), versions, fences)


async def take_back(connection: AnyWrite, instance_ids: Sequence[int]) -> None:
    """Delete rows that this transaction has just inserted."""
    await connection.execute(sql("take_back"), list(instance_ids))


async def supersede_dead_letters(connection: AnyWrite, instance_ids: Sequence[int]) -> None:
    """Mark the dead letters of these instances as SUPERSEDED: a new put makes their replay unnecessary."""
    await connection.execute(sql("supersede_dead_letters"), list(instance_ids))


async def cancel_live(
    connection: AnyWrite, instance_ids: Sequence[int], reason: CancelReason, *, running: bool
) -> list[CancelledRow]:
    """Cancel live instances, RUNNING ones only with `running`; return those that were cancelled."""
    rows = await connection.fetch(sql("cancel_live"), list(instance_ids), int(reason), running, reason.name)
    return [CancelledRow(row["id"], row["fence"]) for row in rows]


async def lock_waiting(connection: AnyWrite, job_id: int, limit: int) -> list[int]:
    """Lock a batch of a job's live instances that have not started; return their ids."""
    return [row["id"] for row in await connection.fetch(sql("lock_waiting"), job_id, limit)]


async def has_waiting(connection: AnyRead, job_id: int) -> bool:
    """Return whether a job has live instances that have not started."""
    return await connection.fetchval(sql("has_waiting"), job_id)


@dataclass(frozen=True, slots=True)
class WaitingLanes:
    """The lanes of a job's waiting rows: one for its own rows, one for those of a backfill.

    `is_gated`: parked slots stay in the parking lane until the overlap gate releases them.
    """

    own: int
    backfilled: int
    is_gated: bool = False


async def move_to_lane(connection: AnyWrite, job_id: int, lanes: WaitingLanes, limit: int) -> list[Claimable]:
    """Move up to `limit` waiting rows of a job to their lanes; return the rows that moved."""
    rows = await connection.fetch(sql("move_to_lane"), job_id, lanes.own, limit, lanes.is_gated, lanes.backfilled)
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def has_waiting_elsewhere(connection: AnyRead, job_id: int, lanes: WaitingLanes) -> bool:
    """Return whether a job has waiting rows that are not in their lanes."""
    return await connection.fetchval(sql("has_waiting_elsewhere"), job_id, lanes.own, lanes.is_gated, lanes.backfilled)


Unkeyed = tuple[datetime | None, str | None]
"""An instance without a key: its time (None: now) and its payload (None: the job's)."""
SealedPaths = Sequence[str] | None
"""The search paths of an encrypted job; None for a job that is not encrypted."""


async def enqueue(
    connection: AnyWrite, tenant_id: int, job: str, items: Sequence[Unkeyed], *, sealed: SealedPaths = None
) -> list[Claimable]:
    """Insert an instance of the named job for each item, in order; return an empty list if the job does not exist.

    With `sealed`, only an encrypted job with these search paths is found, otherwise only one that is not encrypted.
    """
    payloads = parted_payloads([payload for _, payload in items], sealed)
    kind = (sealed is not None, list(sealed or ()))
    with quotas.translated():
        rows = await connection.fetch(
            sql("enqueue"), job, tenant_id, SHARDS, [at for at, _ in items], payloads.texts, *kind
        )
    await payloads.index(connection, [row["id"] for row in rows] or [None for _ in items])
    return [Claimable(id_, lane, due) for id_, lane, due in rows]


def parted_payloads(payloads: Sequence[str | None], sealed: SealedPaths) -> PartedPayloads:
    """Return payloads apart from their digests, which only those of an encrypted job with search paths have."""
    return part_payloads(payloads) if sealed else PartedPayloads(payloads)


async def enqueue_one(connection: AnyWrite, tenant_id: int, job: str, item: Unkeyed) -> Claimable | None:
    """Insert one instance of the named job; return None if the job does not exist or is encrypted."""
    with quotas.translated():
        row = await connection.fetchrow(sql("enqueue_one"), job, tenant_id, SHARDS, *item, False)
    return None if row is None else Claimable(*row)


@dataclass(frozen=True, slots=True)
class MadeInstance:
    """New instances of one job, in the order of the request; their lane, and the earliest due time."""

    ids: Sequence[int]
    lane: int
    due: datetime


async def enqueue_many(
    connection: TenantWrite,
    tenant_id: int,
    job: str,
    at: datetime | None,
    payloads: Sequence[str | None],
    *,
    sealed: SealedPaths = None,
) -> MadeInstance | None:
    """Insert an instance of the named job for each payload, all with one time (None: now).

    Returns None if the job does not exist. With `sealed`, only an encrypted job with these search paths is found,
    otherwise only one that is not encrypted.
    """
    stored, kind = parted_payloads(payloads, sealed), (sealed is not None, list(sealed or ()))
    with quotas.translated():
        row = await connection.fetchrow(sql("enqueue_many"), job, tenant_id, SHARDS, at, stored.texts, *kind)
    if row is None:
        return None
    made = MadeInstance(*row)
    await stored.index(connection, made.ids)
    return made


async def job_of(connection: TenantRead, instance_id: int) -> int:
    """Return the job of an instance that the caller's transaction has just inserted."""
    return await connection.fetchval(sql("job_of"), instance_id)


async def accept_version(connection: TenantWrite, versions: Mapping[int, int | None]) -> None:
    """Set the version of live instances that the caller has locked and is going to end; None keeps the version."""
    await connection.execute(sql("accept_version"), list(versions), list(versions.values()))
