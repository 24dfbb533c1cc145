"""What the executors of Horai's own handlers share: a connection lent for one attempt, and what is no fault of theirs."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import asyncpg

from horai.core.errors import DatabaseUnavailable
from horai.db.pool import GONE, Connection

Lend: TypeAlias = Callable[[], AbstractAsyncContextManager[Connection]]

HELD_UP: tuple[type[Exception], ...] = (
    DatabaseUnavailable,
    asyncpg.LockNotAvailableError,
    asyncpg.TransactionRollbackError,
    *GONE,
)
"""Somebody holds what an attempt needs, or the database is away: it comes again, and nothing is counted against it."""
