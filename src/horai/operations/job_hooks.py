"""The hooks that a feature adds to the life of a job, called by the kernel's operations."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from horai.db.jobs import JobRow
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead, TenantWrite


@dataclass(frozen=True, slots=True)
class JobHooks:
    """The hooks of one feature. Each hook runs inside the transaction of the operation."""

    may_delete: Callable[[TenantRead, JobRow], Awaitable[None]] | None = None
    """Raise `Conflict` if the feature still needs the job."""

    written: Callable[[TenantWrite, JobRow], Awaitable[None]] | None = None
    """Store what the feature reads from the definition of a job that was created or changed. Raise `Invalid` to refuse it."""

    waiting_lane: Callable[[AnyWrite, int], Awaitable[int | None]] | None = None
    """Return the lane of waiting instances that the feature has made for the job, or None if it has made none."""

    clear: Callable[[AnyWrite, int, int], Awaitable[int]] | None = None
    """Delete rows of the feature that belong to a deleted job, up to a limit. Return how many were deleted."""

    is_clear: Callable[[AnyRead, int], Awaitable[bool]] | None = None
    """Return whether no row is left for `clear`."""

    replaced: Callable[[Platform, Collection[int]], Awaitable[None]] | None = None
    """Give up the work that these dead instances began: other instances repeat it."""
