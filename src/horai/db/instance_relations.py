"""The instances related to one instance: one function per statement of sql/instance_relations.sql."""

from dataclasses import dataclass

from horai.core.states import State
from horai.core.workflow_neighbour import Parent
from horai.db.catalog import sql
from horai.db.pool import TenantRead


@dataclass(frozen=True, slots=True)
class RunOf:
    """The workflow run of an instance, and its node in that run."""

    run_id: int
    workflow_id: int
    workflow: str
    node: str


async def run_of_instance(connection: TenantRead, instance_id: int) -> RunOf | None:
    """Return the workflow run of an instance, or None."""
    row = await connection.fetchrow(sql("run_of_instance"), instance_id)
    return None if row is None else RunOf(*row.values())


@dataclass(frozen=True, slots=True)
class Kin:
    """The direct parents and children of an instance in its workflow run."""

    parents: tuple[Parent, ...] = ()
    children: tuple[Parent, ...] = ()


async def kin_of_instance(connection: TenantRead, instance_id: int) -> Kin:
    """Return the direct parents and children of an instance in its workflow run."""
    found: dict[bool, list[Parent]] = {True: [], False: []}
    for is_parent, name, id_, state in await connection.fetch(sql("kin_of_instance"), instance_id):
        found[is_parent].append(Parent(name, id_, None if state is None else State(state)))
    return Kin(tuple(found[True]), tuple(found[False]))


@dataclass(frozen=True, slots=True)
class Successors:
    """The ids of the replays of an instance, and of the instances that superseded it."""

    replays: tuple[int, ...]
    superseded_by: tuple[int, ...]


async def successors_of(connection: TenantRead, instance_id: int, job_id: int, key: str | None) -> Successors:
    """Return the replays of an instance and the instances that superseded it, at most 100."""
    rows = await connection.fetch(sql("successors_of"), instance_id, job_id, key)
    replays = tuple(row["id"] for row in rows if row["is_replay"])
    return Successors(replays, tuple(row["id"] for row in rows if not row["is_replay"]))


async def caller_of(connection: TenantRead, instance_id: int) -> int | None:
    """Return the instance whose durable function has called this one; None if none has."""
    return await connection.fetchval(sql("caller_of"), instance_id)


@dataclass(frozen=True, slots=True)
class AwaitedChild:
    """A live instance that a durable function has called, and its job."""

    id: int
    job: str


async def children_awaited(connection: TenantRead, instance_id: int, limit: int) -> tuple[AwaitedChild, ...]:
    """Return at most `limit` live instances that the function of an instance has called."""
    return tuple(
        AwaitedChild(*row.values()) for row in await connection.fetch(sql("children_awaited"), instance_id, limit)
    )
