"""The stage that evaluates alert rules and sends alerts.

One node does this, the owner of the first trigger shard. Without rules it sends nothing between two sweeps: it is woken
when a rule changes, and by dead letters, blocked runs, modes and reports if a rule watches them. While ownership moves,
two nodes may do it at once: each alert is added once, one process decides, and each delivery is taken by one process.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

from horai.core.addresses import AddressPolicy
from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.core.wakes import AlertsWake
from horai.db.pool import Plans, Platform
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.features.alerts import delivery_store, engine_store
from horai.features.alerts.delivering import deliver, seal_channels
from horai.features.alerts.evaluation import Evaluator
from horai.features.alerts.notifying import notify
from horai.features.parts import StageParts
from horai.operations.keyring import Keyring, keyring_of

PAUSE = timedelta(seconds=1)
"""The shortest time between two evaluations that wakes ask for."""
SWEEP, SELDOM = timedelta(minutes=10), timedelta(minutes=15)
"""The time until a change is found that no wake announced: with rules, and without."""
KEEP = timedelta(days=30)
FORGET_EVERY = timedelta(hours=6)


class AlertsStage:
    """The stage that evaluates and sends."""

    name = "alerts"
    is_background: Literal[True] = True

    def __init__(
        self, line: StageConnection, lease: Lease, keyring: Keyring, settings: EngineSettings, now: datetime
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._keyring = keyring
        self._settings = settings
        self._policy = AddressPolicy(settings.callback_allow)
        self._evaluator = Evaluator(settings.alerts_every)
        self._is_woken = True
        self._has_plain = True
        """False when no secret of a channel is left that was stored before there was a key."""
        self._ready_at = now
        self._sweep_at = now
        self._decide_at: datetime | None = None
        self._deliver_at: datetime | None = None
        self._forget_at = now + FORGET_EVERY

    def wake(self) -> None:
        """Evaluate soon: a rule or a condition may have changed, or this node may lead."""
        self._is_woken = True
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Evaluate the rules that are due, decide what is sent, and send it. Return the time of the next step."""
        if not leads(self._lease):
            self._is_woken = True
            return now + SELDOM
        if (self._is_woken or now >= self._sweep_at) and now >= self._ready_at:
            await self._reload(await self.line.get(), now)
        due = self._evaluator.next_at
        if due is not None and now >= due and await self._evaluator.evaluate(await self.line.get(), now):
            self._decide_at = now
        if self._decide_at is not None and now >= self._decide_at:
            await self._decide(await self.line.get(), now)
        if self._deliver_at is not None and now >= self._deliver_at:
            await self._deliver(await self.line.get(), now)
        return self._next()

    def _next(self) -> datetime:
        woken = self._ready_at if self._is_woken else self._sweep_at
        known = (woken, self._evaluator.next_at, self._decide_at, self._deliver_at)
        return min(at for at in known if at is not None)

    async def _reload(self, connection: Platform, now: datetime) -> None:
        """Read the rules, which are due now. After a wake, all that is open is due as well."""
        was_woken, self._is_woken = self._is_woken, False
        rules = await engine_store.rules_in_force(connection)
        self._evaluator.take(rules, now)
        if was_woken or not rules:
            self._decide_at = now if rules else None
        self._deliver_at = await delivery_store.next_delivery_at(connection)
        self._sweep_at, self._ready_at = now + (SWEEP if rules else SELDOM), now + PAUSE
        if self._has_plain and rules and self._keyring.is_on:
            self._has_plain = bool(await seal_channels(connection, self._keyring))
        if rules and now >= self._forget_at:
            await engine_store.forget_alerts(connection, KEEP)
            self._forget_at = now + FORGET_EVERY

    async def _decide(self, connection: Platform, now: datetime) -> None:
        made = await notify(connection, self._evaluator.rules, now, self._settings.public_url)
        self._decide_at = made.again_at
        self._evaluator.fires(made.firing, now)
        if made.deliveries:
            self._deliver_at = now

    async def _deliver(self, connection: Platform, now: datetime) -> None:
        """Send one batch. Rules are evaluated between two batches."""
        await deliver(connection, self._keyring, self._policy, self._settings.alerts_retry)
        self._deliver_at = await delivery_store.next_delivery_at(connection)


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may own trigger shards."""
    if Role.scheduler not in parts.roles:
        return []
    keyring = keyring_of(parts.settings).forget_when_erased(parts.wakeups)
    line = parts.line("alerts", timedelta(seconds=2), Plans.CHOSEN)
    stage = AlertsStage(line, parts.lease, keyring, parts.settings, parts.now)
    parts.wakeups.subscribe(AlertsWake, lambda _: stage.wake())
    parts.lease.on_change.append(stage.wake)
    return [stage]
