"""A node, and the other processes of `horai up`."""

import sys
from collections.abc import Iterator, Sequence

import structlog

from horai.cli.node_flags import source_variable
from horai.cli.processes import Command, Processes
from horai.cli.serve import SLACK, Ready, serve
from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.node import KEYLESS, NodeSettings, run
from horai.time.durations import format_duration

log = structlog.get_logger(__name__)

ROLES = (Role.scheduler, Role.executor)


def serve_node(settings: NodeSettings, company: Sequence[Command] = (), *, until_stdin_ends: bool = False) -> None:
    """Run the node and the processes of `company`, and return when they have stopped cleanly."""
    grace = settings.engine.grace
    others = Processes(company, grace, stdout=sys.stderr.fileno())

    def announced(ready: Ready) -> Ready:
        def told(what: str) -> None:
            ready(what)
            if Role.api in settings.roles:
                log.warning(KEYLESS)

        return told

    serve(
        lambda stop, ready: run(settings, stop, announced(ready), others),
        until_stdin_ends=grace + SLACK if until_stdin_ends else None,
    )


def further_nodes(settings: NodeSettings, count: int) -> Iterator[Command]:
    """Return the commands of `count` nodes without the API, on the database of the first node."""
    networks = ",".join(map(str, settings.engine.callback_allow))
    sources = {source_variable(source): url for source, url in settings.sources.items()}
    for number in range(2, count + 2):
        name = f"{settings.name}-{number}"
        roles = ("--roles", ",".join(ROLES), "--callback-allow", networks)
        yield Command(name, ("node", "--name", name, *_of_a_child(settings.engine), *roles), sources)


def workers(application: str, settings: NodeSettings, count: int) -> Iterator[Command]:
    """Return the commands of `count` workers. An application on an embedded database needs no name: it is the only one."""
    unnamed = () if settings.database_url else ("--may-be-unnamed",)
    for number in range(1, count + 1):
        name = f"{settings.name}-worker" + (f"-{number}" if count > 1 else "")
        yield Command(name, ("worker", application, "--name", name, *unnamed, *_of_a_child(settings.engine)))


def _of_a_child(engine: EngineSettings) -> tuple[str, ...]:
    times = ("--lease-ttl", format_duration(engine.lease), "--grace", format_duration(engine.grace))
    return ("--until-stdin-ends", *times)
