"""`make bench`: one table, medians, ratios; the JSON is kept under results/."""

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import uvloop

from benchmarks import drain, raw_limit
from horai.core.settings import EngineSettings
from horai.db.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.node import prepare

RESULTS = Path(__file__).parent / "results"
Rate = Callable[[str, int], Awaitable[float]]


async def _measure(server: EmbeddedPostgres, name: str, rate: Rate, rows: int, times: int) -> float:
    found: list[float] = []
    for repetition in range(times):
        database = f"bench_{name}_{repetition}"
        await _admin(server.url, f"create database {database}")
        url = server.url.replace("/horai?", f"/{database}?")
        await prepare(url, EngineSettings())
        found.append(await rate(url, rows))
        await _admin(server.url, f"drop database {database} with (force)")
    return statistics.median(found)


async def _admin(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


async def _run(rows: int, times: int) -> dict[str, float]:
    place = Path(tempfile.mkdtemp(prefix="horai-bench-", dir="/var/tmp"))
    place.chmod(0o755)
    server = EmbeddedPostgres(EmbeddedSettings(place / "data", shared_buffers="512MB"))
    await server.start()
    try:
        raw = await _measure(server, "raw", raw_limit.drain_rate, rows, times)
        ours = await _measure(server, "drain", drain.drain_rate, rows, times)
    finally:
        await server.stop()
        shutil.rmtree(place, ignore_errors=True)
    return {"raw_limit_per_s": round(raw), "drain_per_s": round(ours), "drain_to_raw_limit": round(ours / raw, 3)}


def main() -> None:
    """Measures, prints, keeps."""
    options = argparse.ArgumentParser(prog="make bench", description=__doc__)
    options.add_argument("--rows", type=int, default=200_000)
    options.add_argument("--times", type=int, default=3)
    chosen = options.parse_args()
    figures = uvloop.run(_run(chosen.rows, chosen.times))
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "rows": chosen.rows, "times": chosen.times}
    RESULTS.mkdir(exist_ok=True)
    at = datetime.now(UTC)
    (RESULTS / f"{at:%Y%m%d-%H%M%S}.json").write_text(
        json.dumps({"at": at.isoformat(), **machine, **figures}, indent=2) + "\n"
    )
    print(f"median of {chosen.times}, {chosen.rows} rows, {machine['cores']} cores, no-op executor in the same process")
    for name, value in figures.items():
        print(f"  {name:<22}{value:>12,}")


if __name__ == "__main__":
    main()
