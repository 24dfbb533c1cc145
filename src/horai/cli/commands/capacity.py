"""`horai capacity`: rates, storage and nodes for a load, beside the figures of this machine."""

import asyncio
import json
import os
from dataclasses import asdict
from typing import Annotated, Any

from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import DatabaseUrl, DataDir, flag, setting
from horai.cli.lazy import new_app
from horai.core.capacity import CapacityFindings, CapacityInputs, CapacityPlan, plan_capacity, with_findings
from horai.db.database_location import choose_database

app = new_app()
COLUMNS = ("FIGURE", "PLANNED", "MEASURED")
DEFAULTS = CapacityInputs()
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@app.command()
def capacity(
    definitions: Annotated[int, flag("--definitions", about="Jobs.")] = DEFAULTS.definitions,
    fires_per_day: Annotated[int, flag("--fires-per-day", about="Instances per day.")] = DEFAULTS.fires_per_day,
    peak_factor: Annotated[
        float, flag("--peak-factor", about="Peak rate in parts of the average rate.")
    ] = DEFAULTS.peak_factor,
    record_bytes: Annotated[
        float, flag("--record-bytes", about="Bytes that a finished instance uses.")
    ] = DEFAULTS.record_bytes,
    hot_days: Annotated[int, flag("--hot-days", about="Days in the database.")] = DEFAULTS.hot_days,
    cold_days: Annotated[int, flag("--cold-days", about="Days in the archive.")] = DEFAULTS.cold_days,
    node_rate: Annotated[float, flag("--node-rate", about="Instances per second of one node.")] = DEFAULTS.node_rate,
    spare_nodes: Annotated[int, flag("--spare-nodes", about="Nodes that may fail at the peak.")] = DEFAULTS.spare_nodes,
    headroom: Annotated[
        float, flag("--headroom", about="Nodes to deploy in parts of the least number.")
    ] = DEFAULTS.headroom,
    measure: Annotated[
        bool, flag("--measure", about="Measure this machine: one node on a temporary embedded database.")
    ] = False,
    instances: Annotated[
        int, flag("--instances", about="Instances of the measurement.", limits=(100, 5_000_000))
    ] = 20_000,
    from_database: Annotated[
        bool, flag("--from-database", about="Read the bytes per instance of the given database; writes nothing.")
    ] = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, setting("--json", about="Print the figures as JSON.")] = False,
) -> None:
    """Calculate rates, storage and nodes for a load, and measure this machine."""
    inputs = CapacityInputs(
        definitions, fires_per_day, peak_factor, record_bytes, hot_days, cold_days, node_rate, spare_nodes, headroom
    )
    if (name := inputs.problem()) is not None:
        refuse_flag(f"--{name.replace('_', '-')}", "is out of range.")
    if measure and from_database:
        raise BadUsage("--measure and --from-database exclude each other.", "Give one of them.")
    found = None
    if measure:
        found = _run(instances)
    elif from_database:
        found = _read(database_url, data_dir)
    document = _document(inputs, found)
    if as_json:
        print(json.dumps(document))
    else:
        _print(inputs, found)


def _run(instances: int) -> CapacityFindings:
    import logging  # noqa: PLC0415

    from horai.cli.capacity_run import measure  # noqa: PLC0415
    from horai.logs import write_to_stderr  # noqa: PLC0415

    write_to_stderr(logging.WARNING)
    return asyncio.run(measure(instances))


def _read(database_url: Any, data_dir: Any) -> CapacityFindings:
    from horai.cli.database import read_storage  # noqa: PLC0415

    return asyncio.run(read_storage(choose_database(database_url, data_dir, os.environ))).findings()


def _document(inputs: CapacityInputs, found: CapacityFindings | None) -> dict[str, Any]:
    measured = None
    if found is not None:
        measured = found.document() | {"figures": plan_capacity(with_findings(inputs, found)).document()}
    given = {_camel(name): value for name, value in asdict(inputs).items()}
    return {"inputs": given, "figures": plan_capacity(inputs).document(), "measured": measured}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _print(inputs: CapacityInputs, found: CapacityFindings | None) -> None:
    from horai.cli.show import console, say, table  # noqa: PLC0415

    planned = _texts(inputs, plan_capacity(inputs))
    here = dict.fromkeys(planned, "")
    if found is not None:
        measured = with_findings(inputs, found)
        here = _texts(measured, plan_capacity(measured))
        unknown = {"jobs", "fires per day", "average rate", "peak rate"}  # they are given, not measured
        if found.finished_bytes is None:
            unknown |= {name for name in here if "storage" in name or "bytes" in name}
        if found.node_rate is None:
            unknown |= {name for name in here if "node" in name}
        here |= dict.fromkeys(unknown, "")
    console().print(table(COLUMNS, ((name, text, here[name]) for name, text in planned.items())))
    if found is not None:
        waiting = "" if found.waiting_bytes is None else f"; a waiting instance uses {found.waiting_bytes:,.0f} B"
        say(f"Measured with {found.instances:,} instances{waiting}.")


def _texts(inputs: CapacityInputs, plan: CapacityPlan) -> dict[str, str]:
    return {
        "jobs": f"{inputs.definitions:,}",
        "fires per day": f"{inputs.fires_per_day:,}",
        "average rate": f"{plan.average_rate:,.0f}/s",
        "peak rate": f"{plan.peak_rate:,.0f}/s",
        "bytes per instance": f"{inputs.record_bytes:,.0f} B",
        "storage per day": decimal_size(plan.bytes_per_day),
        f"hot storage, {inputs.hot_days} days": decimal_size(plan.hot_bytes),
        f"cold storage, {inputs.cold_days} days": decimal_size(plan.cold_bytes),
        "rate of one node": f"{inputs.node_rate:,.0f}/s",
        "nodes at the peak": f"{plan.least_nodes:,}",
        "nodes to deploy": f"{plan.deployed_nodes:,}",
    }


def decimal_size(size: float) -> str:
    """Return a number of bytes in decimal units, with one decimal below 10."""
    unit = 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:,.0f} {_UNITS[unit]}" if size >= 10 or unit == 0 else f"{size:,.1f} {_UNITS[unit]}"
