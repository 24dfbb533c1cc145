"""Host name lookups in which names whose server does not answer delay no other name.

`getaddrinfo` blocks, so each lookup has a thread. These bounds hold:

* one lookup per tenant and name at a time; further callers of the tenant share it;
* 16 at a time per tenant and registered domain (approximation: the last two labels of the name);
* 64 at a time per tenant, and 256 in all. A lookup that takes longer than 0.25 s does not count towards them, up to 192
  such lookups per tenant, and 768 in all;
* 16 at a time per tenant, and 64 in all, for names whose last lookup took longer than 0.25 s, within the last minute.

So the dead names of one tenant leave three quarters of all places to the others, and no caller waits for a lookup that
another tenant's bounds delay. Answers are shared: a name has the same addresses for every tenant.

An answer is fresh for `fresh_for` seconds and kept for an hour. A kept one is used again if a later lookup takes longer
than 1 s or fails without an answer; an answer that the name does not exist is believed.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

PLACES = 256
SLOW_PLACES = 64
MOST_OVERDUE = 768
TENANT_PLACES = 64
TENANT_SLOW_PLACES = 16
TENANT_MOST_OVERDUE = 192
PER_DOMAIN = 16
SLOW_AFTER = 0.25
"""Seconds after which a lookup counts as slow."""
SLOW_FOR = 60.0
"""Seconds for which a name counts as slow after a slow lookup."""
PATIENCE = 1.0
"""Seconds that a lookup may take before an earlier answer is used."""
STALE_FOR = 3600.0
"""Seconds for which an answer may be used while there is no newer one."""
NAMES_KEPT = 10_000
BELIEVED = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class Lookup(NamedTuple):
    """The arguments of a lookup."""

    host: str
    port: int
    family: int


class _Bounds:
    """The lookups that one tenant, or all tenants together, may have under way."""

    def __init__(self, places: int, slow_places: int, most_overdue: int) -> None:
        self.lane = asyncio.Semaphore(places)
        self.slow_lane = asyncio.Semaphore(slow_places)
        self.most_overdue = most_overdue
        self.overdue = 0


class Lookups(Generic[T]):
    """The lookups of one process. `look_up` blocks, and raises OSError when it finds nothing."""

    def __init__(self, look_up: Callable[[str, int, int], T], fresh_for: float = 0.0) -> None:
        self._look_up = look_up
        self._fresh_for = fresh_for
        self._underway: dict[tuple[str, Lookup], asyncio.Task[T]] = {}
        self._kept: dict[Lookup, tuple[float, T]] = {}
        self._slow: dict[str, float] = {}
        self._domains: WeakValueDictionary[tuple[str, str], asyncio.Semaphore] = WeakValueDictionary()
        self._tenants: WeakValueDictionary[str, _Bounds] = WeakValueDictionary()
        self._all = _Bounds(PLACES, SLOW_PLACES, MOST_OVERDUE)

    async def find(self, question: Lookup, tenant: str = "") -> T:
        """Return the newest answer, or one at most an hour old if there is none now. Raises OSError without either."""
        if (fresh := self._earlier(question, self._fresh_for)) is not None:
            return fresh
        asked = self._underway.get((tenant, question)) or self._ask(question, tenant)
        earlier = self._earlier(question, STALE_FOR)
        if earlier is None:
            return await asyncio.shield(asked)
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.shield(asked)
        except TimeoutError:
            return earlier
        except socket.gaierror as error:
            if error.errno in BELIEVED:
                raise
            return earlier

    def close(self) -> None:
        """Stop waiting for lookups. Their threads end by themselves and do not keep the process from ending."""
        for task in self._underway.values():
            task.cancel()

    def _earlier(self, question: Lookup, age: float) -> T | None:
        at, answer = self._kept.get(question, (0.0, None))
        return answer if time.monotonic() - at < age else None

    def _ask(self, question: Lookup, tenant: str) -> "asyncio.Task[T]":
        def ended(task: "asyncio.Task[T]") -> None:
            self._underway.pop((tenant, question), None)
            if not task.cancelled():
                task.exception()  # read: all callers may have given up

        task = asyncio.create_task(self._answer(question, tenant))
        self._underway[tenant, question] = task
        task.add_done_callback(ended)
        return task

    async def _answer(self, question: Lookup, tenant: str) -> T:
        domain = (tenant, registered_domain(question.host))
        turns = self._domains.get(domain) or asyncio.Semaphore(PER_DOMAIN)
        self._domains[domain] = turns  # dropped with the last lookup that refers to it
        own = self._tenants.get(tenant) or _Bounds(TENANT_PLACES, TENANT_SLOW_PLACES, TENANT_MOST_OVERDUE)
        self._tenants[tenant] = own
        async with turns:
            answer = await self._within(question, (own, self._all))
        _keep(self._kept, question, (time.monotonic(), answer))
        return answer

    async def _within(self, question: Lookup, bounds: tuple[_Bounds, ...]) -> T:
        """Look up within these bounds. A place of the tenant comes first: its callers wait for it, and no other's do."""
        is_slow = time.monotonic() < self._slow.pop(question.host, 0.0)
        held: list[asyncio.Semaphore] = []
        is_overdue = False
        try:
            for each in bounds:
                lane = each.slow_lane if is_slow else each.lane
                await lane.acquire()
                held.append(lane)
            looking = _in_thread(lambda: self._look_up(*question))
            await asyncio.wait({looking}, timeout=SLOW_AFTER)
            if not looking.done():
                _keep(self._slow, question.host, time.monotonic() + SLOW_FOR)
                if not is_slow and all(each.overdue < each.most_overdue for each in bounds):
                    is_overdue = True
                    _count_overdue(bounds, 1)
                    _release(held)
            return await looking
        finally:
            _release(held)
            if is_overdue:
                _count_overdue(bounds, -1)


def _release(held: list[asyncio.Semaphore]) -> None:
    while held:
        held.pop().release()


def _count_overdue(bounds: tuple[_Bounds, ...], more: int) -> None:
    for each in bounds:
        each.overdue += more


K = TypeVar("K")
V = TypeVar("V")


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    """Store the value as the newest entry, and drop the oldest when there are more than `NAMES_KEPT`."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > NAMES_KEPT:
        del kept[next(iter(kept))]


def registered_domain(host: str) -> str:
    """Return the last two labels of the name."""
    return ".".join(host.lower().rstrip(".").rsplit(".", 2)[-2:])


def _in_thread(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Run `work` in a thread of its own, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if future.done() else settle())

    def run() -> None:
        try:
            found = work()
        except Exception as error:
            failed = error
            tell(lambda: future.set_exception(failed))
        else:
            tell(lambda: future.set_result(found))

    try:
        threading.Thread(target=run, name="horai-lookup", daemon=True).start()
    except RuntimeError as error:
        raise socket.gaierror(socket.EAI_AGAIN, "no thread could be started") from error
    return future
