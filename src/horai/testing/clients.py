"""The clients of an application under test: they use the test's database and its virtual time, in every event loop."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from typing import Protocol

from horai.core.wakes import Wake
from horai.db import instance_queries
from horai.db.clock import DatabaseClock
from horai.db.instance_queries import EndedInstance
from horai.db.pool import close_pool, open_pool
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.operations.keyring import Keyring
from horai.sdk.client import CONNECTIONS, Client, process_scope
from horai.sdk.enqueue_batcher import EnqueueBatcher
from horai.sdk.results import Results
from horai.testing.keys import TEST_KEYS


class NotEnded(AssertionError):
    """The result of an instance that has not ended was awaited, and virtual time does not pass while a test waits."""


class Drive(Protocol):
    """The part of `VirtualTime` that a client uses."""

    @property
    def now(self) -> datetime:
        """Return the virtual time."""
        ...

    @property
    def is_moving(self) -> bool:
        """Return whether the harness is running instances now."""
        ...

    async def drain(self) -> object:
        """Run the instances that are due now."""
        ...


class VirtualClient(Client):
    """A client that raises instead of waiting for virtual time to pass. `drive` is None outside the test's loop."""

    drive: Drive | None = None

    async def ended(self, instance_id: int) -> EndedInstance:
        """Run all due instances, then return how this one ended. Raises `NotEnded` if it has not.

        A function that awaits the result of another instance does wait, because the harness is running instances.
        """
        if self.drive is None or self.drive.is_moving:
            return await super().ended(instance_id)
        await self.drive.drain()
        async with self.scope.read() as connection:
            found = await instance_queries.ended(connection, self.scope.tenant_id, [instance_id])
            if found:
                return await self.readable(found[0])
            row = await instance_queries.instance_by_id(connection, self.scope.tenant_id, instance_id)
        state = f"is {row.state.name}, due at {row.execute_time.isoformat()}" if row else "does not exist"
        raise NotEnded(f"The instance {instance_id} {state}; the time is {self.drive.now.isoformat()}: advance it.")

    async def rest(self, seconds: float, reads: int) -> None:
        """Run all due instances instead of waiting. Raises `NotEnded` if that was done and did not help."""
        if self.drive is None or self.drive.is_moving:
            await super().rest(seconds, reads)
        elif reads:
            raise NotEnded(f"It has not ended; the time is {self.drive.now.isoformat()}: advance it.")
        else:
            await self.drive.drain()


class Clients:
    """One client per event loop, all on one database. Each is opened and closed in its own loop."""

    def __init__(self, url: str, clock: DatabaseClock, wakeups: Wakeups, drive: Drive) -> None:
        self._url = url
        self._clock = clock
        self._wakeups = wakeups
        self._drive = drive
        self._home = asyncio.get_running_loop()
        self._clients: dict[asyncio.AbstractEventLoop, asyncio.Task[VirtualClient]] = {}

    async def get(self) -> Client:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = asyncio.create_task(self._open(loop))
        return await asyncio.shield(self._clients[loop])

    async def _open(self, loop: asyncio.AbstractEventLoop) -> VirtualClient:
        async with AsyncExitStack() as stack:
            pool = await open_pool(self._url, "horai test client", CONNECTIONS)
            stack.push_async_callback(close_pool, pool)
            wakeups = self._wakeups if loop is self._home else self._passing_on()
            scope = await process_scope(pool, wakeups, Keyring(TEST_KEYS))
            results = Results(pool, scope.tenant_id)
            stack.push_async_callback(results.close)
            inserts = EnqueueBatcher(StageConnection(self._url, "horai test inserts"), wakeups, scope.tenant_id)
            stack.push_async_callback(inserts.close)
            client = VirtualClient(stack.pop_all(), scope, self._clock, inserts, results)
            client.drive = self._drive if loop is self._home else None
            return client
        raise AssertionError("unreachable")

    def _passing_on(self) -> Wakeups:
        """Return wakeups that pass the wakes of another loop's client on to the test's loop."""
        hear: Callable[[Wake], None] = self._wakeups.deliver
        wakeups = Wakeups()
        wakeups.pass_on_to(lambda wake: _call_in(self._home, hear, wake))
        return wakeups

    async def release(self) -> None:
        """Close the client of the running loop; the next `get` opens another."""
        opening = self._clients.pop(asyncio.get_running_loop(), None)
        if opening is not None:
            await _close(opening)

    async def close(self) -> None:
        """Close all clients, each in its own loop."""
        for loop, opening in self._clients.items():
            if loop is self._home:
                await _close(opening)
            elif not loop.is_closed():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_close(opening), loop))
        self._clients.clear()


async def _close(opening: "asyncio.Task[VirtualClient]") -> None:
    with suppress(Exception):  # a client that could not be opened
        await (await opening).close()


def _call_in(loop: asyncio.AbstractEventLoop, hear: Callable[[Wake], None], wake: Wake) -> None:
    with suppress(RuntimeError):  # the test is over
        loop.call_soon_threadsafe(hear, wake)
