"""The payloads of encrypted jobs, opened between the claim and the call, a batch at a time.

A row of a job that is not encrypted costs nothing here: the batch is looked at only if an encrypted job was read before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from horai.core.encryption import EnvelopeBroken
from horai.core.errors import KeyUnavailable
from horai.core.outcome import FailedRetryable
from horai.core.sealed_values import SealedColumn
from horai.db.claims import ClaimedRow
from horai.db.pool import Platform
from horai.engine.dispatch.job_cache import JobCache
from horai.operations.sealed_values import SealedJob, SealedText, load_keys, open_loaded

log = structlog.get_logger(__name__)

UNREADABLE = FailedRetryable("PAYLOAD_UNREADABLE", "The sealed payload was changed or moved and cannot be opened.")


@dataclass(slots=True)
class OpenedRows:
    """Claimed rows: those that can run, with opened payloads, those whose key is missing, and those that are broken."""

    ready: list[ClaimedRow] = field(default_factory=list[ClaimedRow])
    locked: list[ClaimedRow] = field(default_factory=list[ClaimedRow])
    broken: list[ClaimedRow] = field(default_factory=list[ClaimedRow])


async def open_payloads(connection: Platform, jobs: JobCache, rows: Sequence[ClaimedRow]) -> OpenedRows:
    """Open the payloads of encrypted jobs; data keys that are not in memory are read with one statement."""
    opened = OpenedRows()
    texts = {row.held.id: text for row in rows if (text := _sealed(jobs, row)) is not None}
    await load_keys(connection, jobs.keyring, texts.values())
    for row in rows:
        if (text := texts.get(row.held.id)) is None:
            opened.ready.append(row)
            continue
        try:
            opened.ready.append(row._replace(payload=open_loaded(jobs.keyring, text)))
        except KeyUnavailable:
            opened.locked.append(row)
        except EnvelopeBroken:
            opened.broken.append(row)
    for job_id in {row.held.job_id for row in opened.locked}:
        log.warning("calls wait: the key of their payloads is not available", job=jobs.encrypted[job_id].name)
    return opened


def sealed_payload(job: SealedJob, payload: str) -> SealedText:
    """Return a stored payload of an encrypted job."""
    return SealedText(job, SealedColumn.PAYLOAD, payload)


def _sealed(jobs: JobCache, row: ClaimedRow) -> SealedText | None:
    job = jobs.encrypted.get(row.held.job_id)
    return None if job is None or row.payload is None else sealed_payload(job, row.payload)
