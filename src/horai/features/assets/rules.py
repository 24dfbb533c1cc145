"""Pure rules of assets: circles of jobs that wait for one another, and the payload of an instance that assets start."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from horai.core.payload_members import ASSETS

MOST_IN_PAYLOAD: Final = 100
"""The newest updates of one asset that a payload names."""
METADATA_IN_PAYLOAD: Final = 64_000
"""Bytes of metadata in one payload. That of the newest updates is kept."""


@dataclass(frozen=True, slots=True)
class AssetEdge:
    """A link of the graph: a job updates an asset, an asset starts a job, a workflow runs a job."""

    source: str
    target: str


def circle_through(start: str, edges: Iterable[AssetEdge]) -> tuple[str, ...] | None:
    """Return the shortest path from `start` back to it; None if there is none."""
    following: defaultdict[str, list[str]] = defaultdict(list)
    for edge in edges:
        following[edge.source].append(edge.target)
    came_from: dict[str, str] = {}
    level = [start]
    while level:
        ahead: list[str] = []
        for place in level:
            for target in following[place]:
                if target == start:
                    return _path(start, place, came_from)
                if target not in came_from:
                    came_from[target] = place
                    ahead.append(target)
        level = ahead
    return None


def _path(start: str, last: str, came_from: Mapping[str, str]) -> tuple[str, ...]:
    path = [start, last] if last != start else [start]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return (start, *reversed(path[:-1])) if len(path) > 1 else (start, start)


@dataclass(frozen=True, slots=True)
class PendingUpdate:
    """An update that a job has not started with yet. `metadata` is JSON text."""

    id: int
    asset: str
    at: datetime
    job: str | None
    instance_id: int | None
    run_id: int | None
    node: str | None
    interval_start: datetime | None
    interval_end: datetime | None
    metadata: str | None

    def document(self, *, with_metadata: bool) -> dict[str, Any]:
        """Return the update as the payload of an instance names it."""
        return {
            "id": str(self.id),
            "at": self.at.isoformat(),
            "job": self.job,
            "instance": None if self.instance_id is None else str(self.instance_id),
            "run": None if self.run_id is None else str(self.run_id),
            "node": self.node,
            "interval": None
            if self.interval_start is None or self.interval_end is None
            else {"start": self.interval_start.isoformat(), "end": self.interval_end.isoformat()},
            "metadata": json.loads(self.metadata) if with_metadata and self.metadata is not None else None,
        }


def payload_with(payload: str | None, updates: Sequence[PendingUpdate]) -> str:
    """Return the payload of a job with its updates by asset, oldest first. The payload is an object, or None."""
    own: dict[str, Any] = {} if payload is None else json.loads(payload) or {}
    left, told = METADATA_IN_PAYLOAD, defaultdict[str, list[dict[str, Any]]](list)
    for update in sorted(updates, key=lambda each: each.id, reverse=True):
        size = len((update.metadata or "").encode())
        if len(told[update.asset]) < MOST_IN_PAYLOAD:
            told[update.asset].append(update.document(with_metadata=size <= left))
            left -= min(size, left)
    return json.dumps({**own, ASSETS: {name: told[name][::-1] for name in sorted(told)}}, ensure_ascii=False)


def may_carry(payload: str | None) -> bool:
    """Return whether updates can be added to this payload of a job: an object, null or none."""
    return payload is None or isinstance(json.loads(payload), dict | None)
