"""Asset: a handle of a data asset, to update it from outside and to look at its updates."""

import json
from datetime import datetime
from typing import Any

from horai.core.errors import Invalid
from horai.sdk.deferred import runtime
from horai.sdk.intervals import Interval
from horai.sdk.job_api import Home
from horai.sdk.payloads import shape_of
from horai.sdk.portal import PORTAL

MOST_UPDATES = 1_000


class Asset:
    """A data asset by its name. `produces` and `when` of jobs and workflows take the handle or the name."""

    __slots__ = ("_home", "name")

    def __init__(self, home: Home, name: str) -> None:
        self._home = home
        self.name = name

    def __repr__(self) -> str:
        return f"<Asset {self.name!r}>"

    @property
    def sync(self) -> "SyncAsset":
        """The same methods without `await`."""
        return SyncAsset(self)

    async def update(
        self,
        metadata: object = None,
        *,
        interval: Interval | tuple[datetime, datetime] | None = None,
        idempotency_key: str | None = None,
        conn: Any = None,
    ) -> str:
        """Update the asset from outside and return the id of the update.

        Jobs that wait for it start. With an `idempotency_key` the first call updates it, and later ones return the same
        id. With `conn` it is updated when the caller's transaction commits. Raises `NotFound` for an asset that no
        job or workflow has declared.
        """
        update = _outside(metadata, interval, idempotency_key)
        if conn is not None:
            query = runtime.caller_transaction.update_asset(
                self.name, update.metadata, update.interval_start, update.interval_end, update.request_key
            )
            return str(await runtime.drivers.fetch(conn, query))
        update_id, _ = await runtime.assets.update_asset((await self._home.client()).scope, self.name, update)
        return str(update_id)

    async def updates(self, limit: int = 20) -> "list[runtime.AssetUpdate]":
        """Return the newest updates, newest first, at most `limit` (1 to 1000). Raises `NotFound` for an unknown asset."""
        if not 1 <= limit <= MOST_UPDATES:
            raise Invalid.field("limit", f"is not between 1 and {MOST_UPDATES}")
        view = await runtime.assets.read_asset((await self._home.client()).scope, self.name, runtime.LAST_UPDATE, limit)
        return [_update_of(row) for row in view.updates]


class SyncAsset:
    """An asset with methods that need no `await`."""

    __slots__ = ("_asset",)

    def __init__(self, asset: Asset) -> None:
        self._asset = asset

    def update(
        self,
        metadata: object = None,
        *,
        interval: Interval | tuple[datetime, datetime] | None = None,
        idempotency_key: str | None = None,
        conn: Any = None,
    ) -> str:
        """Update the asset from outside and return the id of the update."""
        if conn is None:
            return PORTAL.run(self._asset.update(metadata, interval=interval, idempotency_key=idempotency_key))
        update = _outside(metadata, interval, idempotency_key)
        query = runtime.caller_transaction.update_asset(
            self._asset.name, update.metadata, update.interval_start, update.interval_end, update.request_key
        )
        return str(runtime.drivers.fetch_now(conn, query))

    def updates(self, limit: int = 20) -> "list[runtime.AssetUpdate]":
        """Return the newest updates, newest first."""
        return PORTAL.run(self._asset.updates(limit))


def _outside(
    metadata: object, interval: Interval | tuple[datetime, datetime] | None, request_key: str | None
) -> "runtime.OutsideUpdate":
    text = shape_of(Any, "metadata").encode(metadata)
    if interval is None:
        return runtime.OutsideUpdate(text, request_key=request_key)
    start, end = (interval.start, interval.end) if isinstance(interval, Interval) else interval
    if start.tzinfo is None or end.tzinfo is None:
        raise Invalid.field("interval", "has no UTC offset", "Write datetime(…, tzinfo=UTC).")
    return runtime.OutsideUpdate(text, start, end, request_key)


def _update_of(row: "runtime.UpdateRow") -> "runtime.AssetUpdate":
    interval = None
    if row.interval_start is not None and row.interval_end is not None:
        interval = Interval(row.interval_start, row.interval_end)
    return runtime.AssetUpdate(
        str(row.id),
        row.at,
        row.job,
        None if row.instance_id is None else str(row.instance_id),
        None if row.run_id is None else str(row.run_id),
        row.node,
        interval,
        None if row.metadata is None else json.loads(row.metadata),
    )
