"""Long drain: ten times the backlog at hardly less speed; 1,000,000 against 100,000 at the usual size."""

from benchmarks import drain
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting


async def sample(sitting: Sitting) -> Sample:
    """The short backlog, then the long one."""
    short = await drain.rate_of(sitting, sitting.size.rows // 2)
    return {"short drain": short, "long drain": await drain.rate_of(sitting, sitting.size.rows * 5)}


SCENARIO = Scenario(
    "long_drain",
    "a backlog ten times as long",
    sample,
    (Line("short drain", "/s"), Line("long drain", "/s", per="short drain", at_least=0.85)),
    by_name_only=True,
)
