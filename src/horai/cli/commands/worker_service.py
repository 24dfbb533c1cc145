"""The service of `horai worker`: the functions of an application, in this process or in several."""

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
    """Return the application and the URL of its database. Put the URL into the environment, for functions and children.

    The database is `told`, or else the one that the application's code or the environment names.
    """
    if told is not None:
        os.environ[URL] = require_url(told)
    app = load_app(reference)
    url = require_url(app.place)
    if (secret(URL, os.environ) or url) != url:
        raise BadUsage(
            f"The code of {app.title} names a database, and the worker was given another.",
            f"Leave one of them out: Horai(database_url=…), or --database-url and {URL}.",
        )
    os.environ[URL] = url
    return app, url


def working(app: Horai, settings: WorkerSettings) -> Service:
    """Return a service that runs the functions in this process."""
    with suppress(AttributeError):  # if there is no stdout
        cast("TextIOWrapper", sys.stdout).reconfigure(line_buffering=True)  # shows the output of functions at once
    return partial(run, app, settings)


def sharing(name: str, grace: timedelta, count: int, url: str) -> Service:
    """Return a service that keeps `count` processes running. Each process prints its own ready line."""
    commands = [like_this_one(f"{name}-{number}", "--processes", "1") for number in range(1, count + 1)]

    async def keep(stop: asyncio.Event, _: Ready) -> None:
        processes = Processes(commands, grace)
        processes.start(url)
        try:
            await stop.wait()
        finally:
            await processes.end()

    return keep
