"""Calls with `unique` or `debounce`: of calls with the same arguments, one instance stands for all within a window.

A row for the job and the digest of the arguments is locked until the transaction ends, and only then the instance that
stands there is looked for. So of two callers, in any two processes, the second finds the instance of the first. A caller
that is killed leaves neither the row nor the instance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from horai.core.call_settings import NO_SETTINGS, CallSettings
from horai.core.call_windows import CallWindow, canonical_arguments
from horai.core.encryption import keyed_digest
from horai.core.put import PutDecision
from horai.core.sealed_values import place_of_call
from horai.db.instances import InsertTarget
from horai.db.pool import TenantWrite
from horai.db.unique_calls import StoredCall, add_calls
from horai.operations.keyring import Keyring
from horai.operations.new_payloads import sealed_payloads
from horai.operations.put import PutResult
from horai.operations.scope import Scope


@dataclass(frozen=True, slots=True)
class WindowedCall:
    """A call with its window. Without a time it is due now, or at the end of the window if it is debounced."""

    at: datetime | None
    payload: str | None
    window: CallWindow
    settings: CallSettings = NO_SETTINGS


async def add_windowed(
    connection: TenantWrite, scope: Scope, place: InsertTarget, calls: Sequence[WindowedCall]
) -> list[PutResult]:
    """Add calls in the caller's transaction. Return the decisions in the order of the calls.

    INSERTED: the instance is new. IGNORED: that of an earlier unique call. UPDATED: that of an earlier debounced call, moved.
    """
    stored = place.parted(await sealed_payloads(connection, scope, place, [call.payload for call in calls]))
    digests = await call_digests(connection, scope.keyring, place, [call.payload for call in calls])
    rows = [
        StoredCall(call.window.kind, call.window.span, call.at, payload, digest)
        for call, payload, digest in zip(calls, stored.texts, digests, strict=True)
    ]
    added = await add_calls(connection, place, rows)
    await stored.index(
        connection, [each.instance_id if each.verdict is PutDecision.INSERTED else None for each in added]
    )
    return [PutResult(each.verdict, each.instance_id, each.woken) for each in added]


async def call_digests(
    connection: TenantWrite, keyring: Keyring, place: InsertTarget, payloads: Sequence[str | None]
) -> list[bytes | None]:
    """Return the digests of arguments of an encrypted job; None where the database computes it.

    Raises `Conflict` or `KeyUnavailable` if this process lacks the key.
    """
    if place.sealed_for is None or all(payload is None for payload in payloads):
        return [None for _ in payloads]
    key = await keyring.lasting_key(connection, place.tenant_id)
    own = place_of_call(place.sealed_for)
    return [None if payload is None else keyed_digest(key, own, canonical_arguments(payload)) for payload in payloads]
