"""Send deliveries that are due. A delivery is taken before it is sent and settled after: at least once, never lost."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from horai.core.addresses import AddressPolicy, TenantReach
from horai.core.encryption import EnvelopeBroken
from horai.core.errors import KeyUnavailable
from horai.db import nodes, signing_secrets
from horai.db.pool import Platform
from horai.engine.executors.dial import CallbackSessions
from horai.features.alerts import delivery_store, engine_store
from horai.features.alerts.channels import MASKED, PLAIN, ChannelWish, opened_config, place_of, stored_config
from horai.features.alerts.delivery_store import TakenDelivery
from horai.features.alerts.encoders import Sending
from horai.features.alerts.senders import ChannelSender, SendResult
from horai.operations.keyring import Keyring
from horai.operations.signing_secrets import secrets_in_force

log = structlog.get_logger(__name__)

AT_ONCE = 32
GIVE_UP_AFTER = timedelta(hours=24)
PLATFORM = "platform"


@dataclass(frozen=True, slots=True)
class _Ready:
    """A delivery with all that its message needs, or the reason why it cannot be sent now."""

    taken: TakenDelivery
    sending: Sending | None
    reach: TenantReach
    fault: str | None = None
    is_hopeless: bool = False


async def deliver(connection: Platform, keyring: Keyring, policy: AddressPolicy, pause: timedelta) -> int:
    """Send a batch of deliveries that are due, all at once; return how many there were."""
    taken = await delivery_store.take_deliveries(connection, AT_ONCE, pause)
    if not taken:
        return 0
    ready = [await _prepared(connection, keyring, each) for each in taken]
    sessions = CallbackSessions(policy)
    tasks = {asyncio.create_task(_send(sessions, each)): each for each in ready}
    try:
        for done in asyncio.as_completed(tasks):
            each, result = await done
            await _settle(connection, each, result)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await sessions.close()
    return len(taken)


async def seal_channels(connection: Platform, keyring: Keyring) -> int:
    """Seal the secrets of channels that were stored before there was an encryption key; return their number."""
    found = await engine_store.plain_channels(connection, AT_ONCE)
    for channel in found:
        async with connection.transaction():
            hidden = channel.config[PLAIN]
            shown = {name: value for name, value in channel.config.items() if name not in {PLAIN, MASKED}}
            wish = ChannelWish(channel.kind, channel.language, shown, hidden)
            place = place_of(channel.tenant_id, channel.name, shown)
            config = await stored_config(connection, keyring, channel.tenant_id, place, wish)
            await engine_store.store_sealed_channel(connection, channel, config)
    return len(found)


async def _prepared(connection: Platform, keyring: Keyring, taken: TakenDelivery) -> _Ready:
    """Open the secrets of a delivery's channel."""
    if taken.channel_kind is None or taken.language is None:
        return _Ready(taken, None, TenantReach(), "the channel was deleted", is_hopeless=True)
    reach = await signing_secrets.reach_of(connection, taken.tenant_id)
    try:
        config = await opened_config(connection, keyring, taken.tenant_id, taken.channel, taken.config)
    except (KeyUnavailable, EnvelopeBroken) as error:
        return _Ready(taken, None, reach, f"the secrets of the channel cannot be opened ({error.code})")
    secrets = list[str]()
    if taken.channel_kind == "webhook" and "secret" not in config:
        secrets = await secrets_in_force(connection, keyring, taken.tenant_id)
        if not secrets:
            return _Ready(taken, None, reach, "the tenant has no signing secret that can be opened")
    now = await nodes.database_time(connection)
    return _Ready(taken, Sending(f"alert_{taken.id}", taken.message, taken.language, config, secrets, now), reach)


async def _send(sessions: CallbackSessions, ready: _Ready) -> tuple[_Ready, SendResult]:
    taken = ready.taken
    if ready.sending is None or taken.channel_kind is None:
        return ready, SendResult(ready.fault or "the message could not be made")
    sender = ChannelSender(sessions, ready.reach, taken.tenant or PLATFORM)
    return ready, await sender.send(taken.channel_kind, ready.sending)


async def _settle(connection: Platform, ready: _Ready, result: SendResult) -> None:
    taken = ready.taken
    status = await delivery_store.settle_delivery(
        connection, taken, result, GIVE_UP_AFTER, is_hopeless=ready.is_hopeless
    )
    facts = {"delivery": taken.id, "channel": taken.channel, "tenant": taken.tenant, "error": result.error}
    if status == "FAILED":
        log.error("an alert was given up", **facts)
    elif status == "PENDING" and taken.attempt == 1:
        log.warning("an alert was not delivered and is retried", **facts)
