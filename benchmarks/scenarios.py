"""The list of figures, in the order of the table."""

from collections.abc import Sequence

from benchmarks import (
    backfill,
    births,
    console,
    cron,
    days,
    definitions,
    drain,
    fairness,
    forecast,
    future,
    groups,
    http_calls,
    idle,
    immediate,
    imports,
    inserts,
    keys,
    latency,
    lists,
    long_drain,
    maps,
    migration,
    outage,
    own_sql,
    peak,
    pinned,
    puts,
    raw_limit,
    refresh,
    remote_workers,
    resumes,
    same_second,
    sdk,
    soak,
)
from benchmarks.scenario import Scenario

ALL = (
    raw_limit.SCENARIO,
    own_sql.SCENARIO,
    drain.SCENARIO,
    sdk.DRAIN,
    sdk.ENQUEUE,
    sdk.IMMEDIATE,
    sdk.LATENCY,
    births.SCENARIO,
    long_drain.SCENARIO,
    groups.SCENARIO,
    same_second.SCENARIO,
    outage.SCENARIO,
    latency.SCENARIO,
    immediate.SCENARIO,
    idle.SCENARIO,
    pinned.SCENARIO,
    future.SCENARIO,
    inserts.SCENARIO,
    keys.SCENARIO,
    *puts.SCENARIOS,
    lists.SCENARIO,
    console.SCENARIO,
    resumes.SCENARIO,
    http_calls.SCENARIO,
    fairness.SCENARIO,
    backfill.SCENARIO,
    maps.SCENARIO,
    definitions.SCENARIO,
    definitions.SCENARIO_OF_MILLIONS,
    cron.SCENARIO,
    forecast.SCENARIO,
    imports.SCENARIO,
    refresh.SCENARIO,
    remote_workers.SCENARIO,
    migration.SCENARIO,
    days.SCENARIO,
    peak.SCENARIO,
    soak.SCENARIO,
    soak.SCENARIO_OF_STOCK,
)
SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in ALL}


def chosen(names: Sequence[str]) -> list[Scenario]:
    """Those named and what they are compared with; without a name, all but the very long ones."""
    wanted = list(names) or [name for name, scenario in SCENARIOS.items() if not scenario.by_name_only]
    needed = {need for name in wanted for need in SCENARIOS[name].needs} | set(wanted)
    return [scenario for name, scenario in SCENARIOS.items() if name in needed]
