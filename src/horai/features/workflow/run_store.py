"""Runs of workflows: one function per statement of features/workflow/run_store.sql."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta

import asyncpg

from horai.core.assets import METADATA_LIMIT
from horai.core.job import retry_document, stored_retry
from horai.core.limits import SHARDS
from horai.core.retry import RetryPolicy
from horai.core.sealed_values import is_sealed
from horai.core.states import CancelReason, State
from horai.core.stored_text import TRUNCATED
from horai.db.catalog import sql
from horai.db.claims import Claim, Claimable
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead
from horai.features.workflow.child_settings import ChildSettings, stored_child
from horai.features.workflow.graph import RunState
from horai.features.workflow.map_settings import stored_map
from horai.features.workflow.map_store import MapKey, MapState
from horai.features.workflow.sensor_settings import SensorSettings, stored_sensor
from horai.features.workflow.store import NodeRow, WorkflowRow
from horai.features.workflow.trigger_rules import NodeCause, TriggerRule

SLACK = timedelta(days=1)
"""The largest clock difference: a node ends after its run began, by clocks that differ by less than this."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """The start of a run by an instance of the job of its workflow."""

    instance_id: int
    fire_time: datetime
    payload: str | None
    interval_start: datetime | None = None
    """The start of the data interval of the run, which ends at the fire time; None if there is none."""


async def insert_run(connection: Platform, workflow: WorkflowRow, start: RunStart) -> bool:
    """Insert a run; return False if this instance has started it before."""
    row = (start.instance_id, workflow.id, start.fire_time, workflow.version, start.payload, start.interval_start)
    return await connection.fetchval(sql("insert_run"), *row) is not None


@dataclass(frozen=True, slots=True)
class NewNodes:
    """Nodes that need instances. Those in `ready` are due at once; the others wait for their parents."""

    run: RunStart
    nodes: Sequence[NodeRow]
    ready: frozenset[str]
    generation: int = 0


async def make_nodes(connection: AnyWrite, new: NewNodes) -> list[Claimable]:
    """Create an instance per node, except for maps, and return the claimable ones.

    Raises an error if a payload was not sealed.
    """
    given = [row.node.payload for row in new.nodes if row.is_sealed]
    if not all(payload is None or is_sealed(payload) for payload in given):
        raise RuntimeError("a payload of an encrypted job was not sealed")
    rows = await connection.fetch(
        sql("make_nodes"),
        new.run.instance_id,
        new.generation,
        new.run.fire_time,
        [row.node.name for row in new.nodes],
        [row.job_id for row in new.nodes],
        [row.node.name in new.ready for row in new.nodes],
        [",".join(row.node.after) for row in new.nodes],
        [row.node.payload for row in new.nodes],
        new.run.payload,
        SHARDS,
        [int(row.node.rule) for row in new.nodes],
        [None if row.node.retry is None else json.dumps(retry_document(row.node.retry)) for row in new.nodes],
        [None if row.node.map is None else json.dumps(row.node.map.document) for row in new.nodes],
        [" ".join(row.node.produces) or None for row in new.nodes],
        [None if row.node.child is None else json.dumps(row.node.child.document) for row in new.nodes],
        [None if row.node.sensor is None else json.dumps(row.node.sensor.document) for row in new.nodes],
        [None if row.node.sensor is None else row.node.sensor.deadline for row in new.nodes],
    )
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that this transaction has locked to decide on it."""

    id: int
    created_at: datetime
    tenant_id: int
    job_id: int
    workflow: str
    was_given_up: bool
    is_deleted: bool
    """Its workflow is deleted."""
    is_settled: bool
    """The instance that started it has ended."""
    is_gated: bool
    """Slots of its workflow can be waiting for its end."""
    fire_time: datetime
    is_producer: bool = False
    """Its success updates assets."""
    phase: int = 0
    """Its state before the decision."""
    is_child: bool = False
    """A node of another run has started it and waits for it."""

    @property
    def is_given_up(self) -> bool:
        """True if nodes that are not running must not start any more."""
        return self.was_given_up or self.is_deleted

    @property
    def reason(self) -> CancelReason:
        """The reason for cancelling nodes of this run."""
        if self.is_deleted:
            return CancelReason.JOB_DELETED
        return CancelReason.USER if self.was_given_up else CancelReason.PARENT


async def lock_runs(connection: AnyWrite, run_ids: Collection[int]) -> list[HeldRun]:
    """Lock the unfinished runs that no other transaction holds, until commit, and return them."""
    return [HeldRun(*row.values()) for row in await connection.fetch(sql("lock_runs"), list(run_ids))]


async def open_runs(connection: AnyRead, run_ids: Collection[int]) -> set[int]:
    """Return the unfinished runs among these, locked or not."""
    return {row["id"] for row in await connection.fetch(sql("open_runs"), list(run_ids))}


@dataclass(frozen=True, slots=True)
class RunNode:
    """A node of a run; `ended` is the recorded final state of its instance, if any."""

    run_id: int
    name: str
    instance_id: int
    after: tuple[str, ...]
    ended: State | None = None
    sealed_for: str | None = None
    """The name of its job if the job is encrypted."""
    rule: TriggerRule = TriggerRule.ALL_SUCCESS
    cause: NodeCause | None = None
    chosen: tuple[str, ...] | None = None
    """Those directly after it that it chose; None for all of them."""
    map: MapState | None = None
    """Its items, if it is a map. It has no instance then: `instance_id` is only reserved."""
    is_producer: bool = False
    """Its success updates assets."""
    child: ChildSettings | None = None
    """Set if it starts a run of another workflow, which has the id of its instance."""
    child_attempt: int | None = None
    """The number of runs that it has started."""
    retry: RetryPolicy | None = None
    """When it starts another run after a failed one; None for never, and for an ordinary node."""
    sensor: SensorSettings | None = None
    """Set if it asks for a condition again and again."""


async def nodes_of_runs(connection: AnyRead, run_ids: Collection[int]) -> list[RunNode]:
    """Return the current nodes of runs."""
    return [
        RunNode(
            row["run_id"],
            row["name"],
            row["instance_id"],
            tuple(row["after"]),
            None if row["ended"] is None else State(row["ended"]),
            row["sealed_for"],
            TriggerRule(row["trigger_rule"]),
            None if row["cause"] is None else NodeCause(row["cause"]),
            None if row["chosen"] is None else tuple(row["chosen"]),
            map_state(row, row["run_id"]),
            row["is_producer"],
            stored_child(row["child"]),
            row["child_attempt"],
            stored_retry(row["retry"]),
            stored_sensor(row["sensor"]),
        )
        for row in await connection.fetch(sql("nodes_of_runs"), list(run_ids))
    ]


def map_state(row: asyncpg.Record, run_id: int) -> MapState | None:
    """Return the map that a row of a node describes; None for an ordinary node."""
    settings = stored_map(row["map"])
    if settings is None:
        return None
    key = MapKey(run_id, row["name"], row["generation"])
    counts = (row["map_total"], row["map_made"], row["map_ended"], row["map_failed"])
    return MapState(settings, key, row["job_id"], *counts)


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of an instance, and its error code if it failed. `result` is read only if it may direct the run."""

    state: State
    error_code: str | None = None
    result: str | None = None
    reason: CancelReason | None = None


GONE = Seen(State.DEAD, "GONE")
"""An instance that is in neither table: its row was deleted by hand, so its result is unknown."""


async def states_of(
    connection: AnyRead, instance_ids: Collection[int], since: datetime, sealed: Collection[int] = ()
) -> dict[int, Seen]:
    """Return the states of instances, none of which ended before `since`, and the results of those that are `sealed`.

    Reads the live table first and history in a later statement: a row that moves in between is seen in one of the two.
    """
    if not instance_ids:
        return {}
    seen = {
        row["id"]: Seen(State(row["state"])) for row in await connection.fetch(sql("live_states"), list(instance_ids))
    }
    if missing := [i for i in instance_ids if i not in seen]:
        for row in await connection.fetch(sql("final_states"), missing, since - SLACK, list(sealed)):
            reason = None if row["reason"] is None else CancelReason(row["reason"])
            seen[row["id"]] = Seen(State(row["state"]), row["error_code"], row["result"], reason)
    return {i: seen.get(i, GONE) for i in instance_ids}


async def replays_of(connection: AnyRead, dead: Collection[int]) -> dict[int, int]:
    """Return the ids of replays by the ids of their dead instances; instances without a replay are left out."""
    rows = await connection.fetch(sql("replays_of"), list(dead)) if dead else ()
    return {row["replay_of"]: row["id"] for row in rows}


async def follow_replays(connection: AnyWrite, replays: Mapping[int, int], deadlines: Mapping[int, timedelta]) -> None:
    """Point nodes to the replays of their dead instances; those of sensors have `deadlines`, by dead instance."""
    lasts = [deadlines.get(dead) for dead in replays]
    await connection.execute(sql("follow_replays"), list(replays), list(replays.values()), lasts)


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """The end of a node. `cause` is set if its instance does not say it; `chosen` if it chose among the nodes after it."""

    state: State
    cause: NodeCause | None = None
    chosen: tuple[str, ...] | None = None


async def note_ends(connection: AnyWrite, ends: Mapping[int, NodeEnd]) -> None:
    """Record the ends of nodes by the ids of their instances."""
    await connection.execute(
        sql("note_ends"),
        list(ends),
        [int(end.state) for end in ends.values()],
        [None if end.cause is None else int(end.cause) for end in ends.values()],
        [None if end.chosen is None else ",".join(end.chosen) for end in ends.values()],
    )


async def update_node_assets(connection: AnyWrite, instance_ids: Collection[int], since: datetime) -> None:
    """Update the assets of nodes whose successes this transaction records."""
    await connection.execute(sql("update_node_assets"), list(instance_ids), METADATA_LIMIT, since - SLACK)


async def update_run_assets(connection: AnyWrite, run_ids: Collection[int]) -> None:
    """Update the assets of workflows whose runs this transaction records as successful. A run updates them once."""
    await connection.execute(sql("update_run_assets"), list(run_ids))


async def results_of(connection: AnyRead, instance_ids: Collection[int], since: datetime, limit: int) -> dict[int, str]:
    """Return the results of finished instances that are at most `limit` bytes long and were not truncated."""
    rows = await connection.fetch(sql("results_of"), list(instance_ids), since - SLACK, limit)
    return {row["id"]: row["result"] for row in rows if row["result"] != TRUNCATED}


async def blocked_payloads(connection: AnyRead, instance_ids: Collection[int]) -> dict[int, str | None]:
    """Return the payloads of instances that wait for their parents."""
    rows = await connection.fetch(sql("blocked_payloads"), list(instance_ids))
    return {row["id"]: row["payload"] for row in rows}


@dataclass(frozen=True, slots=True)
class Unblock:
    """An instance whose parents are done; `payload` None keeps the payload it has."""

    instance_id: int
    run_id: int
    payload: str | None = None
    lasts: timedelta | None = None
    """The time that a sensor waits from now on."""


async def unblock(connection: AnyWrite, wishes: Sequence[Unblock]) -> list[Claimable]:
    """Move instances from BLOCKED to INIT, except those that another transaction holds; return the claimable ones."""
    rows = await connection.fetch(sql("unblock"), *map(list, zip(*map(astuple, wishes), strict=True)))
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


@dataclass(frozen=True, slots=True)
class Death:
    """A node of a run that died; `data` is the data of its event, as JSON text."""

    run: HeldRun
    instance_id: int
    data: str


async def tell_blocked(connection: AnyWrite, deaths: Sequence[Death]) -> None:
    """Insert an event WORKFLOW_BLOCKED for each death."""
    await connection.execute(
        sql("tell_blocked"),
        [death.run.tenant_id for death in deaths],
        [death.run.job_id for death in deaths],
        [death.instance_id for death in deaths],
        [death.data for death in deaths],
    )


async def set_phases(
    connection: AnyWrite, states: Mapping[int, RunState], settled: Collection[int], undecided: Collection[int]
) -> None:
    """Write the state of each run.

    `settled` are the runs whose starting instance has ended, `undecided` those of which a row was locked elsewhere.
    """
    await connection.execute(
        sql("set_phases"),
        list(states),
        [int(state) for state in states.values()],
        [run in settled for run in states],
        [run in undecided for run in states],
    )


async def give_up_runs(connection: AnyWrite, run_ids: Collection[int]) -> None:
    """Mark unfinished runs as given up: nodes that are not running will not start."""
    await connection.execute(sql("give_up_runs"), list(run_ids))


async def dead_nodes_of(connection: AnyRead, run_ids: Collection[int]) -> list[int]:
    """Return the dead instances that block runs."""
    return [row["instance_id"] for row in await connection.fetch(sql("dead_nodes_of"), list(run_ids))]


async def hand_over(connection: Platform, held: Claim) -> bool:
    """Hand a claimed instance over to the run that it started; False when the claim has ended."""
    return await connection.fetchval(sql("hand_over"), held.id, held.attempt, held.fence, held.node) is not None


async def phase_of_run(connection: Platform, run_id: int) -> RunState:
    """Return the state of an existing run; wait for a transaction that is deciding on it."""
    return RunState(await connection.fetchval(sql("phase_of_run"), run_id))


async def waiting_starters(connection: AnyRead, run_ids: Collection[int]) -> list[Claim]:
    """Return the instances that started these runs and wait for their end."""
    return [Claim(*row.values()) for row in await connection.fetch(sql("waiting_starters"), list(run_ids))]


async def runs_of(connection: Platform, instance_ids: Collection[int]) -> set[int]:
    """Return the runs of instances that are nodes, replays of nodes, or starters of a run."""
    rows = await connection.fetch(sql("runs_of"), list(instance_ids))
    if strangers := set(instance_ids) - {row["instance_id"] for row in rows}:
        rows += await connection.fetch(sql("runs_of_replays"), list(strangers))
    return {row["run_id"] for row in rows}


async def has_open_runs(connection: Platform) -> bool:
    """Return whether any run is unfinished."""
    return await connection.fetchval(sql("has_open_runs"))


async def stuck_runs(connection: Platform, after: int, limit: int, shards: Collection[int]) -> list[int]:
    """Return a page of the runs of these shards that have an open decision."""
    rows = await connection.fetch(sql("stuck_runs"), after, limit, list(shards), SHARDS, None)
    return [row["id"] for row in rows]


async def stuck_among(connection: Platform, run_ids: Collection[int]) -> list[int]:
    """Return those of the runs that have an open decision."""
    return [r["id"] for r in await connection.fetch(sql("stuck_runs"), -1, len(run_ids), [], SHARDS, list(run_ids))]


async def open_runs_of(connection: TenantRead, workflow_id: int, after: int, limit: int) -> list[int]:
    """Return a page of the unfinished runs of a workflow."""
    return [row["id"] for row in await connection.fetch(sql("open_runs_of"), workflow_id, after, limit)]
