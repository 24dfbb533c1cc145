"""Read the instances related to one instance: one function per statement of sql/instance_relations.sql."""

from dataclasses import dataclass

from horai.core.states import State
from horai.core.workflow_neighbour import Parent
from horai.db.catalog import sql
from horai.db.pool import Connection


@dataclass(frozen=True, slots=True)
class RunOf:
    """Which node of which run of a workflow an instance is."""

    run_id: int
    workflow_id: int
    workflow: str
    node: str


async def run_of_instance(connection: Connection, instance_id: int) -> RunOf | None:
    """Its place in a workflow, if it has one."""
    row = await connection.fetchrow(sql("run_of_instance"), instance_id)
    return None if row is None else RunOf(*row.values())


@dataclass(frozen=True, slots=True)
class Kin:
    """What comes right before and right behind an instance in its run."""

    parents: tuple[Parent, ...] = ()
    children: tuple[Parent, ...] = ()


async def kin_of_instance(connection: Connection, instance_id: int) -> Kin:
    """Its neighbours in its workflow."""
    found: dict[bool, list[Parent]] = {True: [], False: []}
    for is_parent, name, id_, state in await connection.fetch(sql("kin_of_instance"), instance_id):
        found[is_parent].append(Parent(name, id_, None if state is None else State(state)))
    return Kin(tuple(found[True]), tuple(found[False]))


@dataclass(frozen=True, slots=True)
class Successors:
    """What was made of an instance anew, by id."""

    replays: tuple[int, ...]
    superseded_by: tuple[int, ...]


async def successors_of(connection: Connection, instance_id: int, job_id: int, key: str | None) -> Successors:
    """Its replays, and what has superseded it."""
    rows = await connection.fetch(sql("successors_of"), instance_id, job_id, key)
    replays = tuple(row["id"] for row in rows if row["is_replay"])
    return Successors(replays, tuple(row["id"] for row in rows if not row["is_replay"]))
