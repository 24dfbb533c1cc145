"""`horai node`: one more process on a database that others may work on too."""

import os
from socket import gethostname
from typing import Annotated

from horai.cli.errors import BadUsage
from horai.cli.flags import DatabaseUrl, setting, words
from horai.cli.lazy import new_app
from horai.cli.node_flags import (
    CallbackAllow,
    Grace,
    Host,
    LeaseTtl,
    LogFormat,
    LogLevel,
    Name,
    Port,
    Sources,
    UntilStdinEnds,
    chosen_roles,
    chosen_sources,
    engine_settings,
    set_log,
)
from horai.db.places import choose_database

app = new_app()


@app.command()
def node(
    database_url: DatabaseUrl = None,
    name: Name = None,
    port: Port = 8470,
    host: Host = "127.0.0.1",
    roles: Annotated[
        str, setting("--roles", about="What it is there for; without `api` it does not listen.", metavar="ROLES")
    ] = "api,scheduler,executor",
    lease_ttl: LeaseTtl = "8s",
    grace: Grace = "10s",
    callback_allow: CallbackAllow = None,
    source: Sources = None,
    until_stdin_ends: UntilStdinEnds = False,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    """Run one node of a cluster.

    Nodes are equal: any number of them may work on one database, and share its shards among themselves. Prints a line when it is ready, and stops cleanly on Ctrl-C and SIGTERM.
    """
    set_log(log_level, log_format)
    chosen = chosen_roles(roles)
    engine = engine_settings(lease_ttl, grace, words(callback_allow))
    sources = chosen_sources(source, os.environ)
    url = choose_database(database_url, None, os.environ).url
    if url is None:
        raise BadUsage("A node needs a database.", "Give --database-url, or set HORAI_DATABASE_URL.")

    from horai.cli.company import serve_node  # noqa: PLC0415
    from horai.db.embedded import default_data_dir  # noqa: PLC0415
    from horai.node import NodeSettings  # noqa: PLC0415

    settings = NodeSettings(default_data_dir(), host, port, url, name or gethostname(), engine, chosen, sources=sources)
    serve_node(settings, until_stdin_ends=until_stdin_ends)
