"""The rules of the governor: when each mode begins and ends, and which limits follow from the modes in force.

Each rule compares one figure of all processes with its threshold:

| rule | figure | breached | level 1 | level 2 |
|---|---|---|---|---|
| SHED_LOW | delay of starts, p95 of the last minute | above 2 s | at once: low priority at half of its rate | after 5 minutes: low priority paused, more dispatchers requested |
| RETRY_LIMITED | success rate of 10 minutes | below 99.5 % | at once: retries at half of their rate, no new backfills | |
| RETRY_SHORT_FIRST | instances that wait for a retry | above 200,000 | at once: retries of long runs wait | |
| CORE_ONLY | dead letters of the last minute | above 1,000 | at once: only core jobs start | |

A level ends when the figure has been clear, well inside the threshold, for five minutes without a break; the next lower
level then lasts at least as long. A figure between clear and breached changes nothing, so noise at the threshold does
not make a mode flap. Too few samples are no breach.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from horai.core.controls import Controls, FigureLimits, GovernorMode, LowPriority
from horai.core.health import Reading, quantile_of

RULES = (GovernorMode.SHED_LOW, GovernorMode.RETRY_LIMITED, GovernorMode.RETRY_SHORT_FIRST, GovernorMode.CORE_ONLY)
TOP_LEVEL: Mapping[GovernorMode, int] = {mode: 2 if mode is GovernorMode.SHED_LOW else 1 for mode in RULES}
LEAST_RATE = 0.1
"""The lowest rate of a limit, in starts per second: held work always goes on."""
HALF = 0.5
RETRY_SHARE = 0.2
"""The retry budget: retries as a share of first tries."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The settings of the rules."""

    delay_p95: timedelta = timedelta(seconds=2)
    """Delay of starts above which low priority is shed."""
    delay_for: timedelta = timedelta(minutes=5)
    """Time for which the delay is above the threshold until low priority is paused."""
    success_rate: float = 0.995
    """Share of successful attempts below which retries are limited."""
    retry_backlog: int = 200_000
    """Instances that wait for a retry above which short ones go first."""
    dead_letters: int = 1_000
    """Dead letters of a minute above which only core jobs start."""
    clear_for: timedelta = timedelta(minutes=5)
    """Time for which a figure is clear until a level ends."""
    least_starts: int = 20
    """Starts of the last minute below which the delay says nothing."""
    least_outcomes: int = 100
    """Outcomes of 10 minutes below which the success rate says nothing."""
    is_dry_run: bool = False
    """True if the rules only report what they would do."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of all processes at one moment. Rates are per second."""

    delay_p95: float = 0.0
    """In seconds."""
    starts: int = 0
    oldest_wait: float = 0.0
    success_rate: float = 1.0
    outcomes: int = 0
    retry_backlog: int = 0
    dead_letters: int = 0
    low_rate: float = 0.0
    retry_rate: float = 0.0
    first_rate: float = 0.0


def figures_of(reading: Reading) -> Figures:
    """Return the figures that the rules compare, of the merged readings of all processes."""
    return Figures(
        delay_p95=quantile_of(reading.recent_delays, 0.95),
        starts=sum(count for _, count in reading.recent_delays),
        oldest_wait=reading.oldest_wait,
        success_rate=reading.success_rate(),
        outcomes=reading.failed + reading.succeeded,
        retry_backlog=reading.retry_backlog,
        dead_letters=reading.dead_last_minute,
        low_rate=reading.low_rate,
        retry_rate=reading.retry_rate,
        first_rate=reading.first_rate,
    )


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a mode began: the code of a sentence, the value of its figure, and the threshold."""

    code: str
    value: float
    limit: float


@dataclass(frozen=True, slots=True)
class Check:
    """The comparison of one figure with its threshold. A figure may be neither breached nor clear."""

    cause: Cause
    is_breached: bool
    is_clear: bool


CLEAR_DELAY, CLEAR_FAILURES, CLEAR_COUNT = 0.8, 0.5, 0.8
"""The share of each threshold below which a figure is clear; for the success rate, of the failures that it allows."""


def check(mode: GovernorMode, figures: Figures, thresholds: Thresholds) -> Check:
    """Compare the figure of a rule with its threshold."""
    match mode:
        case GovernorMode.SHED_LOW:
            return _check_delay(figures, thresholds)
        case GovernorMode.RETRY_LIMITED:
            limit, rate = thresholds.success_rate, figures.success_rate
            is_known = figures.outcomes >= thresholds.least_outcomes
            cause = Cause("SUCCESS_LOW", round(rate * 100, 3), round(limit * 100, 3))
            is_clear = not is_known or 1 - rate <= (1 - limit) * CLEAR_FAILURES
            return Check(cause, is_known and rate < limit, is_clear)
        case GovernorMode.RETRY_SHORT_FIRST:
            return _check_count("BACKLOG_HIGH", figures.retry_backlog, thresholds.retry_backlog)
        case GovernorMode.CORE_ONLY:
            return _check_count("LETTERS_FAST", figures.dead_letters, thresholds.dead_letters)
        case GovernorMode.NORMAL:
            raise ValueError(mode)


def _check_delay(figures: Figures, thresholds: Thresholds) -> Check:
    """Compare the delay of starts, or the oldest wait if too few instances start to tell."""
    limit = thresholds.delay_p95.total_seconds()
    code, value = "DELAY_HIGH", figures.delay_p95
    if figures.starts < thresholds.least_starts:
        code, value = "STALLED", figures.oldest_wait
    cause = Cause(code, round(value * 1000), round(limit * 1000))
    return Check(cause, value > limit, value <= limit * CLEAR_DELAY)


def _check_count(code: str, value: int, limit: int) -> Check:
    return Check(Cause(code, value, limit), value > limit, value <= limit * CLEAR_COUNT)


@dataclass(frozen=True, slots=True)
class Track:
    """The state of one rule: its level (0: not active), since when, and the last cause."""

    level: int = 0
    since: datetime | None = None
    cause: Cause | None = None
    breached_since: datetime | None = None
    clear_since: datetime | None = None


def step_track(track: Track, found: Check, now: datetime, waits: tuple[timedelta, ...], clear_for: timedelta) -> Track:
    """Return the track after one comparison. `waits`: how long the breach lasts until each level, from level 1 on."""
    if found.is_breached:
        since = track.breached_since or now
        reached = sum(now - since >= wait for wait in waits)
        level = max(track.level, reached)
        begun = now if level != track.level else track.since
        return Track(level, begun, found.cause, since)
    if not found.is_clear:
        return replace(track, breached_since=None, clear_since=None)
    if not track.level:
        return Track()
    clear_since = track.clear_since or now
    if now - clear_since < clear_for:
        return replace(track, breached_since=None, clear_since=clear_since)
    if track.level == 1:
        return Track()
    return Track(track.level - 1, now, track.cause, None, now)


@dataclass(frozen=True, slots=True)
class Override:
    """A mode that an operator forces on or off until `expires_at`."""

    is_on: bool
    actor: str
    at: datetime
    expires_at: datetime | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class PlatformHold:
    """A hold of the platform on all tenants, by hand."""

    actor: str
    at: datetime
    expires_at: datetime | None = None
    note: str | None = None


LOW_PRIORITY, BACKFILL = "low-priority", "backfill"
FREEZES = (LOW_PRIORITY, BACKFILL)
"""The kinds of work that an operator may freeze."""


@dataclass(frozen=True, slots=True)
class GovernorState:
    """The state of all rules, with overrides and holds. `low_rate` and `retry_rate` are the limits in force."""

    tracks: Mapping[GovernorMode, Track] = field(default_factory=dict[GovernorMode, Track])
    overrides: Mapping[GovernorMode, Override] = field(default_factory=dict[GovernorMode, Override])
    freezes: Mapping[str, PlatformHold] = field(default_factory=dict[str, PlatformHold])
    pause: PlatformHold | None = None
    low_rate: float | None = None
    retry_rate: float | None = None

    def track(self, mode: GovernorMode) -> Track:
        """Return the track of a rule."""
        return self.tracks.get(mode, Track())

    def level_in_force(self, mode: GovernorMode, *, is_dry_run: bool) -> int:
        """Return the level of a mode that is obeyed: that of its override, or that of its rule except in a dry run."""
        if (override := self.overrides.get(mode)) is not None:
            return TOP_LEVEL[mode] if override.is_on else 0
        return 0 if is_dry_run else self.track(mode).level

    def next_expiry(self) -> datetime | None:
        """Return when the first override or hold expires."""
        held = [*self.overrides.values(), *self.freezes.values(), *([self.pause] if self.pause else [])]
        return min((each.expires_at for each in held if each.expires_at is not None), default=None)


def evaluate(state: GovernorState, figures: Figures, thresholds: Thresholds, now: datetime) -> GovernorState:
    """Return the state after one evaluation: expired overrides and holds are gone, and every rule has compared its figure."""
    tracks: dict[GovernorMode, Track] = {}
    for mode in RULES:
        waits = (timedelta(0), thresholds.delay_for) if mode is GovernorMode.SHED_LOW else (timedelta(0),)
        found = check(mode, figures, thresholds)
        tracks[mode] = step_track(state.track(mode), found, now, waits, thresholds.clear_for)
    kept = replace(
        state,
        tracks=tracks,
        overrides={mode: each for mode, each in state.overrides.items() if _lasts(each, now)},
        freezes={kind: each for kind, each in state.freezes.items() if _lasts(each, now)},
        pause=state.pause if state.pause is not None and _lasts(state.pause, now) else None,
    )
    return with_rates(kept, figures, thresholds)


def _lasts(held: Override | PlatformHold, now: datetime) -> bool:
    return held.expires_at is None or held.expires_at > now


def with_rates(state: GovernorState, figures: Figures, thresholds: Thresholds) -> GovernorState:
    """Return the state with the rates of the modes in force. A rate is set when its mode begins, and stays until it ends."""
    is_dry_run = thresholds.is_dry_run
    low_rate = retry_rate = None
    if state.level_in_force(GovernorMode.SHED_LOW, is_dry_run=is_dry_run):
        low_rate = state.low_rate or _rate(figures.low_rate * HALF)
    if state.level_in_force(GovernorMode.RETRY_LIMITED, is_dry_run=is_dry_run):
        retry_rate = state.retry_rate or _rate(min(figures.retry_rate * HALF, figures.first_rate * RETRY_SHARE))
    return replace(state, low_rate=low_rate, retry_rate=retry_rate)


def _rate(per_second: float) -> float:
    return round(max(per_second, LEAST_RATE), 3)


def controls_of(state: GovernorState, thresholds: Thresholds) -> Controls:
    """Return the limits that follow from the modes and holds in force."""
    is_dry_run = thresholds.is_dry_run
    shed = state.level_in_force(GovernorMode.SHED_LOW, is_dry_run=is_dry_run)
    is_frozen = LOW_PRIORITY in state.freezes
    is_limited = bool(state.level_in_force(GovernorMode.RETRY_LIMITED, is_dry_run=is_dry_run))
    halved = LowPriority.HALVED if shed else LowPriority.OPEN
    return Controls(
        low=LowPriority.PAUSED if is_frozen or shed == TOP_LEVEL[GovernorMode.SHED_LOW] else halved,
        low_rate=state.low_rate if shed else None,
        thins_low=bool(shed),
        is_core_only=bool(state.level_in_force(GovernorMode.CORE_ONLY, is_dry_run=is_dry_run)),
        retry_rate=state.retry_rate,
        is_short_first=bool(state.level_in_force(GovernorMode.RETRY_SHORT_FIRST, is_dry_run=is_dry_run)),
        is_backfill_closed=is_limited or BACKFILL in state.freezes,
        needs_scale=shed == TOP_LEVEL[GovernorMode.SHED_LOW],
        is_paused=state.pause is not None,
        modes=tuple(modes_in_force(state, thresholds)),
        thresholds=FigureLimits(
            thresholds.delay_p95 / timedelta(milliseconds=1),
            thresholds.success_rate,
            thresholds.retry_backlog,
            thresholds.dead_letters,
        ),
    )


def modes_in_force(state: GovernorState, thresholds: Thresholds) -> list[GovernorMode]:
    """Return the modes that are obeyed; NORMAL without any."""
    active = [mode for mode in RULES if state.level_in_force(mode, is_dry_run=thresholds.is_dry_run)]
    return active or [GovernorMode.NORMAL]


@dataclass(frozen=True, slots=True)
class ModeChange:
    """A change of a mode's level, in force or in a dry run. `level` is 0 when the mode was left."""

    mode: GovernorMode
    level: int
    is_dry_run: bool
    cause: Mapping[str, Any]


def changes_between(before: GovernorState, after: GovernorState, old: Thresholds, new: Thresholds) -> list[ModeChange]:
    """Return the modes whose level differs: as obeyed, and in a dry run also as the rules would have it."""
    changes: list[ModeChange] = []
    for mode in RULES:
        levels = [
            before.level_in_force(mode, is_dry_run=old.is_dry_run),
            after.level_in_force(mode, is_dry_run=new.is_dry_run),
        ]
        if levels[0] != levels[1]:
            changes.append(ModeChange(mode, levels[1], False, _cause_of(before, after, mode)))
        if new.is_dry_run and before.track(mode).level != after.track(mode).level:
            changes.append(ModeChange(mode, after.track(mode).level, True, _cause_of(before, after, mode)))
    return changes


def _cause_of(before: GovernorState, after: GovernorState, mode: GovernorMode) -> dict[str, Any]:
    """Return why the level changed: the operator of an override, or the figure of the rule."""
    override = after.overrides.get(mode) or before.overrides.get(mode)
    if override is not None:
        return {"code": "BY_HAND", "actor": override.actor, "note": override.note}
    cause = after.track(mode).cause or before.track(mode).cause
    return {} if cause is None else {"code": cause.code, "value": cause.value, "limit": cause.limit}
