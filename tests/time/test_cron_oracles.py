"""Cron against oracles that share no code with it: a scan of every real minute of two years, and cronsim.

A sample by `HORAI_TEST_SEED`, which is printed; `HORAI_LONG=1` takes all zones and all expressions.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np
import pytest
from cron_cases import EXPRESSIONS, POLICIES, SEED, ZONES, random_expression
from cron_scanner import Expression, Minutes, Scan, Scanner
from sizes import IS_LONG

from horai.time.cron import DstPolicy, next_fire, parse
from horai.time.cron.segments import EPOCH
from horai.time.zones import zone

MARGIN = 3 * 86_400  # at the edge of its years a scanner sees only one side of a change
SPARSE = 1_500 if IS_LONG else 400
PROBES = 600 if IS_LONG else 150


def plan() -> Iterator[tuple[str, list[str]]]:
    """Yield each zone with the expressions that are tried in it."""
    dice = random.Random(SEED)
    names = sorted(ZONES) if IS_LONG else dice.sample(sorted(ZONES), 6)
    for name in names:
        fixed = EXPRESSIONS if IS_LONG else dice.sample(EXPRESSIONS, 6)
        yield name, [*fixed, *(random_expression(dice) for _ in range(8 if IS_LONG else 2))]


def instant(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=int(seconds))


def bases(scanner: Scanner, fires: Minutes, dice: random.Random) -> list[int]:
    """Where to ask: before every fire; of many, before those around the changes and at some other times."""
    begin, end = int(scanner.minutes[0]) * 60 + MARGIN, int(scanner.minutes[-1]) * 60 - MARGIN
    inside = fires[(fires > begin) & (fires < end)]
    if len(inside) > SPARSE:
        near = np.zeros(len(inside), dtype=np.bool_)
        for change in scanner.changes * 60:
            near |= np.abs(inside - change) < 4 * 3600
        inside = inside[near][:: max(1, int(near.sum()) // SPARSE)]
    last = int(fires[fires < end][-1]) if (fires < end).any() else begin
    probes = [dice.randrange(begin, last) for _ in range(PROBES)] if last > begin else []
    return [*(int(fire) - 1 for fire in inside), *(int(fire) for fire in inside if fire < last), *probes]


def mismatches(scan: Scan, place: str, text: str, policy: DstPolicy, dice: random.Random) -> list[str]:
    """Return the answers of `next_fire` that differ from the scan."""
    cron, where = parse(text), zone(place)
    fires = scan.fires(policy.gap, policy.overlap)
    if not len(fires):
        begin, end = instant(scan.scanner.minutes[0] * 60), instant(scan.scanner.minutes[-1] * 60)
        fire = next_fire(cron, where, begin + timedelta(seconds=MARGIN), policy)
        is_later = fire is None or fire > end - timedelta(seconds=MARGIN)
        return [] if is_later else [f"{text} in {place} by {policy}: {fire}, scanned none"]
    found: list[str] = []
    for base in bases(scan.scanner, fires, dice):
        expected = instant(fires[np.searchsorted(fires, base, side="right")])
        fire = next_fire(cron, where, instant(base), policy)
        if fire != expected:
            found.append(f"{text} in {place} by {policy} after {instant(base)}: {fire}, scanned {expected}")
    return found


@pytest.mark.timeout(3600 if IS_LONG else 180)
def test_X15_fires_are_those_of_a_scan_of_every_real_minute_of_two_years():
    print(f"HORAI_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    wrong: list[str] = []
    pairs = asked = 0
    for place, texts in plan():
        scanner = Scanner(zone(place), ZONES[place], ZONES[place] + 2)
        for text in texts:
            scan = scanner.scan(Expression(text))
            for policy in POLICIES[:1] if scan.expression.is_wildcard else POLICIES:
                wrong += mismatches(scan, place, text, policy, dice)
                asked += 1
            pairs += 1
    print(f"{pairs} pairs of zone and expression, {asked} with their policies, {len(wrong)} mismatches")
    assert not wrong, f"HORAI_TEST_SEED={SEED}: {len(wrong)} mismatches, such as\n" + "\n".join(wrong[:5])
