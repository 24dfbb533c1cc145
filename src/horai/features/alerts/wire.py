"""Alerts on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Instant, Model, Note, Text

ChannelKind = Literal["webhook", "slack", "feishu", "dingtalk", "wecom", "email"]
Language = Literal["en", "zh-CN"]
Security = Literal["starttls", "tls", "none"]
KindName = Literal[
    "INSTANCE_DEAD",
    "RUN_BLOCKED",
    "NOT_SUCCESS_BY",
    "JOB_LATE",
    "QUEUE_WAIT",
    "HEARTBEAT_MISSING",
    "RECONCILE_DRIFT",
    "MODE_ENTERED",
    "BUDGET_BURN",
    "RUN_STUCK",
    "QUEUE_CLOGGED",
    "SINK_PARKED",
    "ARCHIVE_FAILED",
    "PARTITION_MISSING",
]
AlertName = Annotated[Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
ShortText = Annotated[Text, Field(min_length=1, max_length=254)]


class ChannelFields(Model):
    """The fields of all kinds; each kind accepts its own.

    `url`, `secret` and `password` are never shown: they read `***`, and sending `***` back keeps the stored value while
    the host stays. `secret` signs: of a webhook in the form of Standard Webhooks (without it, the signing secret of the
    tenant), of Feishu and DingTalk as their robots ask for it.
    """

    kind: ChannelKind
    language: Language = "en"
    url: Annotated[Text | None, Field(max_length=2_000)] = None
    secret: Annotated[Text | None, Field(min_length=1, max_length=512)] = None
    host: ShortText | None = None
    port: Annotated[int | None, Field(ge=1, le=65_535)] = None
    security: Security | None = None
    username: ShortText | None = None
    password: Annotated[Text | None, Field(min_length=1, max_length=512)] = None
    from_: Annotated[ShortText | None, Field(alias="from")] = None
    to: Annotated[list[ShortText] | None, Field(min_length=1, max_length=50)] = None


class ChannelIn(ChannelFields):
    """`POST /api/v1/alerts/channels`."""

    name: AlertName


class ChannelOut(Model):
    """A channel. `url`, `secret` and `password` are `***` if they are set; `host` is that of the URL or the mail server."""

    name: str
    kind: ChannelKind
    language: Language
    url: str | None
    secret: str | None
    host: str | None
    port: int | None
    security: Security | None
    username: str | None
    password: str | None
    from_: Annotated[str | None, Field(alias="from")]
    to: list[str] | None
    version: int
    created_at: datetime
    updated_at: datetime


class ChannelList(Model):
    """A page of channels by name."""

    items: list[ChannelOut]
    next_cursor: str | None


class RuleFields(Model):
    """The fields of all kinds of rules; each kind accepts its own (docs/guides/alerts.md).

    `groupWait`: alerts that fire within it are one message. `repeatEvery`: time after which alerts that still fire are
    told again. `calendar`: on its days off no alert fires for a missing SUCCESS.
    """

    kind: KindName
    channels: Annotated[list[AlertName], Field(min_length=1, max_length=20)]
    job: ShortText | None = None
    tag: ShortText | None = None
    workflow: ShortText | None = None
    queue: ShortText | None = None
    reconciler: ShortText | None = None
    heartbeat: ShortText | None = None
    modes: Annotated[list[ShortText] | None, Field(max_length=10)] = None
    by: ShortText | None = None
    timezone: ShortText | None = None
    weekdays: Annotated[list[ShortText] | None, Field(max_length=7)] = None
    calendar: ShortText | None = None
    sink: ShortText | None = None
    after: ShortText | None = None
    burn_rate: Annotated[float | None, Field(gt=0, le=1_000)] = None
    group_wait: ShortText = "30s"
    repeat_every: ShortText = "4h"
    enabled: bool = True


class RuleIn(RuleFields):
    """`POST /api/v1/alerts/rules`."""

    name: AlertName


class RuleOut(Model):
    """A rule, with the fields of its kind."""

    name: str
    kind: KindName
    channels: list[str]
    job: str | None
    tag: str | None
    workflow: str | None
    queue: str | None
    reconciler: str | None
    heartbeat: str | None
    modes: list[str] | None
    by: str | None
    timezone: str | None
    weekdays: list[str] | None
    calendar: str | None
    sink: str | None
    after: str | None
    burn_rate: float | None
    group_wait: str
    repeat_every: str
    enabled: Annotated[bool, From("is_enabled")]
    version: int
    created_at: datetime
    updated_at: datetime


class RuleList(Model):
    """A page of rules by name."""

    items: list[RuleOut]
    next_cursor: str | None


class SilenceIn(Model):
    """`POST /api/v1/alerts/silences`: alerts that match all given fields are not sent until the silence ends.

    It ends at `endsAt`, or after `lasts`. With `startsAt` in the future it is a maintenance window. Without `rule`, `job`
    and `tag` it silences every alert.
    """

    rule: AlertName | None = None
    job: ShortText | None = None
    tag: ShortText | None = None
    starts_at: Instant | None = None
    ends_at: Instant | None = None
    lasts: ShortText | None = None
    note: Note | None = None


class SilenceOut(Model):
    """A silence."""

    id: Id
    rule: str | None
    job: str | None
    tag: str | None
    starts_at: datetime
    ends_at: datetime
    note: str | None
    actor: str
    created_at: datetime


class SilenceList(Model):
    """A page of silences, newest first."""

    items: list[SilenceOut]
    next_cursor: str | None


class AlertOut(Model):
    """An alert. `notifiedAt`: when channels were last told of it; null while it waits for its group or is silenced."""

    id: Id
    rule: str
    kind: KindName
    status: Literal["FIRING", "RESOLVED"]
    object: str
    job: str | None
    tags: list[str]
    data: dict[str, Any]
    since: datetime
    fired_at: datetime
    resolved_at: datetime | None
    notified_at: datetime | None
    silenced_by: Id | None
    acknowledged_at: Annotated[
        datetime | None,
        Field(
            description="No repeats are sent from then on, until the alert is resolved or gets worse. Null: not acknowledged."
        ),
    ]
    acknowledged_by: Annotated[str | None, Field(description="The actor; empty on a server without keys.")]
    acknowledged_note: str | None


class AcknowledgeIn(Model):
    """`POST /api/v1/alerts/{alert}/acknowledge`."""

    note: Note | None = None


class AlertList(Model):
    """A page of alerts, newest first."""

    items: list[AlertOut]
    next_cursor: str | None


class DeliveryOut(Model):
    """A message to a channel. While it is PENDING, it is tried again at `nextTryAt`, for up to 24 hours."""

    id: Id
    rule: str | None
    channel: str
    kind: Literal["FIRING", "REPEATED", "RESOLVED", "TEST"]
    alerts: int
    status: Literal["PENDING", "DELIVERED", "FAILED"]
    attempt: int
    http_status: int | None
    error: str | None
    created_at: datetime
    tried_at: datetime | None
    next_try_at: datetime | None
    finished_at: datetime | None
    redelivery_of: Annotated[Id | None, Field(description="The delivery whose message this one sends again.")]


class DeliveryList(Model):
    """A page of the delivery log, newest first."""

    items: list[DeliveryOut]
    next_cursor: str | None


class HeartbeatIn(Model):
    """`PUT /api/v1/heartbeats/{name}`: how often an external job reports, and how late it may be."""

    every: ShortText
    grace: ShortText = "1m"


class HeartbeatOut(Model):
    """A heartbeat. It is missing after `dueAt`."""

    name: str
    every: str
    grace: str
    beats: int
    last_at: datetime | None
    due_at: datetime
    missing: Annotated[bool, From("is_missing")]
    version: int
    created_at: datetime


class HeartbeatList(Model):
    """A page of heartbeats by name."""

    items: list[HeartbeatOut]
    next_cursor: str | None
