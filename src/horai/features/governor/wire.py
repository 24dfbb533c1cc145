"""The governor on the wire."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Model, Note, Text
from horai.wire.health import Reason

ModeName = Literal["SHED_LOW", "RETRY_LIMITED", "RETRY_SHORT_FIRST", "CORE_ONLY"]
Frozen = Literal["low-priority", "backfill"]


class ThresholdsIn(Model):
    """`PUT /api/v1/scheduler/thresholds`: the settings of the rules. A missing field gets its default.

    `triggerDelayP95` and `triggerDelayFor`: delay of starts above which low priority is halved at once, and paused after that
    time. `clearFor`: time for which a figure is clear until a mode ends. `minStarts` and `minOutcomes`: samples below which a
    figure says nothing. `dryRun`: only report what the rules would do.
    """

    trigger_delay_p95: Annotated[Text, Field(alias="triggerDelayP95")] = "2s"
    trigger_delay_for: Text = "5m"
    run_success_rate_10m: Annotated[float, Field(alias="runSuccessRate10m", gt=0, lt=1)] = 0.995
    retry_backlog: Annotated[int, Field(ge=1, le=1_000_000_000)] = 200_000
    dlq_growth_per_min: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1_000
    clear_for: Text = "5m"
    min_starts: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    min_outcomes: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    dry_run: bool = False


class FigureOut(Model):
    """A figure, its threshold, and the mode that begins when it is breached. `samples`: null for a plain count."""

    mode: ModeName
    name: Literal["triggerDelayP95Ms", "runSuccessRate10m", "retryBacklog", "dlqGrowthPerMin"]
    value: float
    limit: float
    breached: Annotated[bool, From("is_breached")]
    samples: int | None


class ThresholdsOut(Model):
    """The settings of the rules, with the current figures of all tenants for the platform."""

    trigger_delay_p95: Annotated[str, Field(alias="triggerDelayP95")]
    trigger_delay_for: str
    run_success_rate_10m: Annotated[float, Field(alias="runSuccessRate10m")]
    retry_backlog: int
    dlq_growth_per_min: int
    clear_for: str
    min_starts: int
    min_outcomes: int
    dry_run: bool
    figures: list[FigureOut]


class ModeOut(Model):
    """A mode: whether it is in force, and why. `level` 2 of SHED_LOW pauses low priority, level 1 halves it.

    `wouldBeLevel`: the level of its rule, which differs from `level` in a dry run and under an override.
    """

    mode: ModeName
    level: int
    would_be_level: int
    since: datetime | None
    cause: Reason | None
    override: Literal["ON", "OFF"] | None
    override_expires_at: datetime | None


class ManualHoldOut(Model):
    """A hold by hand. `scope`: of the whole platform, or of the caller's tenant. `actor` is null for holds of others."""

    what: Literal["dispatch", "low-priority", "backfill"]
    scope: Literal["platform", "tenant"]
    since: datetime
    expires_at: datetime | None
    note: str | None
    actor: str | None


class GovernorOut(Model):
    """The modes, the holds, and what the governor does now."""

    modes: list[str]
    dry_run: bool
    rules: list[ModeOut]
    holds: list[ManualHoldOut]
    actions: list[Reason]


class ModeIn(Model):
    """`POST /api/v1/scheduler/mode`: force a mode on or off, or return it to its rule.

    `expiresIn`: a duration such as `30m`; without one, the override lasts until it is removed.
    """

    mode: ModeName
    state: Literal["ON", "OFF", "AUTO"]
    expires_in: Text | None = None
    note: Note | None = None


class ModeChangeOut(Model):
    """An entry into a mode (`level` above 0) or an exit from it. `dryRun`: it was only reported."""

    at: datetime
    mode: ModeName
    level: int
    dry_run: Annotated[bool, From("is_dry_run")]
    cause: Reason | None


class ModeChangeList(Model):
    """A page of changes of modes, newest first."""

    items: list[ModeChangeOut]
    next_cursor: str | None


class FreezeIn(Model):
    """`POST /api/v1/scheduler/freeze`: hold low-priority work, or the entry of backfills, by hand."""

    what: Frozen
    expires_in: Text | None = None
    note: Note | None = None


class UnfreezeIn(Model):
    """`POST /api/v1/scheduler/unfreeze`."""

    what: Frozen
    note: Note | None = None
