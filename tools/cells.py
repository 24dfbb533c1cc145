"""Simulate tenants in cells, each a PostgreSQL with its nodes, and write the results into docs/capacity.md.

Horai has no cells: this is the arithmetic of a plan. `python -m tools.cells` writes the table; a test compares it.
"""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.cell_load import SEED, Fleet, Loads, loads_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "capacity.md"
BEGIN, END = "<!-- begin of tools/cells.py -->", "<!-- end of tools/cells.py -->"

HOT = 0.8
"""A cell is hot above this load: tenants leave it."""
CALM = 0.7
"""They leave until its load is below this one, and no cell is filled above it."""
LARGE = 0.35
"""A tenant from this load on gets a cell of its own, where the policy says so."""
SMALL = 0.05
"""The largest load of a tenant that counts as small."""
MOVES_PER_DAY = 20
DEFINITIONS_PER_CELL = 1_000_000
"""Definitions of a full cell; a tenant has its part of them."""


@dataclass(frozen=True, slots=True)
class MoveRate:
    """Definitions per second of an export and of an import, as measured (docs/capacity.md)."""

    exported: float = 1_300.0
    imported: float = 110.0

    def seconds(self, load: float) -> float:
        """Return how long a tenant of this load cannot be changed and does not fire while it is moved."""
        definitions = load * DEFINITIONS_PER_CELL
        return definitions / self.exported + definitions / self.imported


@dataclass(frozen=True, slots=True)
class Policy:
    """The placement of new tenants, and the tenants that leave a hot cell."""

    name: str
    choose: Callable[[Sequence[float], random.Random], int]
    moves_per_day: int = 0
    is_largest_first: bool = False
    has_own_cells: bool = False


def at_random(cells: Sequence[float], dice: random.Random) -> int:
    """Return any cell."""
    return dice.randrange(len(cells))


def least_loaded(cells: Sequence[float], _: random.Random) -> int:
    """Return the emptiest cell."""
    return min(range(len(cells)), key=cells.__getitem__)


def two_choices(cells: Sequence[float], dice: random.Random) -> int:
    """Return the emptier one of two cells that are drawn."""
    return min(dice.sample(range(len(cells)), 2), key=cells.__getitem__)


POLICIES = (
    Policy("random", at_random),
    Policy("least loaded", least_loaded),
    Policy("two choices", two_choices),
    Policy("two choices; large tenants leave", two_choices, MOVES_PER_DAY, is_largest_first=True),
    Policy("two choices; small tenants leave", two_choices, MOVES_PER_DAY),
    Policy("own cells for large tenants; small ones leave", two_choices, MOVES_PER_DAY, has_own_cells=True),
)


@dataclass(slots=True)
class Outcome:
    """The figures of one policy over all days."""

    name: str
    fullest: float = 0.0
    """The largest load of a cell on any day."""
    overloaded: float = 0.0
    """The part of all fires that were due in cells above their capacity, over all days."""
    moved: list[float] = field(default_factory=list[float])
    """The load of each moved tenant."""
    busiest: int = 0
    """Moves of the busiest day."""
    unsolved: int = 0
    """Days on which a cell stayed hot, over all cells."""
    lost_tenants: tuple[float, float] = (0.0, 0.0)
    lost_fires: tuple[float, float] = (0.0, 0.0)
    """The part that the loss of a cell takes along on the last day: on average, and of the worst cell."""


class Cluster:
    """Tenants in cells on one day."""

    def __init__(self, fleet: Fleet, policy: Policy, loads: Sequence[float], dice: random.Random) -> None:
        self.policy = policy
        self.dice = dice
        self.loads = loads
        self.cell_of = [-1] * fleet.tenants
        self.cells = [0.0] * fleet.cells
        self.every_cell = list(range(fleet.cells))
        self.owned: set[int] = set()
        """Cells of large tenants: no other tenant is placed there."""
        for tenant in sorted(range(fleet.tenants), key=self.is_large, reverse=True):
            self.put(tenant, self.place_for(tenant))

    def place_for(self, tenant: int) -> int:
        """Return the cell of a new tenant by the policy."""
        if self.is_large(tenant):
            own = next(cell for cell, load in enumerate(self.cells) if load == 0.0)
            self.owned.add(own)
            return own
        shared = self.shared_cells()
        return shared[self.policy.choose([self.cells[cell] for cell in shared], self.dice)]

    def is_large(self, tenant: int) -> bool:
        """Return whether the tenant is to have a cell of its own."""
        return self.policy.has_own_cells and self.loads[tenant] >= LARGE

    def shared_cells(self) -> list[int]:
        """Return the cells that take new tenants."""
        return [cell for cell in range(len(self.cells)) if cell not in self.owned] if self.owned else self.every_cell

    def put(self, tenant: int, cell: int) -> None:
        """Place a tenant, or move it."""
        if (old := self.cell_of[tenant]) >= 0:
            self.cells[old] -= self.loads[tenant]
        self.cell_of[tenant] = cell
        self.cells[cell] += self.loads[tenant]

    def next_day(self, loads: Sequence[float]) -> None:
        """Take over the loads of the day."""
        self.loads = loads
        self.cells = [0.0] * len(self.cells)
        for tenant, cell in enumerate(self.cell_of):
            self.cells[cell] += loads[tenant]

    def rebalance(self, most: int) -> list[float]:
        """Move up to `most` tenants out of hot cells, fullest cell first. Return the loads that were moved."""
        moved: list[float] = []
        for cell in sorted(self.every_cell, key=lambda cell: -self.cells[cell]):
            if self.cells[cell] <= HOT or len(moved) == most:
                break
            for tenant in self.leavers(cell):
                if len(moved) == most or self.cells[cell] <= CALM:
                    break
                if (target := self.target_for(tenant)) is not None:
                    self.put(tenant, target)
                    moved.append(self.loads[tenant])
        return moved

    def leavers(self, cell: int) -> list[int]:
        """Return the tenants that may leave a hot cell, in their order. The largest tenant of a large one's cell stays.

        Where small tenants leave, those above `SMALL` stay as well.
        """
        inside = [tenant for tenant, own in enumerate(self.cell_of) if own == cell]
        largest = max(inside, key=self.loads.__getitem__)
        if self.is_large(largest):
            self.owned.add(cell)
            inside.remove(largest)
        if self.policy.is_largest_first:
            return sorted(inside, key=self.loads.__getitem__, reverse=True)
        small = [tenant for tenant in inside if self.loads[tenant] <= SMALL]
        return sorted(small, key=self.loads.__getitem__, reverse=True)

    def target_for(self, tenant: int) -> int | None:
        """Return the emptiest cell that stays calm with the tenant; None if there is none."""
        emptiest = min(self.shared_cells(), key=self.cells.__getitem__)
        return emptiest if self.cells[emptiest] + self.loads[tenant] <= CALM else None


def simulate(policy: Policy, fleet: Fleet, loads: Loads, seed: int = SEED) -> Outcome:
    """Place the tenants of the first day by the policy and live through the others."""
    cluster = Cluster(fleet, policy, loads[0], random.Random(seed))  # noqa: S311 - a simulation
    outcome = Outcome(policy.name)
    due = over = 0.0
    for today in loads:
        cluster.next_day(today)
        outcome.fullest = max(outcome.fullest, *cluster.cells)
        due += sum(cluster.cells)
        over += sum(load for load in cluster.cells if load > 1.0)
        moved = cluster.rebalance(policy.moves_per_day)
        outcome.moved += moved
        outcome.busiest = max(outcome.busiest, len(moved))
        outcome.unsolved += sum(load > HOT for load in cluster.cells)
    outcome.overloaded = over / due
    outcome.lost_tenants, outcome.lost_fires = _blast_radius(cluster)
    return outcome


def _blast_radius(cluster: Cluster) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the parts of tenants and of fires that the loss of a cell stops: on average, and in the worst case."""
    counts = [0] * len(cluster.cells)
    for cell in cluster.cell_of:
        counts[cell] += 1
    tenants = [count / len(cluster.cell_of) for count in counts]
    fires = [load / sum(cluster.cells) for load in cluster.cells]
    return (statistics.mean(tenants), max(tenants)), (statistics.mean(fires), max(fires))


COLUMNS = (
    "policy",
    "fullest cell",
    "fires in overloaded cells",
    "hot cell-days",
    "moves",
    "most moves a day",
    "time of a move, median and longest",
    "worst cell: tenants",
    "worst cell: fires",
)


def row_of(outcome: Outcome, rate: MoveRate) -> tuple[str, ...]:
    """Return the figures of a policy as the page shows them."""
    times = sorted(rate.seconds(load) for load in outcome.moved)
    took = f"{_minutes(statistics.median(times))}, {_minutes(times[-1])}" if times else "–"
    return (
        outcome.name,
        f"{outcome.fullest:.0%}",
        f"{outcome.overloaded:.2%}",
        f"{outcome.unsolved:,}",
        f"{len(outcome.moved):,}",
        f"{outcome.busiest:,}",
        took,
        f"{outcome.lost_tenants[1]:.1%}",
        f"{outcome.lost_fires[1]:.1%}",
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def table(fleet: Fleet | None = None) -> list[str]:
    """Return the results of all policies as a Markdown table."""
    chosen = fleet or Fleet()
    loads = loads_of(chosen)
    rows = [row_of(simulate(policy, chosen, loads), MoveRate()) for policy in POLICIES]
    return [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}", *(f"| {' | '.join(row)} |" for row in rows)]


def page_with(lines: Sequence[str], page: str) -> str:
    """Return the page with these lines between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join((before + BEGIN, "", *lines, "", END)) + after


if __name__ == "__main__":
    PAGE.write_text(page_with(table(), PAGE.read_text("utf-8")), "utf-8")
