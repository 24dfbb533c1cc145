"""Tenants on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.core.quotas import BOUNDS, MOST_NETWORKS, MOST_WEIGHT
from horai.wire.fields import Id, Model, Text

TenantName = Annotated[Text, Field(pattern=r"^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$")]


def _within(name: str) -> Any:
    low, high = BOUNDS[name]
    return Field(json_schema_extra={"minimum": low, "maximum": high})


class TenantIn(Model):
    """`POST /api/v1/tenants`. A name has lower-case letters, digits, `-` and `_`, at most 63."""

    name: TenantName


class QuotasIn(Model):
    """Quotas to change. Null removes a limit; a field that is left out keeps its value.

    `concurrency` is the number of instances that run at once, over all queues. `callbackNetworks` are the networks that
    HTTP targets may be in, such as 10.1.0.0/16; null allows public addresses and those that the operator allows.
    """

    jobs: Annotated[int, _within("jobs")] | None = None
    live_instances: Annotated[int, _within("liveInstances")] | None = None
    enqueue_per_second: Annotated[int, _within("enqueuePerSecond")] | None = None
    payload_bytes: Annotated[int, _within("payloadBytes")] | None = None
    concurrency: Annotated[int, _within("concurrency")] | None = None
    callback_networks: Annotated[list[Text], Field(max_length=MOST_NETWORKS)] | None = None


class TenantPatch(Model):
    """`PATCH /api/v1/tenants/{tenant}`. `weight`: turns of the tenant while other tenants have one.

    `keepHistory` and `keepDeadLetters`: the time for which its finished instances and its dead letters are kept, from
    1d to 3650d; null: the time that the operator gives to the nodes.
    """

    weight: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MOST_WEIGHT})] | None = None
    quotas: QuotasIn | None = None
    keep_history: Text | None = None
    keep_dead_letters: Text | None = None


class QuotasOut(Model):
    """The quotas of a tenant. Null is no limit."""

    jobs: int | None
    live_instances: int | None
    enqueue_per_second: int | None
    payload_bytes: int | None
    concurrency: int | None
    callback_networks: list[str] | None


class TenantOut(Model):
    """A tenant: jobs, queues, keys and secrets of one team, which no other tenant can see.

    `paused`: the platform lets none of its instances start. `deleting`: its data is being deleted.
    """

    id: Id
    name: str
    status: Literal["active", "paused", "deleting"]
    weight: int
    version: int
    created_at: datetime
    paused_at: datetime | None


class UsageOut(Model):
    """The use of the quotas. Instances are counted up to 100,000; `running` is the use of `concurrency`."""

    jobs: int
    live_instances: int
    running: int


class TenantDetail(TenantOut):
    """A tenant with its quotas, their use, and the times for which it keeps rows. A null time is that of the nodes."""

    quotas: QuotasOut
    usage: UsageOut
    keep_history: str | None
    keep_dead_letters: str | None


class TenantList(Model):
    """A page of tenants, by name."""

    items: list[TenantOut]
    next_cursor: str | None
