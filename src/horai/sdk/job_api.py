"""What can be done with a job from anywhere: add instances of it, move them, cancel them, run it now, ask when it fires."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, overload
from uuid import uuid4

from horai.core.errors import Invalid, NotFound
from horai.core.put import PayloadMissing, PutDecision, PutOptions
from horai.core.upcoming import MOST_FIRES, Fire, upcoming_fires
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
from horai.sdk.transaction import CallersTransaction

R = TypeVar("R")
T = TypeVar("T")

ModeName: TypeAlias = Literal["missing", "failed", "all"]

BATCH, BATCH_SIZE = 2_000, 8 * 1024 * 1024
"""Instances, and characters of payload, in one statement of `enqueue_many`."""


class Home(Awaiting, Protocol):
    """The application a job belongs to."""

    async def client(self) -> Client:
        """What this event loop is connected with."""
        ...

    async def declare_missing(self, job: "Verbs[Any]") -> bool:
        """Makes a job known to the database that does not know it; False when it does."""
        ...


class Verbs(Generic[R]):
    """The verbs of one job. `R` is what its function returns."""

    def __init__(self, home: Home, declaration: Declaration) -> None:
        self.home = home
        self.declaration = declaration
        self.name = declaration.name

    @property
    def entities(self) -> Entities:
        """What a refresh job comes back to; `Invalid` for a job that is none."""
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
        """A new instance: now, at a time, or after a delay. Without a payload it has the job's own.

        With an `idempotency_key` the first call makes it; the others get the same handle, `duplicate`.
        """
        when, text = _when(at, delay), self.declaration.encode(payload)
        if idempotency_key is None:
            return self._handle(await self.served(conn, lambda means: means.enqueue(self.name, when, text)))
        if conn is not None:
            raise Invalid.field("idempotency_key", "stands beside conn", "In a transaction of your own, put a key.")
        once = Once(idempotency_key, json.dumps([str(when), text]).encode())
        made, is_new = await self._asked(lambda client: client.enqueue_once(self.name, when, text, once))
        return self._handle(made, PutDecision.INSERTED if is_new else PutDecision.IGNORED)

    async def enqueue_many(
        self,
        payloads: Iterable[object],
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        conn: Any = None,
    ) -> Handles[R]:
        """New instances, one per payload: all of them or none, in their order. The quickest way to add many."""
        when, given = _when(at, delay), list(payloads)
        made = await self.served(conn, lambda means: means.enqueue_many(self.name, when, self._batches(given)))
        return Handles(made, self._handle)

    def _batches(self, payloads: Sequence[object]) -> Iterator[list[str | None]]:
        """As many as one statement takes, by number and by size: large payloads come a few at a time."""
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
        """Creates or reschedules the instance of a business key; the handle's `decision` says which.

        A `version` lower than the last accepted one is ignored, and so is an equal one with the same time and payload;
        `again` runs a key once more that has succeeded. Without a payload, a live instance keeps its own.
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
        """Cancels the live instance of a key; False when it has none. What it has done stays done."""
        return await self.served(conn, lambda means: means.cancel(self.name, key))

    async def trigger(self, payload: object = None, *, idempotency_key: str | None = None) -> Handle[R]:
        """Runs the job now, refused while nobody would run it; once per key, when there is one.

        Of a refresh job that is a tick: it loads what is due by now, and its result says how many that were.
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
        """Its coming fires, as it is declared here: the first is strictly after `after`, or else after now.

        Now is the database's to say; with `after`, no database is asked. What an operator has paused is not known here.
        """
        if not 1 <= count <= MOST_FIRES:
            raise Invalid.field("count", f"is not between 1 and {MOST_FIRES}")
        if after is None:
            after = await (await self.home.client()).now()
        return upcoming_fires(self.declaration.timing, _with_offset("after", after), count)

    async def explain(self, at: datetime | str) -> Explanation:
        """Why a slot fired, waits, was held or skipped, or why there is none.

        `at` is an instant, or without an offset a time by the clock of the job's zone, which may come twice or never.
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
        """Runs slots of its past, those from `from_` on and before `to` (now), beside its work of now.

        `missing` runs those that were never made, `failed` those whose last run is dead, `all` every one; a dry run only
        counts them. With an `idempotency_key` a repeated call gets the first backfill.
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
        """What the database answers: over the caller's connection, or else over one of ours."""
        if conn is None:
            return await self._asked(serve)
        means = CallersTransaction(conn)
        if is_sync(conn):
            return await serve(means)  # waits for nothing: it may have no event loop to wait in
        return await self._declared(lambda: serve(means))

    async def _asked(self, serve: Callable[[Client], Awaitable[T]]) -> T:
        client = await self.home.client()
        return await self._declared(lambda: serve(client))

    async def _declared(self, serve: Callable[[], Awaitable[T]]) -> T:
        """A job that the database does not know yet is declared first: its code is here."""
        try:
            return await serve()
        except NotFound:
            if not await self.home.declare_missing(self):
                raise
            return await serve()

    def _handle(self, instance_id: int, verdict: PutDecision = PutDecision.INSERTED) -> Handle[R]:
        return Handle(self.name, instance_id, self.home, self.declaration.result, verdict)


def _when(at: datetime | None, delay: Duration | None) -> datetime | timedelta | None:
    """When it is wanted; None for now. A delay counts from now by the database's clock."""
    if at is not None and delay is not None:
        raise Invalid.field("delay", "stands beside at", "Give one of the two.")
    if at is not None:
        return _with_offset("at", at)
    return None if delay is None else seconds_of(delay)


def _with_offset(name: str, instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise Invalid.field(name, "has no UTC offset", "Write datetime(…, tzinfo=UTC), or datetime.now(UTC) + ….")
    return instant
