"""Health, nodes and problems on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from horai.wire.encode import From
from horai.wire.fields import Id, Model
from horai.wire.sentences import Sentence


class ShardCounts(Model):
    """The number of shards that a node holds, by duty."""

    dispatch: int
    trigger: int


class NodeOut(Model):
    """A live node. A draining node finishes its running attempts and claims no others.

    `inFlight` of its `slots` are in use, as of its last heartbeat. `handlers` are the functions that it has: null if it
    has not reported them, or has more than a hundred.
    """

    incarnation: Id
    name: str
    host: str
    pid: int
    version: str
    started_at: datetime
    lease_until: datetime
    roles: list[str]
    draining: Annotated[bool, From("is_draining")]
    in_flight: int
    slots: int
    handlers: list[str] | None
    shards: ShardCounts


class LostNodeOut(Model):
    """A node that missed its lease. Since `fencedAt` it may claim nothing; since `rescuedAt` others have its work."""

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
    """All live nodes, and at most 20 nodes that were lost in the last 24 hours."""

    items: list[NodeOut]
    lost: list[LostNodeOut]
    next_cursor: None


class ShardOut(Model):
    """A shard's lease. Without a node the shard is free. Every takeover gets a new epoch."""

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
    """A reason why the scheduler is degraded, or an action of the governor, in one sentence."""

    text: str
    text_said: Sentence


class HeldHostOut(Model):
    """A host whose calls wait, on one node and for one tenant.

    `state`: its circuit breaker is `OPEN`, `HALF_OPEN` or `RAMPING`; it has closed, and calls that it held come back
    (`RECOVERING`); as many calls as allowed are under way and in line (`FULL`); or retries have reached their share
    (`RETRIES_HELD`). `nextTry`: the next probe or look, or the end of the line.
    """

    tenant: str
    host: str
    state: Literal["OPEN", "HALF_OPEN", "RAMPING", "FULL", "RECOVERING", "RETRIES_HELD"]
    since: datetime
    next_try: datetime
    node: str


class HealthThresholds(Model):
    """The thresholds of the governor: a figure beyond its threshold begins a mode."""

    trigger_delay_p95_ms: Annotated[float, From("delay_p95_ms")]
    run_success_rate_10m: Annotated[float, Field(alias="runSuccessRate10m"), From("success_rate")]
    retry_backlog: int
    dlq_growth_per_min: Annotated[int, From("dead_letters")]


class LastBackupOut(Model):
    """The last backup of the embedded database, and the failure after it, if there was one. `age` is in seconds."""

    success_at: datetime | None
    path: str | None
    size: int | None
    age: float | None
    failed_at: datetime | None
    error: str | None


class ReadReplicaOut(Model):
    """A standby that answers lists for the node that answers this request.

    `lag` is in seconds: the standby shows every write that is older. Null if it does not answer. A standby that is not `used`
    has a `problem`, and the primary answers in its place.
    """

    host: str
    used: Annotated[bool, From("is_used")]
    lag: float | None
    problem: str | None


class HealthOut(Model):
    """The health of all nodes together, except for `holdsLease` and `readReplicas`, which are about the node that answers.

    The figures are those of the caller's tenant: delays of the last 5 minutes, outcomes of the last 10. A caller of the
    platform, and every caller of a server without keys, sees those of all tenants, and `unsettled`, `lateResults` and
    `releasedClaims`, which are null for others. `modes` and `actions` are those of the governor; the time that a limit, a pause
    or a mode kept an instance from starting is no trigger delay. `lastBackup` and `readReplicas` are shown to the platform only.
    """

    status: Literal["UP", "DEGRADED"]
    reasons: list[Reason]
    modes: list[str]
    trigger_delay_p50_ms: float
    trigger_delay_p95_ms: float
    trigger_delay_p99_ms: float
    run_success_rate_10m: Annotated[float, Field(alias="runSuccessRate10m")]
    retry_backlog: int
    in_flight: int
    unsettled: int | None
    late_results: int | None
    released_claims: int | None
    actions: list[Reason]
    thresholds: HealthThresholds
    overdue_loops: Annotated[list[str], From("overdue")]
    holds_lease: bool
    dlq_growth_per_min: int
    nodes: list[NodeOut]
    held_hosts: list[HeldHostOut]
    version: str
    notices: list[str]
    last_backup: LastBackupOut | None
    read_replicas: list[ReadReplicaOut]


class FieldProblem(Model):
    """The error of one field. `position` is the index of the first wrong character, for example in a cron."""

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
