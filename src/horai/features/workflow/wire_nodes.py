"""Models of the kinds of nodes: maps, sensors, and nodes that run other workflows."""

from datetime import datetime
from typing import Annotated, Any, Literal

from horai.wire.encode import From
from horai.wire.fields import Id, Model, Text


class MapIn(Model):
    """Run the job of a node once for each item of a list.

    The list is what the node `over` returned, the results of all items if that is a map, or the member `overPayload` of the payload of
    the run (an empty text: the payload itself). `maxConcurrency`: the most items at a time. `allowFailures`: how many may fail (default 0), as a
    number, a percentage such as `"10%"`, or `"all"`; the results of those are null. `flatten`: the list is one of lists, and the items are
    their elements.
    """

    over: Text | None = None
    over_payload: Text | None = None
    max_concurrency: int | None = None
    allow_failures: int | Text | None = None
    flatten: bool | None = None


class SensorIn(Model):
    """Run the job of a node again and again until its condition is met.

    A target says that it is not by the result `{"horai:wait": "reason"}` (HTTP: in `output`). It is asked again after `every`, 1 s to 1 d, and neither holds a
    slot nor uses up a retry meanwhile. At `deadline`, counted from the time at which the node may start, the node is DEAD with `SENSOR_DEADLINE`, or skipped if `onDeadline` is
    `skip`.
    """

    every: Text
    deadline: Text
    on_deadline: Literal["fail", "skip"] | None = None


class ParamIn(Model):
    """A parameter of the run of an inner workflow: exactly one of the three.

    `value` is a literal, `payload` a member of the payload of the run, and `resultOf` the node whose result it is.
    """

    value: Any = None
    payload: Text | None = None
    result_of: Text | None = None


class MapOut(Model):
    """The progress of a map. `total` is null until the node starts; `running` items have an instance that has not ended.

    `done` items have ended, and `failed` of them did not succeed. The counts are those of the last decision on the run, which
    is made within a second.
    """

    total: int | None
    done: Annotated[int, From("ended")]
    failed: int
    running: Annotated[int, From("open")]
    over: Annotated[str | None, From("settings.over")]
    over_payload: Annotated[str | None, From("settings.over_payload")]
    max_concurrency: Annotated[int | None, From("settings.max_concurrency")]
    allow_failures: Annotated[int | str, From("settings.allow_failures")]
    flatten: Annotated[bool, From("settings.flatten")]


class SensorOut(Model):
    """A sensor in a run. `polls` counts how often it has asked; `nextPollAt` is null while it asks, and after its end."""

    every: str
    deadline: str
    on_deadline: Literal["fail", "skip"]
    polls: int
    deadline_at: datetime | None
    next_poll_at: datetime | None


class ChildRunOut(Model):
    """The run of another workflow that a node waits for. `runId` is null until it is started; `attempt` counts the runs of the node."""

    workflow: str
    run_id: Annotated[Id | None, From("id")]
    attempt: int


class ParentNodeOut(Model):
    """The node of another run that has started a run and waits for it."""

    workflow: str
    run_id: Id
    node: str
