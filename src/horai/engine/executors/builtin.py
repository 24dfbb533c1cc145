"""The shared parts of the built-in executors: a connection lent for one attempt, and errors that do not count."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import asyncpg

from horai.core.errors import DatabaseUnavailable
from horai.db.pool import GONE, Platform

Lend: TypeAlias = Callable[[], AbstractAsyncContextManager[Platform]]

HELD_UP: tuple[type[Exception], ...] = (
    DatabaseUnavailable,
    asyncpg.LockNotAvailableError,
    asyncpg.TransactionRollbackError,
    *GONE,
)
"""Another transaction holds a row that the attempt needs, or the database is away: retry without counting a failure."""
