"""The methods of a job: add, move and cancel instances, run it now, list its upcoming fires, explain, backfill."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, overload
from uuid import uuid4

from horai.core.errors import Invalid, NotFound
from horai.core.put import PayloadMissing, PutDecision, PutOptions
from horai.core.upcoming import MOST_FIRES, Fire, upcoming_fires
from horai.db.instances import SealedPaths
from horai.features.backfill.service import start_backfill, survey_backfill
from horai.operations.request_keys import Once
from horai.sdk.backfills import Backfill, BackfillPlan, plan_of, wish_of
from horai.sdk.client import Client
from horai.sdk.declaration import Declaration, Duration, payload_missing
from horai.sdk.drivers import is_sync
from horai.sdk.entities import Entities
from horai.sdk.explanations import Explanation, explanation
from horai.sdk.handle import Awaiting, Handle, Handles
from horai.sdk.outcomes import seconds_of
from horai.sdk.payloads import shape_of
from horai.sdk.portal import PORTAL
from horai.sdk.transaction import CallersTransaction, Sealer

R = TypeVar("R")
T = TypeVar("T")

ModeName: TypeAlias = Literal["missing", "failed", "all"]

BATCH, BATCH_SIZE = 2_000, 8 * 1024 * 1024
"""Instances, and characters of payload, in one statement of `enqueue_many`."""


class Home(Awaiting, Protocol):
    """The application that a job belongs to."""

    async def client(self) -> Client:
        """Return the client of this event loop."""
        ...

    async def declare_missing(self, job: "Verbs[Any]") -> bool:
        """Declare a job that the database does not have; return False if it has it."""
        ...


class Verbs(Generic[R]):
    """The methods of one job. `R` is the type of its function's result."""

    def __init__(self, home: Home, declaration: Declaration) -> None:
        self.home = home
        self.declaration = declaration
        self.name = declaration.name

    @property
    def _sealed(self) -> SealedPaths:
        return self.declaration.search_paths if self.declaration.is_encrypted else None

    @property
    def entities(self) -> Entities:
        """The entities of a refresh job. Raises `Invalid` for other jobs."""
        return Entities(self)

    async def enqueue(
        self,
        payload: object = None,
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        idempotency_key: str | None = None,
        conn: Any = None,
    ) -> Handle[R]:
        """Add an instance: now, at a time, or after a delay. Without a payload it has the job's own.

        With an `idempotency_key` the first call creates it; later calls get the same instance, with `duplicate` set.
        """
        when, text = _when(at, delay), self.declaration.encode(payload)
        if idempotency_key is None:
            made = await self.served(conn, lambda means: means.enqueue(self.name, when, text, sealed=self._sealed))
            return self._handle(made)
        if conn is not None:
            raise Invalid.field(
                "idempotency_key", "cannot be combined with conn", "In your own transaction, use put with a key."
            )
        once = Once(idempotency_key, json.dumps([str(when), text]).encode())
        made, is_new = await self._asked(
            lambda client: client.enqueue_once(self.name, when, text, once, sealed=self._sealed)
        )
        return self._handle(made, PutDecision.INSERTED if is_new else PutDecision.IGNORED)

    async def enqueue_many(
        self,
        payloads: Iterable[object],
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        conn: Any = None,
    ) -> Handles[R]:
        """Add one instance per payload: all of them or none, in order. This is the fastest way to add many."""
        when, given = _when(at, delay), list(payloads)
        made = await self.served(
            conn, lambda means: means.enqueue_many(self.name, when, self._batches(given), sealed=self._sealed)
        )
        return Handles(made, self._handle)

    def _batches(self, payloads: Sequence[object]) -> Iterator[list[str | None]]:
        """Split the payloads into statements by number and size: large payloads go a few at a time."""
        encode, batch, size = self.declaration.encode, list[str | None](), 0
        for payload in payloads:
            text = encode(payload)
            batch.append(text)
            size += len(text or "")
            if len(batch) == BATCH or size >= BATCH_SIZE:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    async def put(
        self,
        key: str,
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        payload: object = None,
        version: int | None = None,
        again: bool = False,
        conn: Any = None,
    ) -> Handle[R]:
        """Create or reschedule the instance of a business key; the handle's `decision` says which.

        A `version` lower than the last accepted one is ignored, and so is an equal one with the same time and payload.
        `again` runs a key that has succeeded once more. Without a payload, a live instance keeps its own.
        """
        when, intent = _when(at, delay), PutOptions(version, again)
        text = self.declaration.signature.shape.encode(payload)
        needs = text is None and self.declaration.needs_payload
        try:
            verdict, made = await self.served(conn, lambda means: means.put(self.name, key, when, text, intent, needs))
        except PayloadMissing as error:
            raise payload_missing(self.name) from error
        return self._handle(made, verdict)

    async def cancel(self, key: str, *, conn: Any = None) -> bool:
        """Cancel the live instance of a key. Return False if it has none. Work already done is not undone."""
        return await self.served(conn, lambda means: means.cancel(self.name, key))

    async def trigger(self, payload: object = None, *, idempotency_key: str | None = None) -> Handle[R]:
        """Run the job now, once per key if one is given. Refused while no worker would run it.

        For a refresh job this is a tick: it loads the entities that are due now, and its result says how many.
        """
        is_tick = self.declaration.document.get("refresh") is not None  # a tick takes no payload
        text = None if is_tick and payload is None else self.declaration.encode(payload)
        once = Once(idempotency_key or uuid4().hex, (text or "").encode())
        made, is_new = await self._asked(lambda client: client.trigger(self.name, text, once))
        verdict = PutDecision.INSERTED if is_new else PutDecision.IGNORED
        if is_tick:
            return Handle(self.name, made, self.home, shape_of(Any), verdict)
        return self._handle(made, verdict)

    async def next(self, count: int = 10, *, after: datetime | None = None) -> list[Fire]:
        """Return the upcoming fires of the job as declared here: the first is strictly after `after` (default: now).

        Now is the database's time; with `after`, no database is asked, unless the job names a calendar. A pause by an
        operator is not considered.
        """
        if not 1 <= count <= MOST_FIRES:
            raise Invalid.field("count", f"is not between 1 and {MOST_FIRES}")
        if after is None:
            after = await (await self.home.client()).now()
        timing = self.declaration.timing
        if not timing.is_readable:
            timing = await (await self.home.client()).timing_of(self.declaration.document)
        return upcoming_fires(timing, _with_offset("after", after), count)

    async def explain(self, at: datetime | str) -> Explanation:
        """Explain why a slot fired, waits, was held or skipped, or why there is none.

        `at` is an instant, or without an offset a time by the clock of the job's zone, which may occur twice or never.
        """
        return await self._asked(lambda client: explanation(client.scope, self.name, at))

    @overload
    async def backfill(
        self,
        from_: datetime,
        to: datetime | None = None,
        *,
        mode: ModeName = "missing",
        rate: str | int | None = None,
        max_concurrency: int | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> Backfill: ...
    @overload
    async def backfill(
        self, from_: datetime, to: datetime | None = None, *, mode: ModeName = "missing", dry_run: Literal[True]
    ) -> BackfillPlan: ...
    async def backfill(
        self,
        from_: datetime,
        to: datetime | None = None,
        *,
        mode: ModeName = "missing",
        rate: str | int | None = None,
        max_concurrency: int | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Backfill | BackfillPlan:
        """Run past slots of the job, from `from_` to before `to` (default: now), beside its current work.

        `missing` runs the slots that were never created, `failed` those whose last run is dead, `all` every slot; a dry
        run only counts them. With an `idempotency_key`, a repeated call gets the first backfill.
        """
        given = {"from": from_, "to": to, "mode": mode, "rate": rate, "maxConcurrency": max_concurrency}
        wish = wish_of(given)
        if dry_run:
            return plan_of(await self._asked(lambda client: survey_backfill(client.scope, self.name, wish)))
        text = json.dumps({**given, "note": note}, default=str)
        once = None if idempotency_key is None else Once(idempotency_key, text.encode())
        client = await self.home.client()
        made = await self._asked(lambda client: start_backfill(client.scope, self.name, wish, once, note))
        return Backfill(client.scope, made)

    async def served(self, conn: Any, serve: Callable[[Client | CallersTransaction], Awaitable[T]]) -> T:
        """Return the answer of the database, over the caller's connection if given, otherwise over the client's."""
        if conn is None:
            return await self._asked(serve)
        means = CallersTransaction(conn, self._sealer(conn))
        if is_sync(conn):
            return await serve(means)  # never suspends: there may be no event loop
        return await self._declared(lambda: serve(means))

    def _sealer(self, conn: Any) -> Sealer | None:
        """Return the function that seals payloads for a transaction of the caller; None if the job is not encrypted."""
        paths = self._sealed
        if paths is None:
            return None

        async def seal(payloads: Sequence[str | None]) -> list[str | None]:
            return await (await self.home.client()).sealed(self.name, payloads, paths)

        async def seal_in_thread(payloads: Sequence[str | None]) -> list[str | None]:
            return PORTAL.run(seal(payloads))

        return seal_in_thread if is_sync(conn) else seal

    async def _asked(self, serve: Callable[[Client], Awaitable[T]]) -> T:
        client = await self.home.client()
        return await self._declared(lambda: serve(client))

    async def _declared(self, serve: Callable[[], Awaitable[T]]) -> T:
        """Run `serve`; if the database does not have the job yet, declare the job and run `serve` again."""
        try:
            return await serve()
        except NotFound:
            if not await self.home.declare_missing(self):
                raise
            return await serve()

    def _handle(self, instance_id: int, verdict: PutDecision = PutDecision.INSERTED) -> Handle[R]:
        return Handle(self.name, instance_id, self.home, self.declaration.result, verdict)


def _when(at: datetime | None, delay: Duration | None) -> datetime | timedelta | None:
    """Return the time or the delay of an instance; None for now. A delay counts from now by the database's clock."""
    if at is not None and delay is not None:
        raise Invalid.field("delay", "cannot be combined with at", "Pass only one of them.")
    if at is not None:
        return _with_offset("at", at)
    return None if delay is None else seconds_of(delay)


def _with_offset(name: str, instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise Invalid.field(name, "has no UTC offset", "Write datetime(…, tzinfo=UTC), or datetime.now(UTC) + ….")
    return instant
