"""The methods of a job without `await`, for code that has no event loop: `publish.sync.put("article:42", at=when)`.

They run in an event loop of their own, in a thread of their own. With the caller's own connection (`conn=`) they run in
the caller's thread, to which the connection belongs.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, cast, overload

from horai.core.errors import Invalid, NotFound
from horai.core.put import PutDecision
from horai.sdk.backfills import Backfill, BackfillPlan, BackfillProgress
from horai.sdk.drivers import is_sync
from horai.sdk.handle import Handle
from horai.sdk.job_api import ModeName, Verbs
from horai.sdk.portal import PORTAL

R = TypeVar("R")
T = TypeVar("T")
Q = ParamSpec("Q")


class SyncHandle(Generic[R]):
    """A handle that waits for its result without `await`."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle[R]) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        return repr(self._handle)

    @property
    def id(self) -> str:
        """The id of the instance."""
        return self._handle.id

    @property
    def decision(self) -> PutDecision:
        """The result of a put."""
        return self._handle.decision

    @property
    def duplicate(self) -> bool:
        """Return whether the instance existed before, and nothing was added."""
        return self._handle.duplicate

    def result(self, timeout: float | str | timedelta | None = None) -> R:
        """Wait for the function and return its result."""
        return PORTAL.run(self._handle.result(timeout))


def _blocking(
    verb: Callable[Concatenate[Verbs[Any], Q], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncVerbs[Any]", Q], T]:
    @wraps(verb)
    def call(self: "SyncVerbs[Any]", /, *arguments: Q.args, **named: Q.kwargs) -> T:
        job = self.job
        if (conn := named.get("conn")) is None:
            return PORTAL.run(verb(job, *arguments, **named))
        if not is_sync(conn):
            raise Invalid.field(
                "conn", "is asynchronous, and `.sync` cannot wait for it", "Await the job's own method."
            )
        try:
            return _here(verb(job, *arguments, **named))
        except NotFound:
            if not PORTAL.run(job.home.declare_missing(job)):
                raise
            return _here(verb(job, *arguments, **named))

    return call


def _here(claimed_job: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends, as is the case with a blocking connection."""
    try:
        claimed_job.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("a blocking connection suspended the coroutine")


def _handled(
    verb: Callable[Concatenate[Verbs[Any], Q], Coroutine[Any, Any, Handle[Any]]],
) -> Callable[Concatenate["SyncVerbs[Any]", Q], SyncHandle[Any]]:
    blocking = _blocking(verb)

    @wraps(verb)
    def call(self: "SyncVerbs[Any]", /, *arguments: Q.args, **named: Q.kwargs) -> SyncHandle[Any]:
        return SyncHandle(blocking(self, *arguments, **named))

    return call


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

    def __init__(self, job: Verbs[Any]) -> None:
        self.job = job

    def add(self, key: str, payload: object = None, *, conn: Any = None) -> bool:
        """Add an entity, or change its payload; return whether it is new."""
        return _add_entity(SyncVerbs(self.job), key, payload, conn=conn)

    def add_many(self, items: Mapping[str, object] | Iterable[str], *, conn: Any = None) -> int:
        """Add many entities, with payloads if `items` is a mapping; return how many are new."""
        return _add_entities(SyncVerbs(self.job), items, conn=conn)

    def remove(self, key: str, *, conn: Any = None) -> bool:
        """Remove an entity; return whether it existed."""
        return _remove_entity(SyncVerbs(self.job), key, conn=conn)


class SyncVerbs(Generic[R]):
    """The methods of a job without `await`."""

    def __init__(self, job: Verbs[R]) -> None:
        self.job = job

    enqueue = _handled(Verbs[Any].enqueue)
    put = _handled(Verbs[Any].put)
    trigger = _handled(Verbs[Any].trigger)
    cancel = _blocking(Verbs[Any].cancel)
    next = _blocking(Verbs[Any].next)
    explain = _blocking(Verbs[Any].explain)

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

    def enqueue_many(self, *arguments: Any, **named: Any) -> list[SyncHandle[R]]:
        """Add one instance per payload: all of them or none, in order."""
        return [SyncHandle(handle) for handle in _many(self, *arguments, **named)]


_many = _blocking(Verbs[Any].enqueue_many)


@_blocking
async def _add_entity(job: Verbs[Any], key: str, payload: object, *, conn: Any = None) -> bool:
    return await job.entities.add(key, payload, conn=conn)


@_blocking
async def _add_entities(job: Verbs[Any], items: Mapping[str, object] | Iterable[str], *, conn: Any = None) -> int:
    return await job.entities.add_many(items, conn=conn)


@_blocking
async def _remove_entity(job: Verbs[Any], key: str, *, conn: Any = None) -> bool:
    return await job.entities.remove(key, conn=conn)
