"""The entities of a refresh job: the items that it runs for again and again."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol, TypeAlias, cast

from horai.core.errors import Invalid
from horai.core.put import check_key
from horai.sdk.declaration import Declaration
from horai.sdk.deferred import runtime

BATCH = 10_000
"""Entities in one statement."""

Means: TypeAlias = "runtime.Client | runtime.CallersTransaction"


class Served(Protocol):
    """The job that the entities belong to."""

    name: str
    declaration: Declaration

    async def served(self, conn: Any, serve: Callable[[Means], Awaitable[Any]]) -> Any:
        """Return the answer of the database, over the caller's connection if given, otherwise over the client's."""
        ...


class Entities:
    """The entities of one job. Each is identified by its key, which is also the key of its instances."""

    def __init__(self, job: Served) -> None:
        if job.declaration.document.get("refresh") is None:
            raise Invalid(f"The job {job.name!r} has no entities.", 'Declare it with refresh=Refresh(window="10d").')
        self._job = job

    async def add(self, key: str, payload: object = None, *, conn: Any = None) -> bool:
        """Add an entity, or change its payload; return whether it is new.

        Without a payload, its runs get the job's own.
        """
        return await self.add_many({key: payload}, conn=conn) == 1

    async def add_many(self, items: Mapping[str, object] | Iterable[str], *, conn: Any = None) -> int:
        """Add many entities, with payloads if `items` is a mapping; return how many are new.

        Each 10,000 entities are one transaction.
        """
        encode = self._job.declaration.encode
        given = _pairs(items)
        added = 0
        while some := list(islice(given, BATCH)):
            batch = {check_key(key): encode(payload) for key, payload in some}
            added += await self._job.served(conn, lambda means, batch=batch: means.add_entities(self._job.name, batch))
        return added

    async def remove(self, key: str, *, conn: Any = None) -> bool:
        """Remove an entity; return whether it existed. Its waiting instance is cancelled, a running one finishes."""
        return await self._job.served(conn, lambda means: means.remove_entity(self._job.name, check_key(key)))


def _pairs(items: Mapping[str, object] | Iterable[str]) -> Iterator[tuple[str, object]]:
    if isinstance(items, Mapping):
        yield from cast("Mapping[str, object]", items).items()
    else:
        yield from ((key, None) for key in items)
