"""Run a drill for a command: build its plan, run it until it ends or is interrupted, write and show the report."""

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from horai.cli.client import checked_address, client_of
from horai.cli.drills.existing import ExistingCluster, name_of, require_confirmation, run_existing_drill
from horai.cli.drills.interrupts import run_until_told
from horai.cli.drills.kinds import DrillKind
from horai.cli.drills.outcome import DrillLimits
from horai.cli.drills.patroni import LeadMove
from horai.cli.drills.plan import DrillPlan
from horai.cli.drills.report import document, write
from horai.cli.drills.scene import DrillResult, run_drill
from horai.cli.errors import CommandFailed, refuse_flag
from horai.cli.flags import duration
from horai.cli.show import console, say, table
from horai.logs import write_to_stderr

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class DrillFlags:
    """The flags of all drills, as they were given."""

    rate: int
    calm: str
    lease_ttl: str
    max_rto: str
    max_rpo: str
    directory: Path
    keep: int | None
    as_json: bool

    def plan(self, *, asynchronous: bool = False) -> DrillPlan:
        """Return the plan of the drill. Raises the parser's error for a duration that is none."""
        rto, rpo = duration("--max-rto", self.max_rto), duration("--max-rpo", self.max_rpo)
        calm, lease = duration("--calm", self.calm), duration("--lease-ttl", self.lease_ttl)
        return DrillPlan(DrillLimits(rto, rpo, may_lose=asynchronous), self.rate, calm, lease, asynchronous)


@dataclass(frozen=True, slots=True)
class ExistingFlags:
    """The flags that describe an existing cluster, as they were given."""

    patroni: Sequence[str]
    servers: Sequence[str]
    api_key: str | None
    kind: str | None
    confirm: str | None
    listen: str | None

    def cluster(self) -> ExistingCluster:
        """Return the cluster. Raises `BadUsage` for an address or a kind that is none."""
        kind = self.kind or LeadMove.SWITCHOVER
        if kind not in set(LeadMove):
            refuse_flag("--kind", f"{kind!r} is not switchover or failover")
        servers = [client_of(server, self.api_key) for server in self.servers]
        return ExistingCluster(
            tuple(map(checked_address, self.patroni)),
            tuple(client.server for client in servers),
            servers[0].api_key,
            self.listen or LOOPBACK,
            LeadMove(kind),
        )


def drill_new(kind: str, flags: DrillFlags, *, asynchronous: bool = False) -> None:
    """Run a drill on a cluster that it starts."""
    write_to_stderr(logging.WARNING)
    plan = flags.plan(asynchronous=asynchronous)
    _conclude(run_until_told(run_drill(DrillKind(kind), plan, say)), flags)


def drill_existing(given: ExistingFlags, flags: DrillFlags) -> None:
    """Run a drill on an existing cluster, after the operator has confirmed its name."""
    write_to_stderr(logging.WARNING)
    plan, cluster = flags.plan(), given.cluster()
    name, confirmed = asyncio.run(name_of(cluster)), given.confirm
    if confirmed is None and sys.stdin.isatty():
        confirmed = typer.prompt(f"The primary of {name} will move. Type the name of the cluster", err=True)
    require_confirmation(name, confirmed)
    _conclude(run_until_told(run_existing_drill(cluster, confirmed, plan, say)), flags)


def _conclude(result: DrillResult, flags: DrillFlags) -> None:
    """Write and show the report. Raises `CommandFailed` if a promise was broken."""
    made = write(result, flags.directory, flags.keep)
    say(f"The report is {made}.")
    if flags.as_json:
        print(json.dumps(document(result)))
    else:
        rows = [(p.text, p.limit, p.measured, "yes" if p.is_kept else "NO") for p in result.promises]
        console().print(table(("PROMISE", "LIMIT", "MEASURED", "KEPT"), rows))
    broken = [promise.text for promise in result.promises if not promise.is_kept]
    if broken:
        raise CommandFailed(f"The drill broke {len(broken)} promises: {', '.join(broken)}.", f"See {made}.")
