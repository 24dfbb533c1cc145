"""What `horai worker` serves: the functions of an application, here or shared by several processes."""

import asyncio
import os
import sys
from contextlib import suppress
from datetime import timedelta
from functools import partial
from io import TextIOWrapper
from typing import cast

from horai.cli.application import load_app
from horai.cli.errors import BadUsage
from horai.cli.processes import Processes, like_this_one
from horai.cli.references import Reference
from horai.cli.serve import Ready, Service
from horai.db.database_location import DatabaseLocation, secret
from horai.embedded.visit import require_url
from horai.sdk.app import Horai
from horai.sdk.worker import WorkerSettings, run

URL = "HORAI_DATABASE_URL"


def application_on(told: DatabaseLocation | None, reference: Reference) -> tuple[Horai, str]:
    """The application, and the URL of its database; from here on the environment names it, for functions and children.

    The database is the one that was told, or else the one that the application's code, or the environment, names.
    """
    if told is not None:
        os.environ[URL] = require_url(told)
    app = load_app(reference)
    url = require_url(app.place)
    if (secret(URL, os.environ) or url) != url:
        raise BadUsage(
            f"The code of {app.title} names a database, and the worker was told another.",
            f"Leave one of them out: Horai(database_url=…), or --database-url and {URL}.",
        )
    os.environ[URL] = url
    return app, url


def working(app: Horai, settings: WorkerSettings) -> Service:
    """Runs the functions in this process."""
    with suppress(AttributeError):  # where there is no stdout
        cast("TextIOWrapper", sys.stdout).reconfigure(line_buffering=True)  # what functions print is seen at once
    return partial(run, app, settings)


def sharing(name: str, grace: timedelta, count: int, url: str) -> Service:
    """Keeps `count` processes running, each of which says itself when it is ready."""
    commands = [like_this_one(f"{name}-{number}", "--processes", "1") for number in range(1, count + 1)]

    async def keep(stop: asyncio.Event, _: Ready) -> None:
        processes = Processes(commands, grace)
        processes.start(url)
        try:
            await stop.wait()
        finally:
            await processes.end()

    return keep
