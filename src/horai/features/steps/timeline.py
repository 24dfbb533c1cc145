"""The records of an instance as its users see them: one function per statement of timeline.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from horai.core.states import State
from horai.db.catalog import sql
from horai.db.pool import TenantRead
from horai.features.steps.rules import Kind, StepState

RESULT_SHOWN = 4_096
"""Bytes of a result that lists show."""
SIGNALS_SHOWN = 100
WAITS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class StepRow:
    """A record with its times. `result` is None if it is larger than `RESULT_SHOWN`."""

    kind: Kind
    name: str
    n: int
    state: StepState
    tries: int
    started_at: datetime
    finished_at: datetime | None
    until: datetime | None
    error_type: str | None
    error_msg: str | None
    result: str | None
    result_size: int | None
    child_id: int | None
    child_state: State | None
    child_job: str | None


@dataclass(frozen=True, slots=True)
class WaitingSignal:
    """A signal that no wait has taken."""

    id: int
    name: str
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Pending:
    """The names of the signals that a live instance waits for, and the number of steps that a cancel with compensation undoes."""

    waits: Sequence[str] = ()
    open_compensations: int = 0


async def steps_of_instance(connection: TenantRead, instance_id: int, after: int, limit: int) -> list[StepRow]:
    """Return the records number `after` + 1 and up of an instance, at most `limit`, in the order of their beginnings."""
    rows = await connection.fetch(sql("steps_of_instance"), instance_id, after, limit, RESULT_SHOWN)
    return [_row(*row.values()) for row in rows]


async def signals_of_instance(connection: TenantRead, instance_id: int) -> Sequence[WaitingSignal]:
    """Return the last signals of an instance that no wait has taken."""
    rows = await connection.fetch(sql("signals_of_instance"), instance_id, SIGNALS_SHOWN)
    return [WaitingSignal(*row.values()) for row in rows]


async def pending_of_instance(connection: TenantRead, instance_id: int) -> Pending:
    """Return what a live instance waits for and could compensate; nothing of one that has ended."""
    row = await connection.fetchrow(sql("pending_of_instance"), instance_id, WAITS_SHOWN)
    return Pending() if row is None else Pending(*row.values())


def _row(
    kind: int, name: str, n: int, state: int, tries: int, started_at: datetime, finished_at: datetime | None,
    until: datetime | None, error_type: str | None, error_msg: str | None, result: str | None, result_size: int | None,
    child_id: int | None, child_state: int | None, child_job: str | None,
) -> StepRow:  # fmt: skip
    known = None if child_state is None else State(child_state)
    return StepRow(
        Kind(kind), name, n, StepState(state), tries, started_at, finished_at, until, error_type, error_msg, result,
        result_size, child_id, known, child_job,
    )  # fmt: skip
