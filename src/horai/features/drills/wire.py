"""Reports of drills on the wire: the JSON that `horai drill` writes."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.encode import As
from horai.wire.fields import Id, Instant, Model, Text, raw_json

DrillKind = Literal["node", "primary", "standby", "zone"]
Line = Annotated[Text, Field(max_length=500)]
Lines = Annotated[list[Annotated[Text, Field(max_length=2_000)]], Field(max_length=10)]
Count = Annotated[int, Field(ge=0, le=10**12)]
Seconds = Annotated[float, Field(ge=0, le=10**9)]


class DrillPromise(Model):
    """One promise: its limit, the measured value, and whether it was kept."""

    promise: Line
    limit: Line
    measured: Line
    kept: bool


class DrillStep(Model):
    """A step of a drill. `second`: seconds after the failure."""

    second: float = Field(ge=-(10**9), le=10**9)
    step: Line


class DrillReport(Model):
    """`POST /api/v1/drills`: a report as `horai drill` writes it to `DATE-KIND.json`.

    `cluster` and `move` are null for a drill that started a cluster of its own, `leaseSeconds` for one on an existing cluster.
    """

    kind: DrillKind
    cluster: Line | None = None
    move: Literal["switchover", "failover"] | None = None
    failed_at: Instant
    horai: Line
    machine: Line
    replication: Line
    lease_seconds: Seconds | None
    rate_per_second: Count
    rto_seconds: Seconds
    writes_paused_seconds: Seconds
    work_delayed_seconds: Seconds
    rpo_seconds: Seconds
    acknowledged: Count
    refused: Count
    calls: Count
    lost: Count
    lost_instances: Lines
    repeated_in_flight: Count
    repeated_outside_flight: Count
    repeated_instances: Lines
    dead_letters: Count
    dead_letters_lost: Count
    violations: Lines
    promises: list[DrillPromise] = Field(min_length=1, max_length=20)
    kept: bool
    steps: list[DrillStep] = Field(max_length=100)


class DrillOut(Model):
    """A report in a list. `kept`: every promise was kept."""

    id: Id
    kind: DrillKind
    cluster: str | None
    failed_at: datetime
    rto_seconds: float
    rpo_seconds: float
    kept: bool
    filed_at: datetime
    filed_by: str


class DrillDetail(DrillOut):
    """A report as it was filed."""

    report: Annotated[DrillReport, As(raw_json)]


class DrillList(Model):
    """A page of reports, the newest filed first."""

    items: list[DrillOut]
    next_cursor: str | None
