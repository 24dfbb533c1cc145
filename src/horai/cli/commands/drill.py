"""`horai drill`: node, primary, standby, zone."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from horai.cli.flags import duration, flag, setting
from horai.cli.lazy import new_app

app = new_app("Drills: let a node, the primary, the standby or a zone of a cluster fail, and measure the recovery.")

Rate = Annotated[int, flag("--rate", about="Instances that clients create per second.", limits=(1, 10_000))]
Calm = Annotated[
    str, flag("--calm", about="Time of the load before the failure, and after the recovery.", metavar="DURATION")
]
Lease = Annotated[str, flag("--lease-ttl", about="Lease of the nodes.", metavar="DURATION")]
MaxRto = Annotated[str, flag("--max-rto", about="Promised recovery time.", metavar="DURATION")]
Directory = Annotated[Path, flag("--directory", about="Directory of the reports.", metavar="DIR")]
AsJson = Annotated[bool, setting("--json", about="Print the report as JSON.")]

REPORTS = Path("drills")
NO_LOSS = timedelta(0)


@app.command()
def node(
    rate: Rate = 100,
    calm: Calm = "5s",
    lease_ttl: Lease = "8s",
    max_rto: MaxRto = "15s",
    directory: Directory = REPORTS,
    as_json: AsJson = False,
) -> None:
    """Kill one of two nodes of a new cluster under load, and measure the recovery.

    Starts PostgreSQL and two nodes in a temporary directory, and removes them at the end. Writes DATE-node.md and .json. Exits with 1 if a promise was broken.
    """
    _drill("node", rate, calm, lease_ttl, max_rto, "0s", directory, as_json=as_json)


@app.command()
def primary(
    rate: Rate = 100,
    calm: Calm = "5s",
    lease_ttl: Lease = "8s",
    max_rto: MaxRto = "15s",
    asynchronous: Annotated[
        bool, flag("--asynchronous", about="Commits do not wait for the standby: work may be lost up to --max-rpo.")
    ] = False,
    max_rpo: Annotated[
        str, flag("--max-rpo", about="Promised recovery point with --asynchronous.", metavar="DURATION")
    ] = "1m",
    directory: Directory = REPORTS,
    as_json: AsJson = False,
) -> None:
    """Kill the primary of a new pair of PostgreSQL servers under load, promote its standby, and measure the recovery.

    Starts both servers and two nodes in a temporary directory, and removes them at the end. Writes DATE-primary.md and .json. Exits with 1 if a promise was broken.
    """
    point = max_rpo if asynchronous else "0s"
    _drill("primary", rate, calm, lease_ttl, max_rto, point, directory, asynchronous=asynchronous, as_json=as_json)


@app.command()
def standby(
    rate: Rate = 100,
    calm: Calm = "5s",
    lease_ttl: Lease = "8s",
    max_rto: MaxRto = "15s",
    directory: Directory = REPORTS,
    as_json: AsJson = False,
) -> None:
    """Kill the standby that commits wait for under load, let it return, and measure the recovery.

    Starts both servers and two nodes in a temporary directory, and removes them at the end. Writes DATE-standby.md and .json. Exits with 1 if a promise was broken.
    """
    _drill("standby", rate, calm, lease_ttl, max_rto, "0s", directory, as_json=as_json)


@app.command()
def zone(
    rate: Rate = 100,
    calm: Calm = "5s",
    lease_ttl: Lease = "8s",
    max_rto: MaxRto = "15s",
    directory: Directory = REPORTS,
    as_json: AsJson = False,
) -> None:
    """Kill the primary and one of two nodes of a new cluster under load, as the loss of their zone does, and measure the recovery.

    Starts both servers and two nodes in a temporary directory, and removes them at the end. Writes DATE-zone.md and .json. Exits with 1 if a promise was broken.
    """
    _drill("zone", rate, calm, lease_ttl, max_rto, "0s", directory, as_json=as_json)


def _drill(
    kind: str,
    rate: int,
    calm: str,
    lease_ttl: str,
    max_rto: str,
    max_rpo: str,
    directory: Path,
    *,
    asynchronous: bool = False,
    as_json: bool,
) -> None:
    import json  # noqa: PLC0415
    import logging  # noqa: PLC0415

    from horai.cli.drills.interrupts import run_until_told  # noqa: PLC0415
    from horai.cli.drills.kinds import DrillKind  # noqa: PLC0415
    from horai.cli.drills.outcome import DrillLimits  # noqa: PLC0415
    from horai.cli.drills.plan import DrillPlan  # noqa: PLC0415
    from horai.cli.drills.report import document, write  # noqa: PLC0415
    from horai.cli.drills.scene import run_drill  # noqa: PLC0415
    from horai.cli.errors import CommandFailed  # noqa: PLC0415
    from horai.cli.show import console, say, table  # noqa: PLC0415
    from horai.logs import write_to_stderr  # noqa: PLC0415

    write_to_stderr(logging.WARNING)
    limits = DrillLimits(duration("--max-rto", max_rto), duration("--max-rpo", max_rpo), may_lose=asynchronous)
    plan = DrillPlan(limits, rate, duration("--calm", calm), duration("--lease-ttl", lease_ttl), asynchronous)
    result = run_until_told(run_drill(DrillKind(kind), plan, say))
    made = write(result, directory)
    say(f"The report is {made}.")
    if as_json:
        print(json.dumps(document(result)))
    else:
        rows = [(p.text, p.limit, p.measured, "yes" if p.is_kept else "NO") for p in result.promises]
        console().print(table(("PROMISE", "LIMIT", "MEASURED", "KEPT"), rows))
    broken = [promise.text for promise in result.promises if not promise.is_kept]
    if broken:
        raise CommandFailed(f"The drill broke {len(broken)} promises: {', '.join(broken)}.", f"See {made}.")
