"""The methods of a client in the caller's own transaction. The caller commits; workers are woken only then."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from horai.core.call_settings import NO_SETTINGS, CallSettings
from horai.core.call_windows import CallWindow
from horai.core.errors import Invalid
from horai.core.put import PutDecision, PutOptions, check_key
from horai.db import caller_transaction
from horai.db.instances import SealedPaths
from horai.features.steps.rules import Signal
from horai.sdk import drivers
from horai.sdk.client import When

Sealer = Callable[[Sequence[str | None]], Awaitable[list[str | None]]]
"""Seals payloads of one encrypted job; None stays None."""
Digester = Callable[[Sequence[str | None]], Awaitable[list[bytes | None]]]
"""Digests arguments of one encrypted job; None where there are none."""
VERSION_AND_SEAL = "cannot be combined with conn and a payload: the database cannot compare encrypted payloads"


class CallersTransaction:
    """A connection of the caller with an open transaction, of any supported driver."""

    def __init__(self, conn: Any, seal: Sealer | None = None, digest: Digester | None = None) -> None:
        """`seal` and `digest` seal and digest the payloads of an encrypted job; None if the job is not encrypted."""
        self._conn = conn
        self._seal = seal
        self._digest = digest

    async def _stored(self, payloads: Sequence[str | None]) -> Sequence[str | None]:
        """Return payloads as they are stored."""
        if self._seal is None or all(payload is None for payload in payloads):
            return payloads
        return await self._seal(payloads)

    async def enqueue(
        self,
        job: str,
        when: When,
        payload: str | None,
        *,
        sealed: SealedPaths = None,
        settings: CallSettings = NO_SETTINGS,
    ) -> int:
        """Add one instance and return its id."""
        del sealed  # `seal` says it
        (payload,) = await self._stored([payload])
        item = (await self._moment(when), payload)
        return (await drivers.fetch(self._conn, caller_transaction.enqueue(job, item, settings))).instance_id

    async def enqueue_many(
        self,
        job: str,
        when: When,
        payloads: Iterable[Sequence[str | None]],
        *,
        sealed: SealedPaths = None,
        settings: Sequence[CallSettings] | None = None,
    ) -> list[int]:
        """Add all instances or none; return their ids in order."""
        del sealed  # `seal` says it
        at, made = await self._moment(when), list[int]()
        stored = await self._stored([payload for batch in payloads for payload in batch])
        items = [(at, payload) for payload in stored]
        if items:
            made += await drivers.fetch(self._conn, caller_transaction.enqueue_many(job, items, settings))
        return made

    async def enqueue_calls(
        self,
        job: str,
        when: When,
        payloads: Sequence[str | None],
        window: CallWindow,
        settings: Sequence[CallSettings] | None = None,
    ) -> list[tuple[PutDecision, int]]:
        """Add calls with a window, all or none; return the decisions and the ids of the instances that stand for them."""
        digests = () if self._digest is None else await self._digest(payloads)
        at, stored = await self._moment(when), await self._stored(payloads)
        calls = caller_transaction.enqueue_calls(job, at, stored, window, digests, settings)
        return await drivers.fetch(self._conn, calls)

    async def start_composition(self, form: str, when: When, payload: str, key: str | None) -> tuple[int, bool]:
        """Start a composition of a form that is defined; return the id of its run, and whether this call started it."""
        query = caller_transaction.start_composition(form, await self._moment(when), payload, key)
        return await drivers.fetch(self._conn, query)

    async def put(
        self,
        job: str,
        key: str,
        when: When,
        payload: str | None,
        intent: PutOptions,
        needs_payload: bool,
        settings: CallSettings = NO_SETTINGS,
    ) -> tuple[PutDecision, int]:
        """Put a key; return the decision and the instance id.

        Raises `PayloadMissing` if a new instance would lack its payload.
        """
        if self._seal is not None and payload is not None:
            if intent.version is not None:
                raise Invalid.field("version", VERSION_AND_SEAL, "Put it without conn=, or without a version.")
            (payload,) = await self._stored([payload])
        at = await self._moment(when)
        wish = caller_transaction.put(job, check_key(key), at, payload, intent, needs_payload, settings)
        answer = await drivers.fetch(self._conn, wish)
        return answer.verdict, answer.instance_id

    async def cancel(self, job: str, key: str, *, compensate: bool = False) -> bool:
        """Cancel the live instance of a key. Return False if it has none."""
        if compensate:
            raise Invalid.field("compensate", "is not accepted with conn", "Cancel without conn=, after the commit.")
        return await drivers.fetch(self._conn, caller_transaction.cancel(job, check_key(key))) is not None

    async def signal(self, job: str, key: str, sent: Signal) -> None:
        """Send a signal to the live instance of a key. Raises `NotFound` if it has none."""
        query = caller_transaction.signal(job, key, sent.name, sent.payload, sent.request_key)
        await drivers.fetch(self._conn, query)

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
