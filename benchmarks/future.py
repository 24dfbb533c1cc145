"""Future: due work does not notice a million instances that wait for another day."""

from benchmarks.latency import steady
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting

RATE = 5_000
TIMES_THE_BACKLOG = 5


async def sample(sitting: Sitting) -> Sample:
    """The same load without and with them."""
    alone = await steady(sitting, RATE, sitting.size.seconds)
    beside = await steady(sitting, RATE, sitting.size.seconds, sitting.size.rows * TIMES_THE_BACKLOG)
    return {
        "p99 alone": alone.quantile_ms(0.99),
        "p99 beside": beside.quantile_ms(0.99),
        "CPU alone": (alone.engine_cpu + alone.database_cpu) * 100,
        "CPU beside": (beside.engine_cpu + beside.database_cpu) * 100,
        "future early": alone.early + beside.early,
    }


SCENARIO = Scenario(
    "future",
    "5,000/s beside 1,000,000 far-future instances",
    sample,
    (
        Line("p99 alone", "ms"),
        Line("p99 beside", "ms", per="p99 alone", at_most=1.2),
        Line("CPU alone", "% of a core"),
        Line("CPU beside", "% of a core", per="CPU alone", at_most=1.2),
        Line("future early", "calls", at_most=0),
    ),
)
