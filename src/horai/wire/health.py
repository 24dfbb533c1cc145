"""Health, nodes and problems on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from horai.wire.fields import Id, Model
from horai.wire.sentences import Sentence


class ShardCounts(Model):
    """How many shards a node holds, by duty."""

    dispatch: int
    trigger: int


class NodeOut(Model):
    """A live node; one that drains finishes what it has begun and takes nothing more.

    `inFlight` of its `slots` are taken, as of its last beat. `handlers` are the functions it has: null when it has not said,
    or has more than a hundred.
    """

    incarnation: Id
    name: str
    host: str
    pid: int
    version: str
    started_at: datetime
    lease_until: datetime
    roles: list[str]
    draining: bool
    in_flight: int
    slots: int
    handlers: list[str] | None
    shards: ShardCounts


class LostNodeOut(Model):
    """A node that missed its lease: `fencedAt` since when it may claim nothing, `rescuedAt` since when its work is with others."""

    incarnation: Id
    name: str
    host: str
    pid: int
    roles: list[str]
    started_at: datetime
    lease_until: datetime
    fenced_at: datetime | None
    rescued_at: datetime | None


class NodeList(Model):
    """All live nodes, and those that were lost in the last 24 hours, at most 20."""

    items: list[NodeOut]
    lost: list[LostNodeOut]
    next_cursor: None


class ShardOut(Model):
    """A shard's lease; without a node it is free. Every take-over has a new epoch."""

    name: str
    duty: Literal["dispatch", "trigger"]
    shard: int
    node: Id | None
    node_name: str | None
    epoch: int
    lease_until: datetime | None


class ShardList(Model):
    """All shards of all duties."""

    items: list[ShardOut]
    next_cursor: None


class Reason(Model):
    """Why the scheduler is degraded, in one sentence."""

    text: str
    text_said: Sentence


class HealthOut(Model):
    """How the scheduler is doing: all its nodes together, but for `holdsLease`, which is of the one that answers."""

    status: Literal["UP", "DEGRADED"]
    reasons: list[Reason]
    modes: list[str]
    trigger_delay_p50_ms: float
    trigger_delay_p95_ms: float
    trigger_delay_p99_ms: float
    run_success_rate_10m: Annotated[float, Field(alias="runSuccessRate10m")]
    retry_backlog: int
    dlq_growth_per_min: int
    in_flight: int
    unsettled: int
    late_results: int
    released_claims: int
    actions: list[str]
    overdue_loops: list[str]
    holds_lease: bool
    nodes: list[NodeOut]
    version: str
    notices: list[str]


class FieldProblem(Model):
    """What is wrong with one field; `position` is the index of the first character that is wrong, as in a cron."""

    field: str
    message: str
    message_said: Sentence | None = None
    position: int | None = None


class Problem(Model):
    """RFC 9457, `application/problem+json`."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    type: str
    title: str
    status: int
    code: str
    detail: str
    detail_said: Sentence | None = None
    hint: str | None = None
    hint_said: Sentence | None = None
    errors: list[FieldProblem] | None = None
    instance_id: str | None = None
    job_id: str | None = None
    state: Any = None
    idempotency_key: str | None = None
