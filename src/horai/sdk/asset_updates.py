"""AssetUpdate: an update of a data asset, as `instance.assets` and `asset.updates()` return it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from horai.core.payload_members import ASSETS
from horai.sdk.intervals import Interval


@dataclass(frozen=True, slots=True)
class AssetUpdate:
    """An update of an asset: by a success of `job`, or from outside. `run` and `node` are those of a workflow."""

    id: str
    at: datetime
    job: str | None
    instance: str | None
    run: str | None
    node: str | None
    interval: Interval | None
    metadata: Any


def updates_in(payload: str | None) -> dict[str, tuple[AssetUpdate, ...]]:
    """Return the updates that have started an instance, by asset, oldest first; none if it was started otherwise."""
    given: Any = None if payload is None else json.loads(payload)
    if not isinstance(given, dict):
        return {}
    told = cast("dict[str, list[dict[str, Any]]]", cast("dict[str, Any]", given).get(ASSETS) or {})
    return {name: tuple(_read(each) for each in updates) for name, updates in told.items()}


def _read(told: Mapping[str, Any]) -> AssetUpdate:
    interval = told["interval"]
    return AssetUpdate(
        told["id"],
        datetime.fromisoformat(told["at"]),
        told["job"],
        told["instance"],
        told["run"],
        told["node"],
        None
        if interval is None
        else Interval(datetime.fromisoformat(interval["start"]), datetime.fromisoformat(interval["end"])),
        told["metadata"],
    )
