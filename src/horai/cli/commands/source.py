"""`horai source`: nats, jsonl, and for parked events parked, retry, discard."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from horai.cli.errors import BadUsage, CommandFailed
from horai.cli.flags import AsJson, DatabaseUrl, DataDir, flag, setting, words
from horai.cli.lazy import new_app
from horai.cli.node_flags import UntilStdinEnds
from horai.db.database_location import choose_database, secret

app = new_app("Event sources: create, move and cancel instances from a stream.")

Job = Annotated[
    str | None, setting("--job", about="The job of all events; without it, each event names its job.", metavar="JOB")
]
Batch = Annotated[int, setting("--batch", about="Most changes in one transaction.", limits=(1, 2000))]
SourceName = Annotated[
    str | None, flag("--source", about="Only events of this source, such as nats:articles.", metavar="SOURCE")
]
Ids = Annotated[list[int] | None, typer.Argument(help="Ids from `horai source parked`.", metavar="[ID]…")]
DEFAULT_NATS = "nats://127.0.0.1:4222"


@app.command()
def nats(
    stream: Annotated[str, setting("--stream", about="Name of the stream.", metavar="STREAM")],
    subject: Annotated[
        str, setting("--subject", about="Subject of the messages; * and > are wildcards.", metavar="SUBJECT")
    ],
    url: Annotated[
        list[str] | None,
        setting(
            "--url",
            about=f"Servers; repeatable ({DEFAULT_NATS}). HORAI_NATS_URL_FILE may name a file that holds it.",
            metavar="URL",
            env="HORAI_NATS_URL",
        ),
    ] = None,
    job: Job = None,
    durable: Annotated[
        str | None, setting("--durable", about="Name of the consumer (made from the subject).", metavar="NAME")
    ] = None,
    create_stream: Annotated[bool, setting("--create-stream", about="Create the stream if it does not exist.")] = False,
    only_new: Annotated[
        bool, setting("--only-new", about="A new consumer starts with messages published from now on.")
    ] = False,
    batch: Batch = 500,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    until_stdin_ends: UntilStdinEnds = False,
) -> None:
    """Apply changes from a NATS JetStream stream.

    Each change takes effect once, even if it is delivered several times, and is acknowledged after the commit. Prints a line when it is ready, and stops cleanly on Ctrl-C and SIGTERM.
    """
    place = choose_database(database_url, data_dir, os.environ)
    servers = words(url) or words([secret("HORAI_NATS_URL", os.environ) or DEFAULT_NATS])

    from horai.cli.serve import SLACK, serve  # noqa: PLC0415
    from horai.features.events.intake import IntakeSettings  # noqa: PLC0415

    try:
        from horai.cli.commands.source_nats import taking_from_nats  # noqa: PLC0415
        from horai.features.events.nats import NatsSettings  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "nats":
            raise
        raise CommandFailed("NATS is an extra that is not installed.", "pip install 'horai[nats]'") from error

    consumer = NatsSettings(tuple(servers), stream, subject, durable, create_stream, only_new)
    service = taking_from_nats(place, consumer, IntakeSettings(job, batch))
    serve(service, until_stdin_ends=SLACK if until_stdin_ends else None)


@app.command()
def jsonl(
    file: Annotated[Path, typer.Argument(help="One change per line; - is stdin.", metavar="FILE")],
    job: Job = None,
    source: Annotated[
        str | None,
        flag(
            "--source",
            about="Name of this import: a line takes effect once per name (the file's name).",
            metavar="NAME",
        ),
    ] = None,
    batch: Batch = 500,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Apply changes from a file.

    Lines that cannot be read are parked; the others take effect. Prints a summary, and fails if a line was parked.
    """
    place = choose_database(database_url, data_dir, os.environ)
    if str(file) != "-" and not file.is_file():
        raise BadUsage(f"There is no file {str(file)!r}.", "Name one, or - for stdin.")

    from horai.cli.commands.source_file import take_lines  # noqa: PLC0415
    from horai.features.events.intake import IntakeSettings  # noqa: PLC0415

    asyncio.run(take_lines(place, file, source or file.name, IntakeSettings(job, batch)))


@app.command()
def parked(
    source: SourceName = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """List parked events, which could not take effect, oldest first."""
    from horai.cli.commands.source_file import show_parked  # noqa: PLC0415

    asyncio.run(show_parked(choose_database(database_url, data_dir, os.environ), source, as_json=as_json))


@app.command()
def retry(
    ids: Ids = None,
    source: SourceName = None,
    job: Job = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Retry parked events; those that take effect leave the list."""
    from horai.cli.commands.source_file import retry_parked  # noqa: PLC0415
    from horai.features.events.intake import IntakeSettings  # noqa: PLC0415

    place = choose_database(database_url, data_dir, os.environ)
    asyncio.run(retry_parked(place, source, ids, IntakeSettings(job)))


@app.command()
def discard(
    ids: Ids = None,
    reason: Annotated[
        str | None, flag("--reason", about="Reason; stored in the log of events.", metavar="TEXT")
    ] = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Discard parked events for good."""
    if not ids:
        raise BadUsage("Which events?", "Give their ids: `horai source parked` lists them.")
    from horai.cli.commands.source_file import discard_parked  # noqa: PLC0415

    asyncio.run(discard_parked(choose_database(database_url, data_dir, os.environ), ids, reason))
