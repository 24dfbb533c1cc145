"""Shared limits of the bulk verbs: how long one waits for a row that another transaction has locked."""

from datetime import timedelta

import asyncpg

PATIENCE = timedelta(milliseconds=50)
"""The longest wait for a lock, far less than PostgreSQL takes to notice a deadlock (1 s)."""
HELD_UP = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
