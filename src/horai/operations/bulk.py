"""Bulk verbs: how long one waits for a row that another transaction holds."""

from datetime import timedelta

import asyncpg

PATIENCE = timedelta(milliseconds=50)
"""Far less than PostgreSQL takes to notice a deadlock (1 s)."""
HELD_UP = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
