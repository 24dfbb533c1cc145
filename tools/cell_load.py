"""Tenants of the simulation of cells: a heavy-tailed load that drifts from day to day, and tenants that become hot.

All figures come from one seed, so every policy sees the same tenants on the same days. Loads are parts of what one cell can
dispatch at the peak.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

SEED = 2002


@dataclass(frozen=True, slots=True)
class Fleet:
    """The tenants and cells of a run."""

    cells: int = 100
    tenants: int = 4_000
    days: int = 40
    used: float = 0.5
    """The load of all tenants on the first day, in parts of all cells."""
    tail: float = 1.3
    """The exponent of the Pareto distribution: the smaller, the larger are the largest tenants."""
    most: float = 0.8
    """The largest load of a tenant: its quota."""
    drift: float = 0.03
    """The standard deviation of the logarithm of a tenant's growth in a day."""
    hot_per_day: int = 2
    """Tenants that become hot each day: they grow by `hot_growth` within `hot_days`, and keep the load."""
    hot_growth: float = 8.0
    hot_days: int = 5


Loads = Sequence[Sequence[float]]
"""By day, then by tenant."""


def loads_of(fleet: Fleet, seed: int = SEED) -> Loads:
    """Return the load of each tenant at the peak of each day."""
    dice = random.Random(seed)  # noqa: S311 - a simulation
    today = _first_day(fleet, dice)
    days = [today]
    hot: dict[int, int] = {}
    for _ in range(fleet.days):
        for _ in range(fleet.hot_per_day):
            hot[dice.randrange(fleet.tenants)] = fleet.hot_days
        today = [
            min(load * dice.lognormvariate(0, fleet.drift) * _heat(fleet, hot, tenant), fleet.most)
            for tenant, load in enumerate(today)
        ]
        days.append(today)
    return days


def _first_day(fleet: Fleet, dice: random.Random) -> list[float]:
    """Return loads that add up to the used part of all cells, none above the quota."""
    drawn = [dice.paretovariate(fleet.tail) for _ in range(fleet.tenants)]
    wanted = fleet.cells * fleet.used
    unit = wanted / sum(drawn)
    for _ in range(50):  # what the quota cuts off is spread over the others
        unit *= wanted / sum(min(load * unit, fleet.most) for load in drawn)
    return [min(load * unit, fleet.most) for load in drawn]


def _heat(fleet: Fleet, hot: dict[int, int], tenant: int) -> float:
    """Return the growth of this day; forget a tenant whose growth has ended."""
    left = hot.get(tenant, 0)
    if not left:
        return 1.0
    hot[tenant] = left - 1
    if left == 1:
        del hot[tenant]
    return fleet.hot_growth ** (1 / fleet.hot_days)
