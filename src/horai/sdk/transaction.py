"""The verbs of a client in the caller's own transaction: theirs to commit, and only then is anybody woken."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from horai.core.reschedule import Intent, Verdict, check_key
from horai.db import within
from horai.sdk import connections
from horai.sdk.client import When


class CallersTransaction:
    """A connection of the caller's, whatever its driver, with a transaction open on it."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    async def enqueue(self, job: str, when: When, payload: str | None) -> int:
        """The id of one new instance."""
        item = (await self._moment(when), payload)
        return (await connections.fetch(self._conn, within.enqueue(job, item))).instance_id

    async def enqueue_many(self, job: str, when: When, payloads: Iterable[Sequence[str | None]]) -> list[int]:
        """All of them or none: their ids, in their order."""
        at, made = await self._moment(when), list[int]()
        items = [(at, payload) for batch in payloads for payload in batch]
        if items:
            made += await connections.fetch(self._conn, within.enqueue_many(job, items))
        return made

    async def put(
        self, job: str, key: str, when: When, payload: str | None, intent: Intent, needs_payload: bool
    ) -> tuple[Verdict, int]:
        """Put a key; return the decision and the instance. Raises `PayloadMissing` if a new instance would lack its payload."""
        wish = within.put(job, check_key(key), await self._moment(when), payload, intent, needs_payload)
        answer = await connections.fetch(self._conn, wish)
        return answer.verdict, answer.instance_id

    async def cancel(self, job: str, key: str) -> bool:
        """Cancels the live instance of a key; False when it has none."""
        return await connections.fetch(self._conn, within.cancel(job, check_key(key))) is not None

    async def add_entities(self, job: str, items: Mapping[str, str | None]) -> int:
        """Adds entities with their payloads; how many are new."""
        return await connections.fetch(self._conn, within.add_entities(job, items))

    async def remove_entity(self, job: str, key: str) -> bool:
        """Takes an entity away; whether it was one."""
        return await connections.fetch(self._conn, within.remove_entity(job, key))

    async def _moment(self, when: When) -> datetime | None:
        """A delay counts from now, by the database's clock."""
        if isinstance(when, timedelta):
            return await connections.fetch(self._conn, within.now()) + when
        return when
