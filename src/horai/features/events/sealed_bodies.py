"""The bodies of parked messages at rest.

A message that cannot be read may be one for an encrypted job. So a process with an encryption key seals all bodies, and one
without a key parks nothing while the tenant has an encrypted job: the message stays in its source.
"""

import base64
from collections.abc import Sequence
from dataclasses import replace

from horai.core.encryption import EnvelopeBroken, Place, seal
from horai.core.errors import KeyUnavailable
from horai.core.masking import HIDDEN
from horai.core.sealed_values import envelope_in, envelope_text
from horai.db import jobs
from horai.db.pool import TenantRead, TenantWrite
from horai.features.events import store as sources
from horai.features.events.store import BODY_KEPT, Parked, Unreadable
from horai.operations.readable_values import may_read
from horai.operations.scope import Scope

PLACE: Place = ("parked event", "body")


async def park(connection: TenantWrite, scope: Scope, source: str, unreadable: Sequence[Unreadable]) -> None:
    """Park messages. Raises `Conflict` if their bodies have to be sealed and this process has no key."""
    sealed: list[bytes] | None = None
    if scope.keyring.is_on or await jobs.has_encrypted(connection, scope.tenant_id):
        texts = [base64.b64encode(one.body[:BODY_KEPT]).decode() for one in unreadable]
        key = await scope.keyring.sealing_key(connection, scope.tenant_id)
        sealed = [envelope_text(seal(key, PLACE, text)).encode() for text in texts]
    await sources.park_events(connection, scope.tenant_id, source, unreadable, sealed)


async def opened(connection: TenantRead, scope: Scope, parked: Parked) -> Parked:
    """Return a parked message with its body. Raises `KeyUnavailable` or `EnvelopeBroken`."""
    if not parked.is_sealed:
        return parked
    text = await scope.keyring.open(connection, scope.tenant_id, PLACE, envelope_in(parked.body.decode()))
    return replace(parked, body=base64.b64decode(text), is_sealed=False)


async def readable(connection: TenantRead, scope: Scope, parked: Parked) -> Parked:
    """Return a parked message as the caller may see it: `***` instead of a body that is sealed for the caller."""
    if not parked.is_sealed:
        return parked
    if may_read(scope):
        try:
            shown = await opened(connection, scope, parked)
        except (KeyUnavailable, EnvelopeBroken):
            pass
        else:
            scope.disclosure.is_made = True
            return shown
    return replace(parked, body=HIDDEN.encode())
