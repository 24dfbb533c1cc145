"""Controls: the limits that the governor puts on dispatch, as every process obeys them.

The governor writes one document; each process reads it with its heartbeat. Work that a control holds stays in its row
and runs later. Jobs of priority `core` are never held; their retries count like all others.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from horai.core.job import Priority
from horai.text import Action, Degraded
from horai.text.phrase import Phrase

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONG_RUN = timedelta(seconds=10)
"""Runs that take longer are long: their retries are deferred while short ones go first."""
LONG_DEFERRAL = timedelta(minutes=10)
"""Time by which the retry of a long run is deferred, once."""
FREQUENT = timedelta(minutes=15)
"""Schedules with at most this time between two slots are thinned; others keep every slot."""


class GovernorMode(StrEnum):
    """A mode of the governor. Several may be in force at once; without any, it is NORMAL."""

    NORMAL = "NORMAL"
    SHED_LOW = "SHED_LOW"
    RETRY_LIMITED = "RETRY_LIMITED"
    RETRY_SHORT_FIRST = "RETRY_SHORT_FIRST"
    CORE_ONLY = "CORE_ONLY"


class LowPriority(StrEnum):
    """The state of low-priority work: it starts as usual, at half of its rate, or not at all."""

    OPEN = "OPEN"
    HALVED = "HALVED"
    PAUSED = "PAUSED"


@dataclass(frozen=True, slots=True)
class FigureLimits:
    """The thresholds of the governor, in the units of health."""

    delay_p95_ms: float = 2_000
    success_rate: float = 0.995
    retry_backlog: int = 200_000
    dead_letters: int = 1_000


@dataclass(frozen=True, slots=True)
class Controls:
    """The limits in force. The defaults limit nothing."""

    low: LowPriority = LowPriority.OPEN
    low_rate: float | None = None
    """Low-priority starts per second of all processes together; None without a limit."""
    thins_low: bool = False
    """Frequent low-priority schedules fire half as often. A freeze by hand holds their slots and leaves none out."""
    is_core_only: bool = False
    retry_rate: float | None = None
    """Retries per second of all processes together; None without a limit."""
    is_short_first: bool = False
    """Retries of long runs are deferred by `LONG_DEFERRAL`."""
    is_backfill_closed: bool = False
    """New backfills are refused."""
    frozen_tenants: frozenset[int] = frozenset()
    """Tenants whose operators hold their low-priority work."""
    needs_scale: bool = False
    """More dispatchers are requested."""
    is_paused: bool = False
    """The platform holds all dispatch. The rows of the queues say so as well, which is what claims obey."""
    modes: tuple[GovernorMode, ...] = ()
    """The modes in force, for people."""
    thresholds: FigureLimits = FigureLimits()
    """The thresholds behind the modes, for people."""
    records_events: bool = False
    """Events are recorded in the outbox: there is a sink."""

    def holds(self, priority: Priority, tenant_id: int) -> bool:
        """Return whether instances of this priority and tenant may not start now."""
        if priority is Priority.core:
            return False
        if self.is_core_only:
            return True
        return priority is Priority.low and (self.low is LowPriority.PAUSED or tenant_id in self.frozen_tenants)

    @property
    def limits_retries(self) -> bool:
        """Return whether retries need a decision of their own before they start."""
        return self.retry_rate is not None or self.is_short_first

    def actions(self, tenant_id: int | None = None) -> list[Phrase]:
        """Return what the governor does now, to all tenants or to one of them as well."""
        told: list[Phrase] = [Action.PAUSE_DISPATCH()] if self.is_paused else []
        if self.is_core_only:
            told.append(Action.CORE_JOBS_ONLY())
        if self.low is LowPriority.PAUSED:
            told.append(Action.PAUSE_LOW_PRIORITY())
        elif self.low is LowPriority.HALVED and self.low_rate is not None:
            told.append(Action.HALVE_LOW_PRIORITY(rate=f"{self.low_rate:g}"))
        elif tenant_id in self.frozen_tenants:
            told.append(Action.FREEZE_LOW_PRIORITY())
        if self.thins_low:
            told.append(Action.THIN_LOW_PRIORITY())
        if self.needs_scale:
            told.append(Action.REQUEST_SCALE())
        if self.retry_rate is not None:
            told.append(Action.LIMIT_RETRIES(rate=f"{self.retry_rate:g}"))
        if self.is_backfill_closed:
            told.append(Action.CLOSE_BACKFILL())
        if self.is_short_first:
            told.append(Action.SHORT_RETRIES_FIRST())
        return told

    def reasons(self) -> list[Phrase]:
        """Return why the scheduler is degraded: the modes in force, and a pause of all dispatch."""
        told = [Degraded.MODE(mode=mode.value) for mode in self.modes if mode is not GovernorMode.NORMAL]
        return [*([Degraded.DISPATCH_PAUSED()] if self.is_paused else []), *told]

    def document(self) -> dict[str, Any]:
        """Return the controls of the platform as they are stored. The frozen tenants are stored elsewhere."""
        return {
            "low": self.low.value,
            "lowRate": self.low_rate,
            "thinLow": self.thins_low,
            "coreOnly": self.is_core_only,
            "retryRate": self.retry_rate,
            "shortFirst": self.is_short_first,
            "backfillClosed": self.is_backfill_closed,
            "scale": self.needs_scale,
            "paused": self.is_paused,
            "modes": [*self.modes],
            "thresholds": asdict(self.thresholds),
        }


_LIMITS = frozenset(field.name for field in fields(FigureLimits))


def controls_from(text: str | None) -> Controls:
    """Decode the controls. Missing fields limit nothing, and unknown ones are ignored: a newer node may have written them."""
    told: dict[str, Any] = json.loads(text or "{}")
    limits: dict[str, Any] = told.get("thresholds") or {}
    low = told.get("low", LowPriority.OPEN)
    return Controls(
        low=LowPriority(low) if low in LowPriority.__members__ else LowPriority.PAUSED,
        low_rate=told.get("lowRate"),
        thins_low=bool(told.get("thinLow")),
        is_core_only=bool(told.get("coreOnly")),
        retry_rate=told.get("retryRate"),
        is_short_first=bool(told.get("shortFirst")),
        is_backfill_closed=bool(told.get("backfillClosed")),
        frozen_tenants=frozenset(told.get("frozenTenants") or ()),
        needs_scale=bool(told.get("scale")),
        is_paused=bool(told.get("paused")),
        modes=tuple(GovernorMode(name) for name in told.get("modes", ()) if name in GovernorMode.__members__),
        thresholds=FigureLimits(**{name: limits[name] for name in _LIMITS & limits.keys()}),
        records_events=bool(told.get("recordsEvents")),
    )


def is_left_out(slot: datetime, following: datetime | None) -> bool:
    """Return whether a thinned schedule leaves this slot out: every second one, if it fires at least every `FREQUENT`."""
    if following is None or following - slot > FREQUENT:
        return False
    return bool((slot - _EPOCH) // (following - slot) % 2)


class ControlBoard:
    """The controls in force as this process knows them, and the listeners for their changes."""

    def __init__(self) -> None:
        self.current = Controls()
        self.on_change: list[Callable[[], None]] = []

    def apply(self, controls: Controls) -> None:
        """Put the controls in force. Call this in the event loop of the engine."""
        if controls != self.current:
            self.current = controls
            for listener in self.on_change:
                listener()
