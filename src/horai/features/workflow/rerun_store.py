"""Reads and user operations of runs: one function per statement of features/workflow/rerun_store.sql."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from horai.core.bounded_count import COUNTED, BoundedCount
from horai.core.job import stored_retry
from horai.core.retry import RetryPolicy
from horai.core.states import CancelReason, State
from horai.core.stored_text import TRUNCATED
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.instance_lists import PageStart
from horai.db.instance_queries import FIRST, LAST
from horai.db.pool import TenantRead, TenantWrite
from horai.features.workflow.child_settings import ChildSettings, stored_child
from horai.features.workflow.graph import RunState
from horai.features.workflow.map_settings import MapSettings, stored_map
from horai.features.workflow.map_store import MapState
from horai.features.workflow.run_store import SLACK, map_state
from horai.features.workflow.sensor_settings import SensorSettings, stored_sensor
from horai.features.workflow.trigger_rules import NODE_FAULTS, NodeCause, TriggerRule


@dataclass(frozen=True, slots=True)
class RunRow:
    """A stored run."""

    id: int
    workflow_id: int
    fire_time: datetime
    state: RunState
    generation: int
    version: int
    payload: str | None
    created_at: datetime
    finished_at: datetime | None
    is_given_up: bool = False
    interval_start: datetime | None = None

    @property
    def duration_ms(self) -> int | None:
        """Return the milliseconds from the creation of the run to its end; None until then."""
        return _millis_between(self.created_at, self.finished_at)


def _millis_between(began: datetime | None, ended: datetime | None) -> int | None:
    """Return a duration; None until it has ended. Both instants come from the clock of the database."""
    return None if began is None or ended is None else max((ended - began) // timedelta(milliseconds=1), 0)


def _run(row: asyncpg.Record) -> RunRow:
    return RunRow(
        row["id"],
        row["workflow_id"],
        row["fire_time"],
        RunState(row["phase"]),
        row["generation"],
        row["version"],
        row["payload"],
        row["created_at"],
        row["finished_at"],
        row["given_up"],
        row["interval_start"],
    )


async def lock_run(connection: TenantWrite, workflow_id: int, run_id: int) -> RunRow | None:
    """Lock a run until commit and return it; wait for a transaction that is deciding on it."""
    row = await connection.fetchrow(sql("lock_run"), run_id, workflow_id)
    return _run(row) if row else None


@dataclass(frozen=True, slots=True)
class RetiredNode:
    """A node that a rerun replaces: its instance, and its own payload, retry policy and map."""

    instance_id: int
    payload: str | None
    retry: RetryPolicy | None
    map: MapSettings | None = None
    produces: tuple[str, ...] = ()
    child: ChildSettings | None = None
    sensor: SensorSettings | None = None


async def retire_nodes(connection: TenantWrite, run_id: int, names: Collection[str]) -> dict[str, RetiredNode]:
    """Mark nodes as replaced by a rerun; return them by name."""
    rows = await connection.fetch(sql("retire_nodes"), run_id, list(names))
    return {
        row["name"]: RetiredNode(
            row["instance_id"],
            row["payload"],
            stored_retry(row["retry"]),
            stored_map(row["map"]),
            tuple(row["produces"] or ()),
            stored_child(row["child"]),
            stored_sensor(row["sensor"]),
        )
        for row in rows
    }


async def delay_starts(connection: TenantWrite, instance_ids: Sequence[int], at: datetime) -> list[Claimable]:
    """Let instances that this transaction has made due start at a time; return them."""
    rows = await connection.fetch(sql("delay_starts"), list(instance_ids), at)
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def reopen_run(connection: TenantWrite, run_id: int) -> None:
    """Set a run to RUNNING again, with the next generation."""
    await connection.execute(sql("reopen_run"), run_id)


async def give_up_run(connection: TenantWrite, run_id: int) -> None:
    """Mark a run as given up: nodes that have not started will not start."""
    await connection.execute(sql("give_up_run"), run_id)


async def find_run(connection: TenantRead, workflow_id: int, run_id: int) -> RunRow | None:
    """Return one run of a workflow; None if there is none with this id."""
    row = await connection.fetchrow(sql("find_run"), run_id, workflow_id)
    return _run(row) if row else None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """The filter of a list of runs: one state or any, and fire times from `from_time` to before `to_time`."""

    state: RunState | None = None
    from_time: datetime | None = None
    to_time: datetime | None = None

    @property
    def times(self) -> tuple[datetime, datetime]:
        """Return both bounds of the fire time; without one, a time before or after all runs."""
        return self.from_time or FIRST[0], self.to_time or LAST[0]


ANY_RUN = RunFilter()


async def list_runs(
    connection: TenantRead, workflow_id: int, start: PageStart, limit: int, only: RunFilter = ANY_RUN
) -> list[RunRow]:
    """Return a page of the runs of a workflow by fire time that starts after `start`."""
    given = (workflow_id, *start.at, limit, *only.times)
    if only.state is None:
        rows = await connection.fetch(sql("list_runs_upwards" if start.upwards else "list_runs"), *given)
    else:
        statement = sql("list_runs_in_upwards" if start.upwards else "list_runs_in")
        rows = await connection.fetch(statement, *given, int(only.state))
    return [_run(row) for row in rows]


async def count_runs(connection: TenantRead, workflow_id: int, only: RunFilter) -> BoundedCount:
    """Count the matching runs of a workflow, at most `COUNTED`."""
    phases = [int(state) for state in (RunState if only.state is None else (only.state,))]
    found = await connection.fetchval(sql("count_runs"), workflow_id, phases, *only.times, COUNTED + 1)
    return BoundedCount.of(found, found, COUNTED)


async def runs_matching(
    connection: TenantRead,
    workflow_id: int,
    page: tuple[int, int],
    states: Sequence[RunState],
    only: RunFilter,
    ids: Sequence[int] | None,
) -> list[int]:
    """Return the ids of unfinished runs in these states by id; `page` is the id before them and their number."""
    (after, limit), phases = page, [int(state) for state in states]
    rows = await connection.fetch(sql("runs_matching"), workflow_id, after, phases, *only.times, limit, ids)
    return [row["id"] for row in rows]


async def pending_runs(
    connection: TenantRead, workflow_id: int, page: tuple[int, int], only: RunFilter, ids: Sequence[int]
) -> list[int]:
    """Return those of the ids whose runs have not started, by id; `page` is the id before them and their number."""
    after, limit = page
    rows = await connection.fetch(sql("pending_runs"), workflow_id, after, list(ids), *only.times, limit)
    return [row["id"] for row in rows]


async def last_runs(connection: TenantRead, workflow_ids: Collection[int]) -> dict[int, RunRow]:
    """Return the run with the newest fire time of each workflow that has a run, by workflow id."""
    rows = await connection.fetch(sql("last_runs"), list(workflow_ids))
    return {row["workflow_id"]: _run(row) for row in rows}


@dataclass(frozen=True, slots=True)
class ChildRun:
    """The run of another workflow that a node waits for. `id` is None until it is started; `attempt` counts its runs."""

    workflow: str
    id: int | None
    attempt: int


@dataclass(frozen=True, slots=True)
class SensorNow:
    """A sensor in a run: how often it has asked, when it gives up, and when it asks next."""

    settings: SensorSettings
    polls: int
    deadline_at: datetime | None
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class NodeNow:
    """A node of a run with the known data of its instance."""

    name: str
    job: str
    job_id: int
    instance_id: int
    after: tuple[str, ...]
    generation: int
    state: State
    reason: CancelReason | None
    attempt: int | None
    error_code: str | None
    error_msg: str | None
    claimed_at: datetime | None
    finished_at: datetime | None
    result: str | None
    is_sealed: bool = False
    """Its job is encrypted."""
    rule: TriggerRule = TriggerRule.ALL_SUCCESS
    cause: NodeCause | None = None
    chosen: tuple[str, ...] | None = None
    """The nodes directly after it that it chose; None for all of them."""
    map: MapState | None = None
    """Its items, if it is a map. It has no instance then."""
    fault_id: int | None = None
    """Of a dead map, the instance to look at: that of the first item that failed, or that of the missing list."""

    child: ChildSettings | None = None
    """Set if it starts a run of the workflow `job`."""
    child_attempt: int | None = None
    """The number of runs that it has started."""
    has_child: bool = False
    """Its run has been started; it has the id of the instance."""
    sensor: SensorNow | None = None
    """Set if it asks for a condition again and again."""

    @property
    def child_run(self) -> "ChildRun | None":
        """Return the run that the node waits for; None for an ordinary node."""
        if self.child is None:
            return None
        return ChildRun(self.job, self.instance_id if self.has_child else None, self.child_attempt or 1)

    @property
    def own_instance(self) -> int | None:
        """Return the instance of the node; None for a map, which has one for each item."""
        return self.instance_id if self.map is None else None

    @property
    def is_skipped(self) -> bool:
        """Return whether the node was skipped; its state is CANCELLED then."""
        return self.cause is not None and self.cause.is_skip

    @property
    def state_name(self) -> str:
        """Return the state of the node: that of its instance, or SKIPPED."""
        return "SKIPPED" if self.is_skipped else self.state.name

    @property
    def fault_code(self) -> str | None:
        """Return the error code of the node."""
        fault = None if self.cause is None else NODE_FAULTS.get(self.cause)
        return self.error_code if fault is None else fault.code

    @property
    def fault_message(self) -> str | None:
        """Return the error message of the node."""
        fault = None if self.cause is None else NODE_FAULTS.get(self.cause)
        return self.error_msg if fault is None else fault.message

    @property
    def kept_result(self) -> str | None:
        """Return the result, if all of it was stored."""
        return None if self.result == TRUNCATED else self.result

    @property
    def duration_ms(self) -> int | None:
        """Return the milliseconds of its last attempt; None until that has ended."""
        return _millis_between(self.claimed_at, self.finished_at)


async def nodes_now(connection: TenantRead, run: RunRow) -> list[NodeNow]:
    """Return the nodes of a run. If the instance of a node is gone, the node has the state it was last seen in."""
    rows = await connection.fetch(sql("run_nodes_now"), run.id, run.created_at - SLACK)
    return [_node_now(row, run.id) for row in rows]


def _node_now(row: asyncpg.Record, run_id: int) -> NodeNow:
    numbers = (row["ended"] if row["cause"] is not None else row["state"], row["ended"], row["state"], int(State.DEAD))
    return NodeNow(
        row["name"],
        row["job"],
        row["job_id"],
        row["instance_id"],
        tuple(row["after"]),
        row["generation"],
        State(next(number for number in numbers if number is not None)),
        None if row["reason"] is None else CancelReason(row["reason"]),
        row["attempt"],
        row["error_code"],
        row["error_msg"],
        row["claimed_at"],
        row["finished_at"],
        row["result"],
        row["encrypted"],
        TriggerRule(row["trigger_rule"]),
        None if row["cause"] is None else NodeCause(row["cause"]),
        None if row["chosen"] is None else tuple(row["chosen"]),
        map_state(row, run_id),
        row["fault_id"],
        stored_child(row["child"]),
        row["child_attempt"],
        row["has_child"],
        _sensor_now(row),
    )


def _sensor_now(row: asyncpg.Record) -> SensorNow | None:
    settings = stored_sensor(row["sensor"])
    if settings is None:
        return None
    return SensorNow(settings, row["attempt"] or 0, row["expires_at"], row["due"] if row["state"] in (0, 3) else None)
