"""The import of dead letters from another cluster."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from horai.core.audit import AuditVerb
from horai.db import dead_letters, jobs
from horai.db.dead_letters import ImportedLetter
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead
from horai.features.dead_letters.wire import LetterIn
from horai.operations import audit
from horai.operations.scope import Scope

Reason = Literal["NO_JOB", "ENCRYPTED_JOB"]


@dataclass(frozen=True, slots=True)
class LeftOutLetter:
    """A letter that cannot be imported, and why."""

    origin: str
    reason: Reason


@dataclass(slots=True)
class ImportSummary:
    """The result of an import. `known` letters were imported before."""

    imported: int = 0
    known: int = 0
    skipped: list[LeftOutLetter] = field(default_factory=list[LeftOutLetter])


async def import_letters(scope: Scope, given: Sequence[tuple[LetterIn, str | None]], *, dry_run: bool) -> ImportSummary:
    """Import letters, each with the JSON text of its payload, in one transaction. A dry run only counts.

    A repeat of the same request imports nothing more. The jobs must exist: letters of other jobs are left out, and
    those of encrypted jobs, whose values only their own cluster can read.
    """
    told = ImportSummary()
    async with scope.read() as connection:
        found = await _jobs(connection, scope, {letter.job for letter, _ in given})
    letters = [_letter(found[one.job], one, payload) for one, payload in given if _is_taken(told, found, one)]
    if dry_run:
        async with scope.read() as connection:
            origins = [letter.origin for letter in letters]
            told.known = len(await dead_letters.known_origins(connection, scope.tenant_id, origins))
        told.imported = len(letters) - told.known
        return told
    async with scope.write() as connection:
        told.imported = await dead_letters.import_letters(connection, scope.tenant_id, letters)
        if told.imported:
            counts = {"letters": told.imported}
            await audit.record_write(connection, scope, AuditVerb.DEAD_LETTERS_IMPORT, "", "", counts=counts)
    told.known = len(letters) - told.imported
    return told


async def _jobs(connection: TenantRead, scope: Scope, names: set[str]) -> dict[str, JobRow]:
    """Return the jobs of these names that exist. A name of digits alone would be read as an id, and no job has one."""
    found = dict[str, JobRow]()
    for name in sorted(names):
        job = None if "\x00" in name or name.isdigit() else await jobs.find_job(connection, scope.tenant_id, name)
        if job is not None:
            found[name] = job
    return found


def _is_taken(told: ImportSummary, found: Mapping[str, JobRow], letter: LetterIn) -> bool:
    reason: Reason | None = None
    if letter.job not in found:
        reason = "NO_JOB"
    elif found[letter.job].is_encrypted:
        reason = "ENCRYPTED_JOB"
    if reason is not None:
        told.skipped.append(LeftOutLetter(letter.origin, reason))
    return reason is None


def _letter(job: JobRow, letter: LetterIn, payload: str | None) -> ImportedLetter:
    return ImportedLetter(
        letter.origin,
        job.id,
        letter.key,
        letter.fire_time,
        letter.execute_time or letter.fire_time,
        letter.died_at,
        letter.version,
        letter.fence,
        payload,
        letter.error_code,
        letter.error_msg,
        letter.fingerprint,
        json.dumps(letter.tags, ensure_ascii=False),
    )
