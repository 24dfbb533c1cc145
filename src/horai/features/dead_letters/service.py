"""One dead letter: read, replay, discard. Replay and discard may be repeated: the first call counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from horai.core.audit import AuditVerb
from horai.core.errors import AlreadyFinal, NotFound
from horai.core.sealed_values import SealedColumn
from horai.db import dead_letters, instance_queries, nodes
from horai.db.dead_letters import FaultRow, LetterRow, ReplayStatus
from horai.db.instance_queries import InstanceRow
from horai.db.pool import TenantRead, TenantWrite, limit_lock_wait, retrying
from horai.operations import audit
from horai.operations.bulk import HELD_UP, PATIENCE
from horai.operations.instances import read_instance
from horai.operations.letter_replay import ReplayResult, replay_locked, tell_replayed
from horai.operations.readable_values import ValueReader
from horai.operations.scope import Scope
from horai.text import Hint, Refused

AnyRow = TypeVar("AnyRow", LetterRow, FaultRow)

LOOKS = 20
"""The number of attempts of a replay that gives way to a transaction that has locked its key."""


@dataclass(frozen=True, slots=True)
class LetterResult:
    """A letter as it is now, whether this call replayed it, and the new instance, from this call or an earlier one."""

    letter: LetterRow
    replayed: bool
    instance: InstanceRow | None


async def read_letter(scope: Scope, letter_id: int) -> LetterRow:
    """Return a letter of this tenant."""
    async with scope.read() as connection:
        letter = await dead_letters.letter_by_id(connection, scope.tenant_id, letter_id)
        if letter is None:
            raise _not_found(letter_id)
        return (await readable_letters(connection, scope, [letter]))[0]


async def readable_letters(connection: TenantRead, scope: Scope, rows: Sequence[AnyRow]) -> Sequence[AnyRow]:
    """Return letters or faults as the caller may see them: the error texts of encrypted jobs are sealed."""
    sealed = [row for row in rows if row.is_encrypted]
    if not sealed:
        return rows
    reader, column = ValueReader(scope), SealedColumn.ERROR
    await reader.load(connection, ((row.job, column, row.error_msg) for row in sealed))
    return [
        replace(row, error_msg=reader.text(row.job, column, row.error_msg)) if row.is_encrypted else row for row in rows
    ]


async def replay_letter(scope: Scope, letter_id: int) -> LetterResult:
    """Run a dead instance again, as a new one; if its letter was replayed before, return that instance."""
    done = await _replay(scope, letter_id)
    tell_replayed(scope, done)
    letter = await read_letter(scope, letter_id)
    if letter.replay_status is ReplayStatus.DISCARDED:
        raise _settled(letter, Refused.LETTER_NOT_REPLAYED)
    if letter.replay_status is ReplayStatus.NEW:
        raise AlreadyFinal(
            Refused.LETTER_JOB_GONE(job=letter.job, letter=letter.id),
            Hint.DISCARD(letter=letter.id),
        )
    instance = None if letter.replayed_as is None else await read_instance(scope, letter.replayed_as)
    return LetterResult(letter, bool(done.made), instance)


async def _replay(scope: Scope, letter_id: int) -> ReplayResult:
    async def attempt() -> ReplayResult:
        async with scope.write() as connection:
            return await _replay_within(connection, scope, letter_id)

    return await retrying(attempt, LOOKS, HELD_UP)


async def _replay_within(connection: TenantWrite, scope: Scope, letter_id: int) -> ReplayResult:
    locked = await dead_letters.lock_letter(connection, scope.tenant_id, letter_id)
    if locked is None:
        raise _not_found(letter_id)
    if locked.replay_status is not ReplayStatus.NEW:
        return ReplayResult()
    if await instance_queries.instance_by_id(connection, scope.tenant_id, locked.instance_id) is None:
        raise AlreadyFinal(
            Refused.LETTER_INSTANCE_GONE(letter=letter_id),
            Hint.DISCARD(letter=letter_id),
        )
    now = await nodes.database_time(connection)
    await limit_lock_wait(connection, PATIENCE)
    done = await replay_locked(connection, [(locked, now)])
    if done.made:
        await audit.record_write(connection, scope, AuditVerb.DEAD_LETTER_REPLAY, letter_id, "")
    return done


async def discard_letter(scope: Scope, letter_id: int, reason: str | None) -> LetterRow:
    """Settle a letter without a replay; discarding it again changes nothing, and its first reason stays."""
    async with scope.write() as connection:
        if await dead_letters.lock_letter(connection, scope.tenant_id, letter_id) is None:
            raise _not_found(letter_id)
        await dead_letters.discard_letter(connection, letter_id, reason)
        await audit.record_write(connection, scope, AuditVerb.DEAD_LETTER_DISCARD, letter_id, "", {"reason": reason})
    letter = await read_letter(scope, letter_id)
    if letter.replay_status is not ReplayStatus.DISCARDED:
        raise _settled(letter, Refused.LETTER_NOT_DISCARDED)
    return letter


def _settled(letter: LetterRow, says: Refused) -> AlreadyFinal:
    return AlreadyFinal(
        says(letter=letter.id, status=letter.replay_status),
        extra={"instanceId": str(letter.replayed_as or letter.instance_id), "state": letter.replay_status},
    )


def _not_found(letter_id: int) -> NotFound:
    return NotFound(Refused.NO_LETTER(letter=letter_id), Hint.LISTED_AT(path="/api/v1/dlq"))
