"""A node, and the other processes of `horai up`."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import structlog

from horai import engine_node
from horai.cli.archive_flags import archive_variables
from horai.cli.named_urls import BROKERS, SOURCES
from horai.cli.processes import ChildCommand, Processes
from horai.cli.serve import SLACK, Ready, serve
from horai.cli.trace_flags import trace_variables
from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.engine_node import NodeSettings
from horai.time.durations import format_duration

log = structlog.get_logger(__name__)

ROLES = (Role.scheduler, Role.executor)


def serve_node(
    settings: NodeSettings, children: Sequence[ChildCommand] = (), *, until_stdin_ends: bool = False
) -> None:
    """Run the node and the processes of `children`, and return when they have stopped cleanly."""
    grace = settings.engine.grace
    others = Processes(children, grace, stdout=sys.stderr.fileno())
    run = _run_with_api() if Role.api in settings.roles else engine_node.run
    serve(
        lambda stop, ready: run(settings, stop, ready, others),
        until_stdin_ends=grace + SLACK if until_stdin_ends else None,
    )


def _run_with_api() -> Callable[[NodeSettings, asyncio.Event, Ready, Processes], Coroutine[Any, Any, None]]:
    from horai.node import run  # noqa: PLC0415 - a node without the API does not wait for its imports

    return run


def further_nodes(settings: NodeSettings, count: int) -> Iterator[ChildCommand]:
    """Return the commands of `count` nodes without the API, on the database of the first node."""
    networks = ",".join(map(str, settings.engine.callback_allow))
    named = {SOURCES.variable(name): url for name, url in settings.sources.items()}
    named |= {BROKERS.variable(name): url for name, url in settings.engine.brokers.items()}
    files = {"KEY": settings.engine.audit_key_file, "HEADS": settings.engine.audit_heads_file}
    environment = {**named, **{f"HORAI_AUDIT_{name}_FILE": file for name, file in files.items() if file}}
    if settings.engine.audit_heads_url:
        environment["HORAI_AUDIT_HEADS_URL"] = settings.engine.audit_heads_url
    if settings.access.public_url:
        environment["HORAI_PUBLIC_URL"] = settings.access.public_url
    environment |= _encryption_keys(settings.engine) | trace_variables(settings.engine)
    times = {"--keep-history": settings.engine.history_keep, "--keep-dead-letters": settings.engine.dead_letter_keep}
    kept = [word for flag, time in times.items() for word in (flag, format_duration(time))]
    environment |= archive_variables(settings.engine)
    for number in range(2, count + 2):
        name = f"{settings.name}-{number}"
        roles = ("--roles", ",".join(ROLES), "--callback-allow", networks)
        yield ChildCommand(name, ("node", "--name", name, *_of_a_child(settings.engine), *roles, *kept), environment)


def workers(application: str, settings: NodeSettings, count: int) -> Iterator[ChildCommand]:
    """Return the commands of `count` workers. An application on an embedded database needs no name: it is the only one."""
    unnamed = () if settings.database_url else ("--may-be-unnamed",)
    for number in range(1, count + 1):
        name = f"{settings.name}-worker" + (f"-{number}" if count > 1 else "")
        words = ("worker", application, "--name", name, *unnamed, *_of_a_child(settings.engine))
        yield ChildCommand(name, words, _encryption_keys(settings.engine) | trace_variables(settings.engine))


def _encryption_keys(engine: EngineSettings) -> dict[str, str]:
    """Return the variables by which another process gets the same encryption keys. HORAI_ENCRYPTION_KEY is inherited."""
    given = {"FILE": engine.encryption_key_file, "COMMAND": engine.encryption_key_command}
    return {f"HORAI_ENCRYPTION_KEY_{kind}": value for kind, value in given.items() if value}


def _of_a_child(engine: EngineSettings) -> tuple[str, ...]:
    times = ("--lease-ttl", format_duration(engine.lease), "--grace", format_duration(engine.grace))
    return ("--until-stdin-ends", *times)
