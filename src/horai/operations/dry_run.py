"""Dry runs: the real operation in a transaction that is rolled back, so its answer and its errors are the real ones."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from horai.db.pool import Lender, Plans, TenantWrite
from horai.db.wakeups import HeldWakeups
from horai.operations.scope import Scope


class _RolledBack(Exception):
    """The end of a dry run."""


class _OneConnection(Lender[TenantWrite]):
    """A stand-in for the pool of a scope that lends one connection; transactions on it are savepoints."""

    def __init__(self, connection: TenantWrite) -> None:
        self._connection = connection

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[TenantWrite]:
        yield self._connection


@asynccontextmanager
async def rolled_back(scope: Scope) -> AsyncGenerator[Scope]:
    """Return a copy of the scope whose writes are undone at the end. No node and no other request sees one of them."""
    with suppress(_RolledBack):
        async with scope.write(Plans.FRESH) as connection:
            held = HeldWakeups(scope.wakeups)
            yield replace(scope, pool=_OneConnection(connection), wakeups=held, reader=None, longest=0)
            raise _RolledBack


@asynccontextmanager
async def perhaps(scope: Scope, *, is_dry: bool) -> AsyncGenerator[Scope]:
    """Return the scope, or one for a dry run."""
    if not is_dry:
        yield scope
        return
    async with rolled_back(scope) as trial:
        yield trial
