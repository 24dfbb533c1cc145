"""The entities of a refresh job: what it comes back to again and again."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol, TypeAlias, cast

from horai.core.errors import Invalid
from horai.core.put import check_key
from horai.sdk.client import Client
from horai.sdk.declaration import Declaration
from horai.sdk.transaction import CallersTransaction

BATCH = 10_000
"""Entities in one statement."""

Means: TypeAlias = Client | CallersTransaction


class Served(Protocol):
    """The job they belong to."""

    name: str
    declaration: Declaration

    async def served(self, conn: Any, serve: Callable[[Means], Awaitable[Any]]) -> Any:
        """What the database answers: over the caller's connection, or else over one of ours."""
        ...


class Entities:
    """What can be done with the entities of one job; each is known by its key, which its instances have."""

    def __init__(self, job: Served) -> None:
        if job.declaration.document.get("refresh") is None:
            raise Invalid(f"The job {job.name!r} has no entities.", 'Declare it with refresh=Refresh(window="10d").')
        self._job = job

    async def add(self, key: str, payload: object = None, *, conn: Any = None) -> bool:
        """Adds an entity, or changes its payload; whether it is new. Without a payload its runs get the job's own."""
        return await self.add_many({key: payload}, conn=conn) == 1

    async def add_many(self, items: Mapping[str, object] | Iterable[str], *, conn: Any = None) -> int:
        """Adds many, with their payloads where it is a mapping; how many are new. Each ten thousand are one transaction."""
        encode = self._job.declaration.encode
        given = _pairs(items)
        added = 0
        while some := list(islice(given, BATCH)):
            batch = {check_key(key): encode(payload) for key, payload in some}
            added += await self._job.served(conn, lambda means, batch=batch: means.add_entities(self._job.name, batch))
        return added

    async def remove(self, key: str, *, conn: Any = None) -> bool:
        """Takes an entity away: what waits is cancelled, what runs finishes. Whether it was one."""
        return await self._job.served(conn, lambda means: means.remove_entity(self._job.name, check_key(key)))


def _pairs(items: Mapping[str, object] | Iterable[str]) -> Iterator[tuple[str, object]]:
    if isinstance(items, Mapping):
        yield from cast("Mapping[str, object]", items).items()
    else:
        yield from ((key, None) for key in items)
