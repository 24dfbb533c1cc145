"""Assets on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from horai.wire.encode import From
from horai.wire.fields import Id, Instant, Json, Model


class UpdateInterval(Model):
    """The data interval that an update stands for: `start` belongs to it, `end` does not."""

    start: Instant
    end: Instant


class AssetUpdateIn(Model):
    """`POST /api/v1/assets/{name}/updates`: an update from outside. `metadata` has at most 4,096 bytes."""

    metadata: Any = None
    interval: UpdateInterval | None = None


class AssetUpdateAnswer(Model):
    """A recorded update."""

    id: Id
    asset: str


class AssetOut(Model):
    """An asset. `updates` counts the kept updates, up to 1,000; `updatedAt` is the time of the newest."""

    name: str
    created_at: datetime
    updated_at: datetime | None
    updates: int
    last_job: str | None
    """The job of the newest update."""
    last_instance_id: Id | None
    """The instance whose success was the newest update."""
    last_actor: str | None
    """The actor of the newest update, if that was from outside."""
    producers: list[str]
    """The jobs and workflows that update it."""
    consumers: list[str]
    """The jobs and workflows that start when it was updated."""


class AssetList(Model):
    """A page of assets, by name."""

    items: list[AssetOut]
    next_cursor: str | None


class AssetUseOut(Model):
    """A job that uses an asset. `node`: the node of its workflow that produces the asset.

    `pending`: the updates of the asset that did not start the job yet, up to 1,000. `isAny`: it starts when any of the assets
    that it waits for was updated, not all of them.
    """

    role: Annotated[Literal["PRODUCES", "WAITS"], From("role.name")]
    job: str
    job_id: Id
    node: str | None
    is_workflow: bool
    is_paused: bool
    is_any: bool
    pending: int


class AssetUpdateOut(Model):
    """An update of an asset: by a success (`job`, `instance`), or from outside (`actor`)."""

    id: Id
    at: datetime
    job: str | None
    instance_id: Id | None
    run_id: Id | None
    node: str | None
    interval_start: datetime | None
    interval_end: datetime | None
    metadata: Json
    actor: str | None
    started: list[Id]
    """The instances that were started with it."""


class AssetShown(AssetOut):
    """An asset with the jobs that use it, and a page of its updates, newest first."""

    uses: list[AssetUseOut]
    history: list[AssetUpdateOut]
    next_cursor: str | None


class AssetLink(Model):
    """An arrow of the graph of assets. A name of an asset has a colon in front, any other is that of a job or a workflow."""

    source: str
    target: str


class AssetGraph(Model):
    """The graph: jobs and workflows that update assets, assets that start them, and workflows that run jobs."""

    links: list[AssetLink]
