"""The outcomes of encrypted jobs: results and error texts are sealed before they are stored."""

from collections.abc import Sequence
from dataclasses import replace

import structlog

from horai.core.encryption import EnvelopeBroken
from horai.core.errors import Conflict, KeyUnavailable
from horai.core.fingerprints import fingerprint_of
from horai.core.outcome import DONE, Bury, Complete, Decision, RetryAt
from horai.core.sealed_values import SealedColumn
from horai.core.stored_text import TRUNCATED
from horai.db.pool import AnyWrite
from horai.operations.keyring import Keyring
from horai.operations.sealed_values import SealedJob, seal_texts

log = structlog.get_logger(__name__)

UNSEALED = "The error text was not kept: its encryption key is not available."


async def sealed_decisions(
    connection: AnyWrite, keyring: Keyring, job: SealedJob, job_id: int, decisions: Sequence[Decision]
) -> list[Decision]:
    """Return decisions on instances of one encrypted job as they are stored.

    If the key is not available, the outcomes are stored without results and texts: an outcome cannot wait for a key.
    """
    results = [d.output if isinstance(d, Complete) and d.output != TRUNCATED else None for d in decisions]
    errors = [d.message if isinstance(d, RetryAt | Bury) else None for d in decisions]
    try:
        outputs = await seal_texts(connection, keyring, job, SealedColumn.RESULT, results)
        messages = await seal_texts(connection, keyring, job, SealedColumn.ERROR, errors)
    except (Conflict, KeyUnavailable, EnvelopeBroken):
        log.warning("results and error texts are not kept: their encryption key is not available", job=job.name)
        outputs = [None for _ in decisions]
        messages = [UNSEALED for _ in decisions]
    return [_sealed(job_id, *each) for each in zip(decisions, outputs, messages, strict=True)]


def _sealed(job_id: int, decision: Decision, output: str | None, message: str | None) -> Decision:
    match decision:
        case Complete(given):
            return decision if given == TRUNCATED else DONE if output is None else Complete(output)
        case Bury(code, text):
            print_ = decision.fingerprint or fingerprint_of(job_id, code, text)
            return replace(decision, message=message or "", fingerprint=print_)
        case RetryAt():
            return replace(decision, message=message or "")
        case _:
            return decision
