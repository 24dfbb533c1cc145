"""Cron: how long the next fire takes, beside cronsim on the same expressions, zones and bases.

Nothing of this needs a database. The dearest call is the one that looks for a time which every clock change takes.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

from cronsim import CronSim

from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.time.cron import next_fire, parse
from horai.time.zones import zone

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "America/Sao_Paulo")
EVERYDAY = ("*/5 * * * *", "0 * * * *", "30 2 * * *", "0 9 * * 1-5", "0 0 1 * *", "15,45 8-18 * * MON-FRI", "0 0 * * 0")
RARER = ("0 0 L * *", "0 9 * * 5#2", "0 9 LW * *", "0 0 13 * 5", "30 4 29 2 *", "0 12 1 1 *")
QUARTZ = ("0 */5 * * * ?", "*/10 * * * * ?", "0 0 9 15W * ?", "0 0 9 ? * 6L", "0 30 23 L-3W * ? 2020-2199")
DEAREST = "0 */20 2 ? 3 1#2"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BASES = [BEGIN + timedelta(seconds=number * 86_399 * 7 + number * 977) for number in range(100)]
PASSES = 4
ALLOWED_US = 20.0
ALLOWED_IN_VAIN_US = 5_000.0

Ask = Callable[[datetime], object]


async def sample(sitting: Sitting) -> Sample:
    """Microseconds per next fire: the median over all pairs of expression and zone, and the dearest pair."""
    bases = BASES[:: 10 if sitting.size.quick else 1]
    places = [zone(name) for name in ZONES]
    five = [(_ours(text, place), _cronsims(text, place)) for text, place in product(EVERYDAY + RARER, places)]
    own = [_microseconds(ask, bases) for ask, _ in five]
    quartz = [_microseconds(_ours(text, place), bases) for text, place in product(QUARTZ, places)]
    return {
        "cron next": statistics.median(own + quartz),
        "cron next, slowest pair": max(own + quartz),
        "cronsim next": statistics.median(_microseconds(ask, bases) for _, ask in five),
        "cron parse": _microseconds(lambda _: [parse(text) for text in EVERYDAY], bases) / len(EVERYDAY),
        "cron in vain": _microseconds(_ours(DEAREST, zone("America/New_York")), bases[:10]),
    }


def _ours(text: str, place: ZoneInfo) -> Ask:
    cron = parse(text)
    return lambda base: next_fire(cron, place, base)


def _cronsims(text: str, place: ZoneInfo) -> Ask:
    """It parses with each question: it has no value that could be asked twice."""
    return lambda base: next(CronSim(text, base.astimezone(place)))


def _microseconds(ask: Ask, bases: Sequence[datetime]) -> float:
    """Return the microseconds per question once the zone's years are known.

    The result is the best of `PASSES` passes, because other programs use this machine too.
    """
    return min(_one_pass(ask, bases) for _ in range(PASSES)) / len(bases) * 1e6


def _one_pass(ask: Ask, bases: Sequence[datetime]) -> float:
    began = time.perf_counter()
    for base in bases:
        ask(base)
    return time.perf_counter() - began


SCENARIO = Scenario(
    name="cron",
    about="the next fire of an expression in a zone, beside cronsim",
    sample=sample,
    lines=(
        Line("cron next", "µs", at_most=ALLOWED_US),
        Line("cron next", "µs", per="cronsim next"),
        Line("cron next, slowest pair", "µs"),
        Line("cronsim next", "µs"),
        Line("cron parse", "µs"),
        Line("cron in vain", "µs", at_most=ALLOWED_IN_VAIN_US),
    ),
)
