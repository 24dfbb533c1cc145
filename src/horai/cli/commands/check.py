"""`horai check`: validate an application before deploying it."""

import asyncio
from typing import Annotated

from horai.cli.flags import DatabaseUrl, setting
from horai.cli.lazy import new_app
from horai.cli.node_flags import Application
from horai.cli.references import parse_reference

app = new_app()


@app.command()
def check(
    application: Application,
    database_url: DatabaseUrl = None,
    as_json: Annotated[bool, setting("--json", about="Print the findings as JSON.")] = False,
) -> None:
    """Validate an application before deploying it.

    Imports the application, checks every job, and shows the changes that a deploy would make to the database of the URL, or to that of a running `horai up`. Writes nothing. Exits with 1 if there is a problem.
    """
    from horai.cli.application import load_app  # noqa: PLC0415
    from horai.cli.commands.check_report import report  # noqa: PLC0415
    from horai.cli.commands.check_survey import survey  # noqa: PLC0415
    from horai.db.urls import plain_url  # noqa: PLC0415
    from horai.embedded.visit import url_if_running  # noqa: PLC0415

    found = load_app(parse_reference(application))
    url = plain_url(database_url) if database_url else url_if_running(found.place)
    report(asyncio.run(survey(found, url)), as_json=as_json)
