"""The methods of a job: add, move and cancel instances, run it now, list its upcoming fires, explain, backfill."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, Unpack, overload
from uuid import uuid4

from horai.core.call_settings import CallSettings
from horai.core.call_windows import CallWindow, call_window
from horai.core.errors import Invalid, NotFound
from horai.core.put import PayloadMissing, PutDecision, check_key
from horai.core.upcoming import MOST_FIRES, Fire, upcoming_fires
from horai.sdk.call_options import (
    BESIDE_PAYLOAD,
    BESIDE_TRIGGER,
    CallOptions,
    JobCaller,
    payload_of_call,
    put_options_of,
    refuse_unknown_options,
    settings_of,
    settings_of_all,
    split_call,
    when_of,
    window_of,
    with_offset,
)
from horai.sdk.declaration import Declaration, Duration, payload_missing
from horai.sdk.deferred import runtime
from horai.sdk.handle import Awaiting, Handle, Handles, handle_of
from horai.sdk.lifecycle import Lifecycle
from horai.sdk.payloads import shape_of
from horai.sdk.portal import PORTAL

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

BATCH, BATCH_SIZE = 2_000, 8 * 1024 * 1024
"""Instances, and characters of payload, in one statement of `enqueue_many`."""
MOST_CALLS = 10_000
"""Most calls with `unique` or `debounce` in one `enqueue_many`: they are one statement."""


class Home(Awaiting, Protocol):
    """The application that a job belongs to."""

    @property
    def lifecycle(self) -> Lifecycle:
        """The hooks, resources and middleware of the application."""
        ...

    async def declare_missing(self, job: "Verbs[..., Any]") -> None:
        """Declare a job if the database does not have it."""
        ...


class Verbs(Generic[P, R]):
    """The methods of one job. `P` are the parameters of its call, `R` is the type of its function's result."""

    def __init__(self, home: Home, declaration: Declaration) -> None:
        self.home = home
        self.declaration = declaration
        self.name = declaration.name

    @property
    def _sealed(self) -> "runtime.SealedPaths":
        return self.declaration.search_paths if self.declaration.is_encrypted else None

    @property
    def entities(self) -> "runtime.Entities":
        """The entities of a refresh job. Raises `Invalid` for other jobs."""
        return runtime.Entities(self)

    @overload
    async def enqueue(self, *arguments: P.args, **named: P.kwargs) -> Handle[R]: ...
    @overload
    async def enqueue(
        self, payload: object = None, *, at: datetime | None, idempotency_key: str | None = None, conn: Any = None
    ) -> Handle[R]: ...
    @overload
    async def enqueue(
        self, payload: object = None, *, delay: Duration | None, idempotency_key: str | None = None, conn: Any = None
    ) -> Handle[R]: ...
    @overload
    async def enqueue(self, payload: object = None, *, idempotency_key: str | None, conn: Any = None) -> Handle[R]: ...
    @overload
    async def enqueue(self, payload: object = None, *, conn: Any) -> Handle[R]: ...
    async def enqueue(self, *arguments: Any, **named: Any) -> Handle[R]:
        """Add an instance: now, at a time, or after a delay. Without a payload it has the job's own.

        With an `idempotency_key` the first call creates it; later calls get the same instance, with `duplicate` set.
        Keywords are the arguments of a function with several parameters: its options go to `options`.
        """
        payload, options = split_call(self.declaration, arguments, named, BESIDE_PAYLOAD)
        return await self.add(payload, options)

    async def add(self, payload: object, options: CallOptions) -> Handle[R]:
        """Add an instance with a payload and options."""
        conn, idempotency_key = options.get("conn"), options.get("idempotency_key")
        when, window, settings = when_of(options), window_of(options), settings_of(options, payload)
        text = self.declaration.encode(payload)
        if window is not None:
            return (await self._add_calls(conn, when, [text], window, None if settings.is_empty else [settings]))[0]
        if idempotency_key is None:
            made = await self.served(
                conn, lambda means: means.enqueue(self.name, when, text, sealed=self._sealed, settings=settings)
            )
            return self._handle(made)
        if conn is not None:
            hint = "In your own transaction, use put with a key."
            raise Invalid.field("idempotency_key", "cannot be combined with conn", hint)
        once = runtime.Once(idempotency_key, json.dumps([str(when), text]).encode())
        made, is_new = await self._asked(
            lambda client: client.enqueue_once(self.name, when, text, once, sealed=self._sealed, settings=settings)
        )
        return self._handle(made, PutDecision.INSERTED if is_new else PutDecision.IGNORED)

    async def call_child(self, payload: object, key: str | None) -> R:
        """Call the job with a payload in a durable function."""
        task = runtime.ChildTask(self.name, self.declaration.encode(payload), lambda: self.home.declare_missing(self))
        return self.declaration.result.decode(await runtime.call_job(task, key))

    async def call(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Call the job in a durable function: create an instance of it once, wait for its end, and return its result.

        The function is suspended meanwhile. Raises `CallFailed` if the instance is dead, was cancelled or was skipped. Calls of
        one job that run at once need a key each: `job.options(key="…").call(…)`.
        """
        return await self.call_child(payload_of_call(self.declaration, arguments, named), None)

    def options(self, **options: Unpack[CallOptions]) -> JobCaller[P, R]:
        """Return the job with options for its next calls: `charge.options(delay="5m").enqueue(order, 100)`."""
        refuse_unknown_options(options)
        return JobCaller(self, options)

    def arguments(self, *arguments: P.args, **named: P.kwargs) -> object:
        """Return the payload of a call with these arguments, for `enqueue_many`, `put(payload=)` and `Wanted`."""
        return payload_of_call(self.declaration, arguments, named)

    async def enqueue_many(
        self,
        payloads: Iterable[object],
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        conn: Any = None,
    ) -> Handles[R]:
        """Add one instance per payload: all of them or none, in order. This is the fastest way to add many."""
        return await self.add_many(payloads, {"at": at, "delay": delay, "conn": conn})

    async def add_many(self, payloads: Iterable[object], options: CallOptions) -> Handles[R]:
        """Add one instance per payload, with options."""
        when, given, window = when_of(options), list(payloads), window_of(options)
        settings = settings_of_all(options, given)
        if window is not None:
            texts = list(map(self.declaration.encode, given))
            return await self._add_calls(options.get("conn"), when, texts, window, settings)
        made = await self.served(
            options.get("conn"),
            lambda means: means.enqueue_many(
                self.name, when, self._batches(given), sealed=self._sealed, settings=settings
            ),
        )
        return Handles(made, self._handle)

    async def _add_calls(
        self,
        conn: Any,
        when: "runtime.When",
        texts: Sequence[str | None],
        window: CallWindow,
        settings: Sequence[CallSettings] | None,
    ) -> Handles[R]:
        if len(texts) > MOST_CALLS:
            raise Invalid.field(
                window.option, f"is for at most {MOST_CALLS} calls at once", "Add them in several calls."
            )
        made = (
            await self.served(conn, lambda means: means.enqueue_calls(self.name, when, texts, window, settings))
            if texts
            else []
        )
        return Handles(range(len(made)), lambda position: self._handle(made[position][1], made[position][0]))

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
        keep_steps: bool = False,
        conn: Any = None,
    ) -> Handle[R]:
        """Create or reschedule the instance of a business key; the handle's `decision` says which.

        A `version` lower than the last accepted one is ignored, and so is an equal one with the same time and payload.
        `again` runs a key that has succeeded once more. Without a payload, a live instance keeps its own. With `keep_steps`, the
        finished steps of a durable function stay finished when its instance is moved or replaced.
        """
        given = CallOptions(at=at, delay=delay, version=version, again=again, keep_steps=keep_steps, conn=conn)
        return await self.put_key(key, payload, given)

    async def put_key(self, key: str, payload: object, options: CallOptions) -> Handle[R]:
        """Put a key with a payload and options."""
        when, intent = when_of(options), put_options_of(options)
        text, conn = self.declaration.signature.shape.encode(payload), options.get("conn")
        needs, settings = text is None and self.declaration.needs_payload, settings_of(options, payload)
        try:
            verdict, made = await self.served(
                conn, lambda means: means.put(self.name, key, when, text, intent, needs, settings)
            )
        except PayloadMissing as error:
            raise payload_missing(self.name) from error
        return self._handle(made, verdict)

    async def cancel(self, key: str, *, compensate: bool = False, conn: Any = None) -> bool:
        """Cancel the live instance of a key. Return False if it has none. Work already done is not undone.

        With `compensate`, the compensations of its finished steps run first.
        """
        return await self.served(conn, lambda means: means.cancel(self.name, key, compensate=compensate))

    async def signal(
        self, key: str, name: str, payload: object = None, *, idempotency_key: str | None = None, conn: Any = None
    ) -> None:
        """Send a signal to the live instance of a key. A second one with the same idempotency key is not stored."""
        sent = runtime.signal_of(name, payload, idempotency_key)
        await self.served(conn, lambda means: means.signal(self.name, check_key(key), sent))

    @overload
    async def trigger(self, *arguments: P.args, **named: P.kwargs) -> Handle[R]: ...
    @overload
    async def trigger(self, payload: object = None, *, idempotency_key: str | None) -> Handle[R]: ...
    async def trigger(self, *arguments: Any, **named: Any) -> Handle[R]:
        """Run the job now, once per key if one is given. Refused while no worker would run it.

        For a refresh job this is a tick: it loads the entities that are due now, and its result says how many.
        """
        payload, options = split_call(self.declaration, arguments, named, BESIDE_TRIGGER)
        return await self.run_now(payload, options)

    async def run_now(self, payload: object, options: CallOptions) -> Handle[R]:
        """Run the job now with a payload and options."""
        idempotency_key, window = options.get("idempotency_key"), call_window(options.get("unique"), None)
        settings = settings_of(options, payload)
        is_tick = self.declaration.document.get("refresh") is not None  # a tick takes no payload
        text = None if is_tick and payload is None else self.declaration.encode(payload)
        once = runtime.Once(idempotency_key or uuid4().hex, (text or "").encode())
        made, is_new = await self._asked(lambda client: client.trigger(self.name, text, once, window, settings))
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
        return upcoming_fires(timing, with_offset("after", after), count)

    async def explain(self, at: datetime | str) -> "runtime.Explanation":
        """Explain why a slot fired, waits, was held or skipped, or why there is none.

        `at` is an instant, or without an offset a time by the clock of the job's zone, which may occur twice or never.
        """
        return await self._asked(lambda client: runtime.explanation(client.scope, self.name, at))

    @overload
    async def backfill(
        self,
        from_: datetime,
        to: datetime | None = None,
        *,
        mode: "runtime.ModeName" = "missing",
        rate: str | int | None = None,
        max_concurrency: int | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> "runtime.Backfill": ...
    @overload
    async def backfill(
        self,
        from_: datetime,
        to: datetime | None = None,
        *,
        mode: "runtime.ModeName" = "missing",
        dry_run: Literal[True],
    ) -> "runtime.BackfillPlan": ...
    async def backfill(
        self,
        from_: datetime,
        to: datetime | None = None,
        *,
        mode: "runtime.ModeName" = "missing",
        rate: str | int | None = None,
        max_concurrency: int | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> "runtime.Backfill | runtime.BackfillPlan":
        """Run past slots of the job, from `from_` to before `to` (default: now), beside its current work.

        `missing` runs the slots that were never created, `failed` those whose last run is dead, `all` every slot; a dry
        run only counts them. With an `idempotency_key`, a repeated call gets the first backfill.
        """
        given = {"from": from_, "to": to, "mode": mode, "rate": rate, "maxConcurrency": max_concurrency}
        return await self._asked(
            lambda client: runtime.backfill_of(client.scope, self.name, given, note, idempotency_key, dry_run=dry_run)
        )

    async def served(
        self, conn: Any, serve: "Callable[[runtime.Client | runtime.CallersTransaction], Awaitable[T]]"
    ) -> T:
        """Return the answer of the database, over the caller's connection if given, otherwise over the client's."""
        if conn is None:
            return await self._asked(serve)
        means = runtime.CallersTransaction(conn, self._sealer(conn), self._digester(conn))
        if runtime.is_sync(conn):
            return await serve(means)  # never suspends: there may be no event loop
        return await self._declared(lambda: serve(means))

    def _sealer(self, conn: Any) -> "runtime.Sealer | None":
        """Return the function that seals payloads for a transaction of the caller; None if the job is not encrypted."""
        paths = self._sealed
        if paths is None:
            return None

        async def seal(payloads: Sequence[str | None]) -> list[str | None]:
            return await (await self.home.client()).sealed(self.name, payloads, paths)

        async def seal_in_thread(payloads: Sequence[str | None]) -> list[str | None]:
            return PORTAL.run(seal(payloads))

        return seal_in_thread if runtime.is_sync(conn) else seal

    def _digester(self, conn: Any) -> "runtime.Digester | None":
        """Return the function that digests arguments for a transaction of the caller; None if the job is not encrypted."""
        if self._sealed is None:
            return None

        async def digest(payloads: Sequence[str | None]) -> list[bytes | None]:
            return await (await self.home.client()).digests_of_calls(self.name, payloads)

        async def digest_in_thread(payloads: Sequence[str | None]) -> list[bytes | None]:
            return PORTAL.run(digest(payloads))

        return digest_in_thread if runtime.is_sync(conn) else digest

    async def _asked(self, serve: "Callable[[runtime.Client], Awaitable[T]]") -> T:
        client = await self.home.client()
        return await self._declared(lambda: serve(client))

    async def _declared(self, serve: Callable[[], Awaitable[T]]) -> T:
        """Run `serve`; if it finds nothing, declare the job if it is missing, and run `serve` again.

        It runs again also if the database has the job: another process can have declared it since.
        """
        try:
            return await serve()
        except NotFound:
            await self.home.declare_missing(self)
            return await serve()

    def handle(self, instance_id: str | int) -> Handle[R]:
        """Return a handle of an instance of this job by its id. Its methods raise `NotFound` if there is none."""
        return handle_of(instance_id, self.home, self.declaration.result, self.name)

    def _handle(self, instance_id: int, verdict: PutDecision = PutDecision.INSERTED) -> Handle[R]:
        return Handle(self.name, instance_id, self.home, self.declaration.result, verdict)
