"""The rules of the governor, on a virtual clock."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from horai.core.controls import Controls, GovernorMode, LowPriority
from horai.core.health import EngineHealth, Reading, StartClass, merged
from horai.core.job import Priority
from horai.features.governor.rules import (
    RULES,
    Figures,
    GovernorState,
    Override,
    PlatformHold,
    Thresholds,
    changes_between,
    controls_of,
    evaluate,
    figures_of,
    modes_in_force,
)

START = datetime(2026, 11, 17, 9, tzinfo=UTC)
EVERY = timedelta(seconds=10)
RULE = Thresholds()
CALM = Figures(delay_p95=0.01, starts=1000, outcomes=1000, low_rate=8.0, retry_rate=6.0, first_rate=100.0)
BREACHES = {
    GovernorMode.SHED_LOW: replace(CALM, delay_p95=2.1),
    GovernorMode.RETRY_LIMITED: replace(CALM, success_rate=0.994),
    GovernorMode.RETRY_SHORT_FIRST: replace(CALM, retry_backlog=200_001),
    GovernorMode.CORE_ONLY: replace(CALM, dead_letters=1_001),
}
JUST_WITHIN = {
    GovernorMode.SHED_LOW: replace(CALM, delay_p95=2.0),
    GovernorMode.RETRY_LIMITED: replace(CALM, success_rate=0.995),
    GovernorMode.RETRY_SHORT_FIRST: replace(CALM, retry_backlog=200_000),
    GovernorMode.CORE_ONLY: replace(CALM, dead_letters=1_000),
}


class Clock:
    """The governor, evaluated every ten seconds of virtual time."""

    def __init__(self, thresholds: Thresholds = RULE) -> None:
        self.now, self.state, self.thresholds = START, GovernorState(), thresholds

    def run(self, figures: Figures, duration: timedelta = EVERY) -> GovernorState:
        for _ in range(duration // EVERY):
            self.now += EVERY
            self.state = evaluate(self.state, figures, self.thresholds, self.now)
        return self.state

    @property
    def controls(self) -> Controls:
        return controls_of(self.state, self.thresholds)

    @property
    def modes(self) -> list[GovernorMode]:
        return modes_in_force(self.state, self.thresholds)


@pytest.mark.parametrize("mode", RULES)
def test_a_breach_begins_its_mode_and_no_other_at_the_first_evaluation(mode: GovernorMode) -> None:
    clock = Clock()
    clock.run(JUST_WITHIN[mode], timedelta(hours=1))
    assert clock.modes == [GovernorMode.NORMAL]
    clock.run(BREACHES[mode])
    assert clock.modes == [mode]
    assert clock.state.track(mode).since == clock.now


def test_C29_low_priority_is_halved_at_once_and_paused_with_a_scale_request_after_five_minutes() -> None:
    clock = Clock()
    clock.run(BREACHES[GovernorMode.SHED_LOW])
    assert (clock.controls.low, clock.controls.low_rate) == (LowPriority.HALVED, 4.0)
    assert not clock.controls.needs_scale
    clock.run(BREACHES[GovernorMode.SHED_LOW], timedelta(minutes=4, seconds=50))
    assert clock.controls.low is LowPriority.HALVED
    clock.run(BREACHES[GovernorMode.SHED_LOW])
    assert clock.controls.low is LowPriority.PAUSED
    assert clock.controls.needs_scale
    assert clock.controls.holds(Priority.low, 1)
    assert not clock.controls.holds(Priority.normal, 1)


def test_an_interruption_of_the_breach_starts_its_five_minutes_again() -> None:
    clock = Clock()
    clock.run(BREACHES[GovernorMode.SHED_LOW], timedelta(minutes=4))
    clock.run(JUST_WITHIN[GovernorMode.SHED_LOW])
    clock.run(BREACHES[GovernorMode.SHED_LOW], timedelta(minutes=4))
    assert clock.controls.low is LowPriority.HALVED


def test_low_priority_goes_from_paused_to_halved_to_open_with_five_clear_minutes_each() -> None:
    clock = Clock()
    clock.run(BREACHES[GovernorMode.SHED_LOW], timedelta(minutes=6))
    clock.run(CALM, timedelta(minutes=5))
    assert clock.controls.low is LowPriority.PAUSED
    clock.run(CALM)
    assert (clock.controls.low, clock.controls.low_rate) == (LowPriority.HALVED, 4.0)
    clock.run(CALM, timedelta(minutes=4, seconds=50))
    assert clock.controls.low is LowPriority.HALVED
    clock.run(CALM)
    assert clock.controls == Controls(modes=(GovernorMode.NORMAL,))


def test_C30_retries_are_halved_and_backfills_refused_below_the_success_rate() -> None:
    clock = Clock()
    clock.run(BREACHES[GovernorMode.RETRY_LIMITED])
    assert (clock.controls.retry_rate, clock.controls.is_backfill_closed) == (3.0, True)


def test_the_retry_rate_is_the_retry_budget_if_that_is_lower_and_never_zero() -> None:
    clock = Clock()
    clock.run(replace(BREACHES[GovernorMode.RETRY_LIMITED], retry_rate=400.0))
    assert clock.controls.retry_rate == 20.0
    clock = Clock()
    clock.run(replace(BREACHES[GovernorMode.RETRY_LIMITED], retry_rate=0.0))
    assert clock.controls.retry_rate == 0.1


def test_the_rates_are_those_before_the_mode_began_however_long_it_lasts() -> None:
    clock = Clock()
    clock.run(BREACHES[GovernorMode.RETRY_LIMITED])
    clock.run(replace(BREACHES[GovernorMode.RETRY_LIMITED], retry_rate=3.0), timedelta(hours=1))
    assert clock.controls.retry_rate == 3.0


def test_C31_short_retries_go_first_above_the_backlog() -> None:
    clock = Clock()
    clock.run(BREACHES[GovernorMode.RETRY_SHORT_FIRST])
    assert clock.controls.is_short_first


def test_C32_only_core_jobs_start_above_the_growth_of_dead_letters() -> None:
    clock = Clock()
    clock.run(BREACHES[GovernorMode.CORE_ONLY])
    held = [priority.name for priority in Priority if clock.controls.holds(priority, 1)]
    assert held == ["high", "normal", "low"]


@pytest.mark.parametrize("mode", RULES)
def test_an_hour_of_noise_around_the_threshold_enters_a_mode_once_and_leaves_it_once(mode: GovernorMode) -> None:
    dice, clock = random.Random(7), Clock()
    changes = 0
    for _ in range(timedelta(hours=1) // EVERY):
        before = clock.state
        clock.run(dice.choice((BREACHES[mode], JUST_WITHIN[mode], CALM)))
        changes += len(changes_between(before, clock.state, RULE, RULE))
    assert changes == 1
    before = clock.state
    clock.run(CALM, timedelta(minutes=11))
    assert len(changes_between(before, clock.state, RULE, RULE)) == 1
    assert clock.modes == [GovernorMode.NORMAL]


def test_a_figure_between_clear_and_breached_neither_begins_nor_ends_a_mode() -> None:
    clock = Clock()
    clock.run(JUST_WITHIN[GovernorMode.CORE_ONLY], timedelta(hours=1))
    assert clock.modes == [GovernorMode.NORMAL]
    clock.run(BREACHES[GovernorMode.CORE_ONLY])
    clock.run(JUST_WITHIN[GovernorMode.CORE_ONLY], timedelta(hours=1))
    assert clock.modes == [GovernorMode.CORE_ONLY]


def test_too_few_samples_are_no_breach_and_end_a_mode() -> None:
    clock = Clock()
    clock.run(replace(BREACHES[GovernorMode.SHED_LOW], starts=19))
    clock.run(replace(BREACHES[GovernorMode.RETRY_LIMITED], outcomes=99))
    assert clock.modes == [GovernorMode.NORMAL]
    clock.run(BREACHES[GovernorMode.RETRY_LIMITED])
    clock.run(Figures(), timedelta(minutes=6))
    assert clock.modes == [GovernorMode.NORMAL]


def test_instances_that_wait_while_none_starts_are_a_breach_of_the_delay() -> None:
    clock = Clock()
    clock.run(Figures(oldest_wait=3.0))
    assert clock.modes == [GovernorMode.SHED_LOW]
    assert clock.state.track(GovernorMode.SHED_LOW).cause is not None
    assert clock.state.track(GovernorMode.SHED_LOW).cause.code == "STALLED"  # pyright: ignore[reportOptionalMemberAccess]


def test_a_dry_run_reports_the_changes_and_limits_nothing() -> None:
    clock = Clock(replace(RULE, is_dry_run=True))
    before = clock.state
    clock.run(BREACHES[GovernorMode.CORE_ONLY])
    assert clock.controls == Controls(modes=(GovernorMode.NORMAL,))
    [change] = changes_between(before, clock.state, clock.thresholds, clock.thresholds)
    assert (change.mode, change.level, change.is_dry_run) == (GovernorMode.CORE_ONLY, 1, True)


def test_an_override_wins_over_its_rule_and_over_a_dry_run_until_it_expires() -> None:
    clock = Clock(replace(RULE, is_dry_run=True))
    until = START + timedelta(minutes=1)
    clock.state = replace(clock.state, overrides={GovernorMode.CORE_ONLY: Override(True, "ada", START, until)})
    clock.run(CALM, timedelta(seconds=50))
    assert clock.modes == [GovernorMode.CORE_ONLY]
    clock.run(CALM)
    assert clock.modes == [GovernorMode.NORMAL]
    clock = Clock()
    clock.state = replace(clock.state, overrides={GovernorMode.CORE_ONLY: Override(False, "ada", START)})
    clock.run(BREACHES[GovernorMode.CORE_ONLY])
    assert clock.modes == [GovernorMode.NORMAL]


def test_F5_freezes_hold_low_priority_and_the_entry_of_backfills_until_they_expire() -> None:
    clock = Clock()
    hold = PlatformHold("ada", START, START + timedelta(minutes=1))
    clock.state = replace(clock.state, freezes={"low-priority": hold, "backfill": hold})
    clock.run(CALM)
    assert (clock.controls.low, clock.controls.is_backfill_closed) == (LowPriority.PAUSED, True)
    assert clock.modes == [GovernorMode.NORMAL]
    assert not clock.controls.thins_low, "a freeze holds slots and leaves none out"
    assert "THIN_LOW_PRIORITY" not in [action.code for action in clock.controls.actions()]
    clock.run(CALM, timedelta(minutes=1))
    assert clock.controls == Controls(modes=(GovernorMode.NORMAL,))


def test_the_figures_are_those_of_all_processes_together() -> None:
    healths = [EngineHealth(), EngineHealth()]
    for number, health in enumerate(healths):
        health.observe_delays(100.0, [1] * 10, [0.001 if number == 0 else 5.0] * 10)
        health.observe_outcomes(100.0, succeeded=[1] * 8, failed=[1] * 2, dead=[1])
        health.starts.count(100.0, StartClass.RETRY, 100)
    figures = figures_of(merged([health.reading(110.0) for health in healths]))
    assert (figures.starts, figures.outcomes, figures.dead_letters) == (20, 20, 2)
    assert figures.delay_p95 >= 5.0
    assert figures.success_rate == 0.8
    assert figures.retry_rate == 20.0
    assert figures_of(Reading()) == Figures()
