"""The methods of a client in the caller's own transaction. The caller commits; workers are woken only then."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from horai.core.errors import Invalid
from horai.core.put import PutDecision, PutOptions, check_key
from horai.db import caller_transaction
from horai.db.instances import SealedPaths
from horai.sdk import drivers
from horai.sdk.client import When

Sealer = Callable[[Sequence[str | None]], Awaitable[list[str | None]]]
"""Seals payloads of one encrypted job; None stays None."""
VERSION_AND_SEAL = "cannot be combined with conn and a payload: the database cannot compare encrypted payloads"


class CallersTransaction:
    """A connection of the caller with an open transaction, of any supported driver."""

    def __init__(self, conn: Any, seal: Sealer | None = None) -> None:
        """`seal` seals the payloads of an encrypted job; None if the job is not encrypted."""
        self._conn = conn
        self._seal = seal

    async def _stored(self, payloads: Sequence[str | None]) -> Sequence[str | None]:
        """Return payloads as they are stored."""
        if self._seal is None or all(payload is None for payload in payloads):
            return payloads
        return await self._seal(payloads)

    async def enqueue(self, job: str, when: When, payload: str | None, *, sealed: SealedPaths = None) -> int:
        """Add one instance and return its id."""
        del sealed  # `seal` says it
        (payload,) = await self._stored([payload])
        item = (await self._moment(when), payload)
        return (await drivers.fetch(self._conn, caller_transaction.enqueue(job, item))).instance_id

    async def enqueue_many(
        self, job: str, when: When, payloads: Iterable[Sequence[str | None]], *, sealed: SealedPaths = None
    ) -> list[int]:
        """Add all instances or none; return their ids in order."""
        del sealed  # `seal` says it
        at, made = await self._moment(when), list[int]()
        stored = await self._stored([payload for batch in payloads for payload in batch])
        items = [(at, payload) for payload in stored]
        if items:
            made += await drivers.fetch(self._conn, caller_transaction.enqueue_many(job, items))
        return made

    async def put(
        self, job: str, key: str, when: When, payload: str | None, intent: PutOptions, needs_payload: bool
    ) -> tuple[PutDecision, int]:
        """Put a key; return the decision and the instance id.

        Raises `PayloadMissing` if a new instance would lack its payload.
        """
        if self._seal is not None and payload is not None:
            if intent.version is not None:
                raise Invalid.field("version", VERSION_AND_SEAL, "Put it without conn=, or without a version.")
            (payload,) = await self._stored([payload])
        wish = caller_transaction.put(job, check_key(key), await self._moment(when), payload, intent, needs_payload)
        answer = await drivers.fetch(self._conn, wish)
        return answer.verdict, answer.instance_id

    async def cancel(self, job: str, key: str) -> bool:
        """Cancel the live instance of a key. Return False if it has none."""
        return await drivers.fetch(self._conn, caller_transaction.cancel(job, check_key(key))) is not None

    async def add_entities(self, job: str, items: Mapping[str, str | None]) -> int:
        """Add entities with their payloads; return how many are new."""
        items = dict(zip(items, await self._stored(list(items.values())), strict=True))
        return await drivers.fetch(self._conn, caller_transaction.add_entities(job, items))

    async def remove_entity(self, job: str, key: str) -> bool:
        """Remove an entity; return whether it existed."""
        return await drivers.fetch(self._conn, caller_transaction.remove_entity(job, key))

    async def _moment(self, when: When) -> datetime | None:
        """Return the time of an instance. A delay counts from now, by the database's clock."""
        if isinstance(when, timedelta):
            return await drivers.fetch(self._conn, caller_transaction.now()) + when
        return when
