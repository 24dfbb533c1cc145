"""`horai up`: everything in one process."""

import os
from ipaddress import ip_address
from typing import Annotated

from horai.cli.environment import choose_database
from horai.cli.errors import refuse_flag
from horai.cli.flags import DatabaseUrl, DataDir, duration, flag, words
from horai.cli.lazy import new_app
from horai.core.addresses import Network, parse_networks
from horai.core.settings import EngineSettings

app = new_app()

LOOPBACK = ("127.0.0.0/8", "::1/128")


@app.command()
def up(
    port: Annotated[int, flag("--port", about="0 takes any free one.", limits=(0, 65535))] = 8470,
    host: Annotated[str, flag("--host", about="Address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    callback_allow: Annotated[
        list[str] | None,
        flag("--callback-allow", about="Private network that callbacks may reach; repeatable.", metavar="CIDR"),
    ] = None,
    lease_ttl: Annotated[
        str, flag("--lease-ttl", about="How long a silent node keeps its work.", metavar="DURATION")
    ] = "8s",
    grace: Annotated[
        str, flag("--grace", about="How long running calls may take to end at a stop.", metavar="DURATION")
    ] = "10s",
    name: Annotated[str | None, flag("--name", about="This node's name (the host's).", metavar="NAME")] = None,
) -> None:
    """Run everything in one process.

    That is: embedded database (unless there is a URL), migrations, API, scheduler and HTTP executor. Prints the console's address when it is ready, and stops cleanly on Ctrl-C and SIGTERM.
    """
    lease, patience = duration("--lease-ttl", lease_ttl), duration("--grace", grace)
    if not lease:
        refuse_flag("--lease-ttl", "a lease of no time cannot be kept")
    place = choose_database(database_url, data_dir, os.environ)
    engine = EngineSettings(lease=lease, grace=patience, callback_allow=_allowed(words(callback_allow), host))

    from horai.cli.serving import serve  # noqa: PLC0415
    from horai.db.embedded import default_data_dir  # noqa: PLC0415
    from horai.node import NodeSettings  # noqa: PLC0415

    named = {"name": name} if name else {}
    serve(NodeSettings(place.data_dir or default_data_dir(), host, port, place.url, engine=engine, **named))


def _allowed(given: list[str], host: str) -> tuple[Network, ...]:
    """The operator's networks; on loopback also loopback, where the services of a laptop are."""
    try:
        return parse_networks([*given, *(LOOPBACK if _is_loopback(host) else ())])
    except ValueError as error:
        refuse_flag("--callback-allow", str(error))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
