"""Response models of many runs at once."""

from datetime import datetime
from typing import Annotated

from horai.features.workflow.wire import NodeStateName, StartedStateName
from horai.wire.encode import From
from horai.wire.fields import Id, Model


class GridRunOut(Model):
    """A run of a grid."""

    id: Id
    state: StartedStateName
    fire_time: datetime
    created_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    generation: int
    version: int


class MapCountOut(Model):
    """The items of a map. `total` is null until the node starts; `failed` of the `done` items did not succeed."""

    total: int | None
    done: Annotated[int, From("ended")]
    failed: int


class GridNodeOut(Model):
    """A node with its state in each run, in the order of `runs`; null where the run does not have the node.

    `maps` has the counts in the same order; it is null if the node was a map in none of the runs.
    """

    name: str
    states: list[NodeStateName | None]
    maps: list[MapCountOut | None] | None


class GridOut(Model):
    """The last runs of a workflow, newest fire time first, and its nodes in the order of the graph.

    Nodes that the workflow no longer has are last.
    """

    runs: list[GridRunOut]
    nodes: list[GridNodeOut]


class NodeRunOut(Model):
    """A node in one run. `durationMs`: of its last attempt, or of a map from its start to its end; null until then.

    It is also null if the history of the instance was dropped.
    """

    run_id: Id
    fire_time: datetime
    run_state: StartedStateName
    state: Annotated[NodeStateName, From("state_name")]
    instance_id: Id | None
    generation: int
    attempt: int | None
    error_code: Annotated[str | None, From("fault_code")]
    started_at: Annotated[datetime | None, From("claimed_at")]
    finished_at: datetime | None
    duration_ms: int | None
    map: MapCountOut | None


class NodeRunList(Model):
    """A node over the last runs, newest fire time first."""

    items: list[NodeRunOut]
