"""The methods of a job without `await`, for code that has no event loop: `publish.sync.put("article:42", at=when)`.

They run in an event loop of their own, in a thread of their own. With the caller's own connection (`conn=`) they run in
the caller's thread, to which the connection belongs.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, ParamSpec, TypeVar, Unpack, cast, overload

from horai.core.errors import Invalid, NotFound
from horai.core.upcoming import Fire
from horai.sdk.backfills import Backfill, BackfillPlan, BackfillProgress, ModeName
from horai.sdk.call_options import BESIDE_PAYLOAD, BESIDE_TRIGGER, CallOptions, split_call
from horai.sdk.declaration import Duration
from horai.sdk.deferred import runtime
from horai.sdk.job_api import Verbs
from horai.sdk.portal import PORTAL
from horai.sdk.sync_handle import SyncHandle

R = TypeVar("R")
T = TypeVar("T")
P = ParamSpec("P")


def _wait(job: Verbs[..., Any], conn: Any, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the result of a coroutine: in the thread of the caller if it uses the caller's connection."""
    if conn is None:
        return PORTAL.run(make())
    if not runtime.is_sync(conn):
        raise Invalid.field("conn", "is asynchronous, and `.sync` cannot wait for it", "Await the job's own method.")
    try:
        return run_here(make())
    except NotFound:
        PORTAL.run(job.home.declare_missing(job))
        return run_here(make())


def run_here(claimed_job: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends, as is the case with a blocking connection."""
    try:
        claimed_job.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("a blocking connection suspended the coroutine")


class SyncBackfill:
    """A handle of a backfill without `await`."""

    __slots__ = ("_backfill",)

    def __init__(self, backfill: Backfill) -> None:
        self._backfill = backfill

    def __repr__(self) -> str:
        return repr(self._backfill)

    @property
    def id(self) -> str:
        """The id of the backfill."""
        return self._backfill.id

    @property
    def total(self) -> int:
        """The number of slots to run."""
        return self._backfill.total

    def progress(self) -> BackfillProgress:
        """Return the current progress."""
        return PORTAL.run(self._backfill.progress())

    def pause(self, note: str | None = None) -> BackfillProgress:
        """Pause the backfill: create no further slots. Instances that exist continue."""
        return PORTAL.run(self._backfill.pause(note))

    def resume(self, note: str | None = None) -> BackfillProgress:
        """Resume the backfill where it stopped."""
        return PORTAL.run(self._backfill.resume(note))

    def cancel(self, note: str | None = None) -> BackfillProgress:
        """Cancel the backfill: create no further slots and cancel waiting instances. Running ones finish."""
        return PORTAL.run(self._backfill.cancel(note))

    def wait(self, timeout: float | str | timedelta | None = None) -> BackfillProgress:
        """Wait until the backfill has ended and return its progress."""
        return PORTAL.run(self._backfill.wait(timeout))


class SyncEntities:
    """The entities of a refresh job without `await`."""

    def __init__(self, job: Verbs[..., Any]) -> None:
        self.job = job

    def add(self, key: str, payload: object = None, *, conn: Any = None) -> bool:
        """Add an entity, or change its payload; return whether it is new."""
        return _wait(self.job, conn, lambda: self.job.entities.add(key, payload, conn=conn))

    def add_many(self, items: Mapping[str, object] | Iterable[str], *, conn: Any = None) -> int:
        """Add many entities, with payloads if `items` is a mapping; return how many are new."""
        given = cast("Mapping[str, object]", items) if isinstance(items, Mapping) else list(items)
        return _wait(self.job, conn, lambda: self.job.entities.add_many(given, conn=conn))

    def remove(self, key: str, *, conn: Any = None) -> bool:
        """Remove an entity; return whether it existed."""
        return _wait(self.job, conn, lambda: self.job.entities.remove(key, conn=conn))


class SyncJobCaller(Generic[P, R]):
    """A job with the options of its next calls, without `await`."""

    def __init__(self, job: Verbs[P, R], options: CallOptions) -> None:
        self._job = job
        self._caller = job.options(**options)
        self._conn = options.get("conn")

    def enqueue(self, *arguments: P.args, **named: P.kwargs) -> SyncHandle[R]:
        """Add an instance with these arguments."""
        return SyncHandle(_wait(self._job, self._conn, lambda: self._caller.enqueue(*arguments, **named)))

    def enqueue_many(self, payloads: Iterable[object]) -> list[SyncHandle[R]]:
        """Add one instance per item: all of them or none. `job.arguments(…)` makes an item."""
        given = list(payloads)
        return list(map(SyncHandle, _wait(self._job, self._conn, lambda: self._caller.enqueue_many(given))))

    def put(self, key: str, /, *arguments: P.args, **named: P.kwargs) -> SyncHandle[R]:
        """Create or reschedule the instance of a business key, with these arguments."""
        return SyncHandle(_wait(self._job, self._conn, lambda: self._caller.put(key, *arguments, **named)))

    def trigger(self, *arguments: P.args, **named: P.kwargs) -> SyncHandle[R]:
        """Run the job now with these arguments."""
        return SyncHandle(PORTAL.run(self._caller.trigger(*arguments, **named)))


class SyncVerbs(Generic[P, R]):
    """The methods of a job without `await`."""

    def __init__(self, job: Verbs[P, R]) -> None:
        self.job = job

    @overload
    def enqueue(self, *arguments: P.args, **named: P.kwargs) -> SyncHandle[R]: ...
    @overload
    def enqueue(
        self, payload: object = None, *, at: datetime | None, idempotency_key: str | None = None, conn: Any = None
    ) -> SyncHandle[R]: ...
    @overload
    def enqueue(
        self, payload: object = None, *, delay: Duration | None, idempotency_key: str | None = None, conn: Any = None
    ) -> SyncHandle[R]: ...
    @overload
    def enqueue(self, payload: object = None, *, idempotency_key: str | None, conn: Any = None) -> SyncHandle[R]: ...
    @overload
    def enqueue(self, payload: object = None, *, conn: Any) -> SyncHandle[R]: ...
    def enqueue(self, *arguments: Any, **named: Any) -> SyncHandle[R]:
        """Add an instance: now, at a time, or after a delay. Without a payload it has the job's own."""
        payload, options = split_call(self.job.declaration, arguments, named, BESIDE_PAYLOAD)
        return SyncHandle(_wait(self.job, options.get("conn"), lambda: self.job.add(payload, options)))

    def enqueue_many(
        self,
        payloads: Iterable[object],
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        conn: Any = None,
    ) -> list[SyncHandle[R]]:
        """Add one instance per payload: all of them or none, in order."""
        given, options = list(payloads), CallOptions(at=at, delay=delay, conn=conn)
        return list(map(SyncHandle, _wait(self.job, conn, lambda: self.job.add_many(given, options))))

    def put(
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
    ) -> SyncHandle[R]:
        """Create or reschedule the instance of a business key; the handle's `decision` says which."""
        options = CallOptions(at=at, delay=delay, version=version, again=again, keep_steps=keep_steps, conn=conn)
        return SyncHandle(_wait(self.job, conn, lambda: self.job.put_key(key, payload, options)))

    @overload
    def trigger(self, *arguments: P.args, **named: P.kwargs) -> SyncHandle[R]: ...
    @overload
    def trigger(self, payload: object = None, *, idempotency_key: str | None) -> SyncHandle[R]: ...
    def trigger(self, *arguments: Any, **named: Any) -> SyncHandle[R]:
        """Run the job now, once per key if one is given. Refused while no worker would run it."""
        payload, options = split_call(self.job.declaration, arguments, named, BESIDE_TRIGGER)
        return SyncHandle(PORTAL.run(self.job.run_now(payload, options)))

    def options(self, **options: Unpack[CallOptions]) -> SyncJobCaller[P, R]:
        """Return the job with options for its next calls."""
        return SyncJobCaller(self.job, options)

    def handle(self, instance_id: str | int) -> SyncHandle[R]:
        """Return a handle of an instance of this job by its id."""
        return SyncHandle(self.job.handle(instance_id))

    def cancel(self, key: str, *, compensate: bool = False, conn: Any = None) -> bool:
        """Cancel the live instance of a key. Return False if it has none. Work already done is not undone.

        With `compensate`, the compensations of its finished steps run first.
        """
        return _wait(self.job, conn, lambda: self.job.cancel(key, compensate=compensate, conn=conn))

    def signal(
        self, key: str, name: str, payload: object = None, *, idempotency_key: str | None = None, conn: Any = None
    ) -> None:
        """Send a signal to the live instance of a key. A second one with the same idempotency key is not stored."""
        send = self.job.signal
        _wait(self.job, conn, lambda: send(key, name, payload, idempotency_key=idempotency_key, conn=conn))

    def next(self, count: int = 10, *, after: datetime | None = None) -> list[Fire]:
        """Return the upcoming fires of the job as declared here."""
        return PORTAL.run(self.job.next(count, after=after))

    def explain(self, at: datetime | str) -> "runtime.Explanation":
        """Explain why a slot fired, waits, was held or skipped, or why there is none."""
        return PORTAL.run(self.job.explain(at))

    @overload
    def backfill(
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
    ) -> SyncBackfill: ...
    @overload
    def backfill(
        self, from_: datetime, to: datetime | None = None, *, mode: ModeName = "missing", dry_run: Literal[True]
    ) -> BackfillPlan: ...
    def backfill(self, *arguments: Any, **named: Any) -> SyncBackfill | BackfillPlan:
        """Run past slots of the job beside its current work; a dry run only counts them."""
        verb = cast("Callable[..., Coroutine[Any, Any, Backfill | BackfillPlan]]", self.job.backfill)
        made = PORTAL.run(verb(*arguments, **named))
        return SyncBackfill(made) if isinstance(made, Backfill) else made

    @property
    def entities(self) -> SyncEntities:
        """The entities of a refresh job."""
        return SyncEntities(self.job)
