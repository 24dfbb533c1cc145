"""The flags that several commands share.

A setting describes the environment, such as the server, the process or the output format. It has an
environment variable, HORAI_<FLAG>. A flag describes one call (a filter, a time, a payload); it has no variable, so that
a variable such as HORAI_QUEUE, which belongs to another program, does not change the result.
"""

import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from horai.cli.errors import BadUsage, refuse_flag
from horai.time.durations import parse_duration

DEFAULT_SERVER = "http://127.0.0.1:8470"


def flag(*names: str, about: str, metavar: str | None = None, limits: tuple[int, int] | None = None) -> Any:
    """Return an option of one call, without an environment variable."""
    low, high = limits or (None, None)
    return typer.Option(*names, help=about, metavar=metavar, min=low, max=high)


def setting(
    name: str, *, about: str, metavar: str | None = None, env: str | None = None, limits: tuple[int, int] | None = None
) -> Any:
    """Return an option with an environment variable: `env`, or one named after the option."""
    low, high = limits or (None, None)
    variable = env or "HORAI_" + name.removeprefix("--").replace("-", "_").upper()
    return typer.Option(name, help=about, metavar=metavar, envvar=variable, min=low, max=high)


Server = Annotated[str, setting("--server", about="Address of the server.", metavar="URL")]
ApiKey = Annotated[
    str | None,
    setting(
        "--api-key", about="API key of the server; HORAI_API_KEY_FILE may name a file that holds it.", metavar="KEY"
    ),
]
AsJson = Annotated[bool, setting("--json", about="Print the server's response as JSON.")]
Limit = Annotated[
    int | None, flag("--limit", about="Maximum number of items; with --all, per request.", limits=(1, 500))
]
Everything = Annotated[bool, flag("--all", about="Read all pages of the list.")]
Count = Annotated[bool, flag("--count", about="Print only how many match.")]
Payload = Annotated[str | None, flag("--payload", about="JSON that the target receives.", metavar="JSON")]
Yes = Annotated[bool, flag("--yes", "-y", about="Do not ask for confirmation.")]
IdempotencyKey = Annotated[
    str | None, flag("--idempotency-key", about="Makes a repeat safe (a new UUID).", metavar="KEY")
]

# typer does not read the variables of these two: `choose_database` decides between flags and variables.
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        help="PostgreSQL to use. [env var: HORAI_DATABASE_URL, HORAI_DATABASE_URL_FILE, DATABASE_URL]", metavar="URL"
    ),
]
DataDir = Annotated[
    Path | None, typer.Option(help="Directory of the embedded database. [env var: HORAI_DATA_DIR]", metavar="DIR")
]


def duration(name: str, text: str) -> timedelta:
    """Parse the duration given to the flag `name`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        refuse_flag(name, str(error))


def confirm_deletion(kind: str, name: str) -> None:
    """Ask whether to delete a job or a workflow. Raise `BadUsage` if stdin is not a terminal."""
    if not sys.stdin.isatty():
        raise BadUsage(f"Deleting {name} needs confirmation, and stdin is not a terminal.", "Add --yes.")
    typer.confirm(f"Delete the {kind} {name} and cancel its waiting instances?", abort=True, err=True)


def words(given: Iterable[str] | None) -> list[str]:
    """Return the values of a repeated flag. One value may hold several, separated by commas or spaces."""
    return [word for text in given or () for word in text.replace(",", " ").split()]
