"""Reports of runs on a Patroni cluster, for docs/drills/patroni. They are written if HORAI_REPORTS names a directory."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ABOUT = {
    "network-cuts": (
        "The network of the primary was cut (network namespace) until clients on the other side wrote again. A node and a client beside "
        "each PostgreSQL wrote all the time."
    ),
    "failures": "The lead was handed over by planned switchovers; then the postmaster of the primary was killed with kill -9.",
}


@dataclass(frozen=True)
class PatroniRun:
    """One run: its failures in their order, and the figures of all of them."""

    kind: str
    replication: str
    rate: int
    failures: tuple[Mapping[str, Any], ...]
    figures: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "replication": self.replication,
            "endedAt": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
            "ratePerSecond": self.rate,
            "figures": dict(self.figures),
            "failures": [dict(failure) for failure in self.failures],
        }


def page(told: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    columns = list(told["failures"][0])
    lines = [
        f"# Patroni: {told['kind']}, {told['replication']}, {told['endedAt'][:10]}",
        "",
        f"{ABOUT[told['kind']]} The cluster is that of `deploy/patroni` with {told['replication']} replication, under "
        f"{told['ratePerSecond']} instances/s, on {told['machine']}.",
        "",
        *_table(["figure", "value"], [[name, value] for name, value in told["figures"].items()]),
        "",
        *_table(["number", *columns], [[number, *each.values()] for number, each in enumerate(told["failures"], 1)]),
    ]
    return "\n".join(lines) + "\n"


def _table(columns: list[str], rows: list[list[Any]]) -> list[str]:
    return [f"| {' | '.join(map(str, row))} |" for row in (columns, ["---"] * len(columns), *rows)]


def store(run: PatroniRun) -> None:
    """Write the report as a page and as JSON."""
    if (directory := os.environ.get("HORAI_REPORTS")) is None:
        return
    told = run.document()
    file = Path(directory) / f"{told['endedAt'][:10]}-{run.kind}-{run.replication}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(told))
    file.with_suffix(".json").write_text(json.dumps(told, indent=2) + "\n")
