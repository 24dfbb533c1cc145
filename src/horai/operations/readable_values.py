"""Values of encrypted jobs as a caller may see them.

Operators and administrators see them opened. Other roles see `***`. All roles see `***` if the key is missing or was
erased, or if the value was changed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from horai.core.masking import HIDDEN
from horai.core.roles import AccessRole
from horai.core.sealed_values import HIDDEN_JSON, SealedColumn
from horai.core.stored_text import TRUNCATED
from horai.db.instance_queries import InstanceRow, size_of
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead
from horai.operations.scope import AnyScope, Scope
from horai.operations.sealed_values import SealedJob, SealedText, load_keys, opened_or_none

READERS = frozenset({AccessRole.OPERATOR, AccessRole.ADMIN})


def may_read(scope: AnyScope) -> bool:
    """Return whether the caller may see values of encrypted jobs."""
    return scope.actor.role in READERS


class ValueReader:
    """The values of one response. `load` reads the data keys of all of them at once, then `json` and `text` open each."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._may_read = may_read(scope)

    async def load(self, connection: TenantRead, values: Iterable[tuple[str, SealedColumn, str | None]]) -> None:
        """Read the data keys of stored values, each given with its job and column."""
        if self._may_read:
            stored = [self._sealed(job, column, text) for job, column, text in values if text is not None]
            await load_keys(connection, self._scope.keyring, stored)

    def json(self, job: str, column: SealedColumn, stored: str | None) -> str | None:
        """Return the JSON text of a value, that of `***` if the caller may not see it."""
        return None if stored is None else self._opened(job, column, stored, HIDDEN_JSON)

    def text(self, job: str, column: SealedColumn, stored: str | None) -> str | None:
        """Return a text, or `***`."""
        return None if stored is None else self._opened(job, column, stored, HIDDEN)

    def _opened(self, job: str, column: SealedColumn, stored: str, hidden: str) -> str:
        opened = opened_or_none(self._scope.keyring, self._sealed(job, column, stored)) if self._may_read else None
        if opened is None:
            return hidden
        self._scope.disclosure.is_made = True
        return opened

    def _sealed(self, job: str, column: SealedColumn, text: str) -> SealedText:
        return SealedText(SealedJob(self._scope.tenant_id, job), column, text)


async def readable_instances(
    connection: TenantRead, scope: Scope, rows: Sequence[InstanceRow]
) -> Sequence[InstanceRow]:
    """Return instances as the caller may see them."""
    sealed = [row for row in rows if row.is_encrypted]
    if not sealed:
        return rows
    reader = ValueReader(scope)
    await reader.load(
        connection,
        (
            (row.job, column, text)
            for row in sealed
            for column, text in (
                (SealedColumn.PAYLOAD, row.payload),
                (SealedColumn.RESULT, row.kept_result),
                (SealedColumn.ERROR, row.error_msg),
            )
        ),
    )
    return [_readable(reader, row) if row.is_encrypted else row for row in rows]


def _readable(reader: ValueReader, row: InstanceRow) -> InstanceRow:
    payload = reader.json(row.job, SealedColumn.PAYLOAD, row.payload)
    return replace(
        row,
        payload=payload,
        payload_size=row.payload_size if payload in {None, HIDDEN_JSON} else size_of(payload),
        result=row.result if row.result == TRUNCATED else reader.json(row.job, SealedColumn.RESULT, row.result),
        error_msg=reader.text(row.job, SealedColumn.ERROR, row.error_msg),
    )


async def readable_instance(connection: TenantRead, scope: Scope, row: InstanceRow) -> InstanceRow:
    """Return one instance as the caller may see it."""
    return (await readable_instances(connection, scope, [row]))[0] if row.is_encrypted else row


async def readable_jobs(connection: TenantRead, scope: Scope, rows: Sequence[JobRow]) -> Sequence[JobRow]:
    """Return jobs as the caller may see them."""
    sealed = [row for row in rows if row.is_encrypted and row.payload is not None]
    if not sealed:
        return rows
    reader = ValueReader(scope)
    await reader.load(connection, ((row.name, SealedColumn.PAYLOAD, row.payload) for row in sealed))
    return [_readable_job(reader, row) if row.is_encrypted else row for row in rows]


def _readable_job(reader: ValueReader, row: JobRow) -> JobRow:
    payload = reader.json(row.name, SealedColumn.PAYLOAD, row.payload)
    size = row.payload_size if payload in {None, HIDDEN_JSON} else size_of(payload)
    return replace(row, payload=payload, payload_size=size)


async def readable_job(connection: TenantRead, scope: Scope, row: JobRow) -> JobRow:
    """Return one job as the caller may see it."""
    return (await readable_jobs(connection, scope, [row]))[0]
