"""The test call of a channel: a real message, sent by the process that serves the request, with its real result."""

import asyncio
from datetime import datetime

from horai.api.context import Context
from horai.core.audit import AuditVerb
from horai.core.callbacks import rfc3339
from horai.core.encryption import EnvelopeBroken
from horai.core.errors import KeyUnavailable
from horai.db import nodes, signing_secrets
from horai.db.pool import AnyWrite, acquire
from horai.engine.executors.dial import CallbackSessions
from horai.features.alerts import store
from horai.features.alerts.channels import opened_config
from horai.features.alerts.encoders import Sending, message_of
from horai.features.alerts.scope import PLATFORM, owner_of
from horai.features.alerts.senders import ChannelSender, SendResult
from horai.features.alerts.service import record, require_channel
from horai.features.alerts.store import ChannelRow, DeliveryRow
from horai.operations.scope import AnyScope
from horai.operations.signing_secrets import secrets_in_force

SIGN_OF_LIFE = 0.3
"""Seconds between two statements of a transaction that waits for the answer of the channel."""


async def call_channel(context: Context, scope: AnyScope, name: str) -> DeliveryRow:
    """Send a test message once and add it to the delivery log. Raise `NotFound` if there is no such channel.

    The row of the log is written after the call, in the transaction of the request: a repeat with the same
    Idempotency-Key sends nothing.
    """
    owner = owner_of(scope)
    async with scope.write() as connection:
        channel = await require_channel(connection, owner, name)
        now = await nodes.database_time(connection)
        message = _message(owner, scope.tenant, now)
        sending = asyncio.create_task(_sent(context, owner, scope.tenant, channel, message, now))
        result = await _awaited(connection, sending)
        status = "DELIVERED" if result.is_delivered else "FAILED"
        outcome = (status, result.http_status, result.error)
        row = await store.insert_test_delivery(connection, owner, channel, message, outcome, now)
        after = {"status": row.status, "error": row.error}
        await record(connection, scope, AuditVerb.ALERT_CHANNEL_TEST, name, None, after)
    return row


async def _awaited(connection: AnyWrite, sending: "asyncio.Task[SendResult]") -> SendResult:
    """Wait for the result. The server ends a transaction that is silent for too long, so it gets a statement meanwhile."""
    try:
        while not (await asyncio.wait({sending}, timeout=SIGN_OF_LIFE))[0]:
            await nodes.database_time(connection)
        return sending.result()
    finally:
        sending.cancel()


def _message(owner: int, tenant: str, now: datetime) -> dict[str, object]:
    at = rfc3339(now)
    fact: dict[str, object] = {"id": "0", "object": "test", "job": None, "since": at, "resolvedAt": None, "data": {}}
    named = {"name": None, "kind": "TEST"}
    return message_of("TEST", named, None if owner == PLATFORM else tenant, [fact], time=at)


async def _sent(
    context: Context, owner: int, tenant: str, channel: ChannelRow, message: dict[str, object], now: datetime
) -> SendResult:
    async with acquire(context.pool) as connection:
        reach = await signing_secrets.reach_of(connection, owner)
        try:
            config = await opened_config(connection, context.keyring, owner, channel.name, channel.config)
        except (KeyUnavailable, EnvelopeBroken) as error:
            return SendResult(f"the secrets of the channel cannot be opened ({error.code})")
        secrets = [] if owner == PLATFORM else await secrets_in_force(connection, context.keyring, owner)
    if channel.kind == "webhook" and "secret" not in config and not secrets:
        return SendResult("the tenant has no signing secret that can be opened")
    sending = Sending(f"test_{int(now.timestamp() * 1000)}", message, channel.language, config, secrets, now)
    sessions = CallbackSessions(context.callbacks)
    try:
        return await ChannelSender(sessions, reach, tenant).send(channel.kind, sending)
    finally:
        await sessions.close()
