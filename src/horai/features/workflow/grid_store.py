"""Many runs of a workflow at once: one function per statement of features/workflow/grid_store.sql."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from horai.core.states import State
from horai.db.catalog import sql
from horai.db.pool import TenantRead
from horai.features.workflow.graph import RunState
from horai.features.workflow.rerun_store import RunRow
from horai.features.workflow.run_store import SLACK
from horai.features.workflow.trigger_rules import NODE_FAULTS, NodeCause

SKIPPED = "SKIPPED"


@dataclass(frozen=True, slots=True)
class MapCount:
    """The items of a map; `total` is None until the node starts."""

    total: int | None
    ended: int
    failed: int


@dataclass(frozen=True, slots=True)
class NodeStates:
    """A node with its state in each run that has it, by the id of the run; `maps` where it is a map."""

    name: str
    states: Mapping[int, str]
    maps: Mapping[int, MapCount]


async def grid_nodes(connection: TenantRead, runs: Sequence[RunRow]) -> list[NodeStates]:
    """Return the nodes of runs with the state of each, in no order. Finished nodes cost one row, without a look at history."""
    if not runs:
        return []
    since = min(run.created_at for run in runs) - SLACK
    skips = [int(cause) for cause in NodeCause if cause.is_skip]
    return [
        NodeStates(
            row["name"],
            {run: _state_name(state) for run, state in zip(row["runs"], row["states"], strict=True)},
            _map_counts(row),
        )
        for row in await connection.fetch(sql("grid_nodes"), [run.id for run in runs], skips, since)
    ]


def _state_name(number: int) -> str:
    return SKIPPED if number < 0 else State(number).name


def _map_counts(row: asyncpg.Record) -> dict[int, MapCount]:
    if row["map_runs"] is None:
        return {}
    counts = zip(row["map_totals"], row["map_ended"], row["map_failed"], strict=True)
    return {run: MapCount(*count) for run, count in zip(row["map_runs"], counts, strict=True)}


@dataclass(frozen=True, slots=True)
class NodeRun:
    """A node in one run of its workflow."""

    run_id: int
    fire_time: datetime
    run_state: RunState
    generation: int
    state_name: str
    instance_id: int | None
    attempt: int | None
    fault_code: str | None
    claimed_at: datetime | None
    finished_at: datetime | None
    map: MapCount | None

    @property
    def duration_ms(self) -> int | None:
        """Return the milliseconds of its last attempt, or of a map from its start to its end; None until then."""
        if self.claimed_at is None or self.finished_at is None:
            return None
        return max((self.finished_at - self.claimed_at) // timedelta(milliseconds=1), 0)


async def node_runs(connection: TenantRead, workflow_id: int, name: str, limit: int) -> list[NodeRun]:
    """Return a node in those of the last `limit` runs that have it, newest fire time first."""
    return [_node_run(row) for row in await connection.fetch(sql("node_runs"), workflow_id, name, limit, SLACK)]


def _node_run(row: asyncpg.Record) -> NodeRun:
    cause = None if row["cause"] is None else NodeCause(row["cause"])
    numbers = (row["ended"] if cause is not None else row["state"], row["ended"], row["state"], int(State.DEAD))
    state = State(next(number for number in numbers if number is not None))
    fault = None if cause is None else NODE_FAULTS.get(cause)
    return NodeRun(
        row["run_id"],
        row["fire_time"],
        RunState(row["phase"]),
        row["generation"],
        SKIPPED if cause is not None and cause.is_skip else state.name,
        row["instance_id"],
        row["attempt"],
        row["error_code"] if fault is None else fault.code,
        row["claimed_at"],
        row["finished_at"],
        MapCount(row["map_total"], row["map_ended"], row["map_failed"]) if row["is_map"] else None,
    )
