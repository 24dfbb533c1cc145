"""The report of a drill: a Markdown page for people and the same figures as JSON."""

import json
import re
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from horai.cli.drills.kinds import DrillKind
from horai.cli.drills.patroni import LeadMove
from horai.cli.drills.scene import DrillResult
from horai.cli.errors import CommandFailed

SHOWN = 10
"""Ids of lost and repeated instances, and violations, that a report lists."""
ABOUT = {
    DrillKind.NODE: "One of two nodes was killed with kill -9. The other one took over its shards when its lease had ended.",
    DrillKind.PRIMARY: (
        "The postmaster of the primary was killed with kill -9, and the drill promoted the standby at once. In a cluster whose "
        "manager promotes it, add the time in which the manager notices the failure."
    ),
    DrillKind.ZONE: (
        "A zone was lost: the primary and one of two nodes were killed with kill -9 at the same time, and the drill promoted the "
        "standby at once. In a cluster whose manager promotes it, add the time in which the manager notices the failure."
    ),
    DrillKind.STANDBY: (
        "The postmaster of the standby that commits wait for was killed with kill -9. The drill made commits continue without it at "
        "once, started it again under load, and made commits wait for it again. In a cluster with a manager, add the time in "
        "which the manager notices the failure."
    ),
}


MOVED = {
    LeadMove.SWITCHOVER: "Patroni handed the lead of an existing cluster over to a standby, as planned maintenance does.",
    LeadMove.FAILOVER: "Patroni moved the lead of an existing cluster to a standby by a manual failover.",
}


def document(result: DrillResult) -> dict[str, Any]:
    """Return the report as JSON."""
    counts = result.counts
    return {
        "kind": result.kind.value,
        "cluster": result.cluster,
        "move": result.move,
        "failedAt": result.failed_at.isoformat(timespec="milliseconds"),
        "horai": result.version,
        "machine": result.machine,
        "replication": result.replication,
        "leaseSeconds": result.plan.lease.total_seconds() if result.cluster is None else None,
        "ratePerSecond": result.plan.rate,
        "rtoSeconds": _seconds(counts.rto),
        "writesPausedSeconds": _seconds(counts.writes_paused),
        "workDelayedSeconds": _seconds(counts.work_delayed),
        "rpoSeconds": _seconds(counts.rpo),
        "acknowledged": counts.acknowledged,
        "refused": counts.refused,
        "calls": counts.calls,
        "lost": len(counts.lost),
        "lostInstances": [str(each) for each in counts.lost[:SHOWN]],
        "repeatedInFlight": counts.repeated_in_flight,
        "repeatedOutsideFlight": len(counts.repeated),
        "repeatedInstances": [str(each) for each in counts.repeated[:SHOWN]],
        "deadLetters": counts.letters,
        "deadLettersLost": counts.letters_lost,
        "violations": list(counts.violations[:SHOWN]),
        "promises": [
            {"promise": each.text, "limit": each.limit, "measured": each.measured, "kept": each.is_kept}
            for each in result.promises
        ],
        "kept": result.is_kept,
        "steps": [{"second": round(step.second, 2), "step": step.text} for step in result.steps],
    }


def _seconds(duration: timedelta) -> float:
    return round(duration.total_seconds(), 3)


def page(result: DrillResult) -> str:
    """Return the report as Markdown."""
    told, counts = document(result), result.counts
    verdict = "Every promise was kept." if result.is_kept else "**A promise was broken.**"
    promised = [(p.text, p.limit, p.measured, "yes" if p.is_kept else "**no**") for p in result.promises]
    where = (
        f"{len(result.plan.names)} nodes, leases of {told['leaseSeconds']:g} s"
        if result.cluster is None
        else f"the existing cluster {result.cluster}"
    )
    figures = [
        ("longest pause between two acknowledged writes", f"{told['writesPausedSeconds']:.2f} s"),
        ("last instance from before the failure ended after", f"{told['workDelayedSeconds']:.2f} s"),
        ("instances acknowledged", str(counts.acknowledged)),
        ("instances in requests that were refused or not answered", str(counts.refused)),
        ("calls at the target", str(counts.calls)),
        ("acknowledged instances lost", str(len(counts.lost))),
        ("instances called again because their call was in flight", str(counts.repeated_in_flight)),
        ("instances called again without such a reason", str(len(counts.repeated))),
    ]
    if result.cluster is None:
        figures.append(("dead letters before the failure, and lost", f"{counts.letters}, {counts.letters_lost}"))
    lines = [
        f"# Drill: {result.kind.value}, {result.failed_at:%Y-%m-%d}",
        "",
        f"{ABOUT[result.kind] if result.move is None else MOVED[LeadMove(result.move)]} {verdict}",
        "",
        f"Failure at {result.failed_at:%Y-%m-%d %H:%M:%S} UTC. Horai {result.version} on {result.machine}; "
        f"{where}, replication: {result.replication}, {result.plan.rate} instances/s.",
        "",
        *_table(("promise", "limit", "measured", "kept"), promised),
        "",
        *_table(("figure", "value"), figures),
        "",
        *_table(("seconds after the failure", "step"), [(f"{s.second:.2f}", s.text) for s in result.steps]),
    ]
    for title, found in (("Lost instances", told["lostInstances"]), ("Repeated instances", told["repeatedInstances"])):
        lines += ["", f"{title}: {', '.join(found)}."] if found else []
    lines += [f"- {violation}" for violation in told["violations"]]
    return "\n".join(lines) + "\n"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    cells = [columns, tuple("---" for _ in columns), *rows]
    return [f"| {' | '.join(row)} |" for row in cells]


def write(result: DrillResult, directory: Path, keep: int | None = None) -> Path:
    """Write both files, and return the path of the page. A second drill of a day gets a number.

    With `keep`, only that many reports of the kind stay, the newest; other files of the directory are not touched.
    """
    name = f"{result.failed_at:%Y-%m-%d}-{result.kind.value}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        made = _write_next(result, directory, name)
        if keep is not None:
            for old in reports_of(directory, result.kind)[:-keep]:
                old.with_suffix(".json").unlink(missing_ok=True)
                old.unlink()
    except OSError as error:
        raise CommandFailed(f"The report cannot be written to {directory}: {error.strerror or error}.") from error
    return made


def _write_next(result: DrillResult, directory: Path, name: str) -> Path:
    for number in count(1):
        made = directory / (f"{name}.md" if number == 1 else f"{name}-{number}.md")
        try:
            with made.open("x", encoding="utf-8") as output:
                output.write(page(result))
        except FileExistsError:
            continue
        made.with_suffix(".json").write_text(json.dumps(document(result), indent=2) + "\n", "utf-8")
        return made
    raise AssertionError("count does not end")


def reports_of(directory: Path, kind: DrillKind) -> list[Path]:
    """Return the pages of a kind in a directory, oldest first."""
    named = re.compile(rf"(\d{{4}}-\d\d-\d\d)-{kind.value}(?:-(\d+))?")
    found = [
        (match[1], int(match[2] or 1), file) for file in directory.glob("*.md") if (match := named.fullmatch(file.stem))
    ]
    return [file for _, _, file in sorted(found)]
