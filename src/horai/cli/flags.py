"""The flags that several commands share.

A setting describes the environment: where a server is, how a process works, what output is read by. It has an
environment variable, HORAI_<FLAG>. A flag says what one call is about (a filter, a time, a payload); it has none, so that
a variable such as HORAI_QUEUE, which belongs to another program, does not change the result.
"""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from horai.cli.errors import refuse_flag
from horai.time.durations import parse_duration

DEFAULT_SERVER = "http://127.0.0.1:8470"


def flag(*names: str, about: str, metavar: str | None = None, limits: tuple[int, int] | None = None) -> Any:
    """Make an option of one call, without an environment variable."""
    low, high = limits or (None, None)
    return typer.Option(*names, help=about, metavar=metavar, min=low, max=high)


def setting(
    name: str, *, about: str, metavar: str | None = None, env: str | None = None, limits: tuple[int, int] | None = None
) -> Any:
    """Make an option with an environment variable, which is named after it unless `env` names it."""
    low, high = limits or (None, None)
    variable = env or "HORAI_" + name.removeprefix("--").replace("-", "_").upper()
    return typer.Option(name, help=about, metavar=metavar, envvar=variable, min=low, max=high)


Server = Annotated[str, setting("--server", about="The server to talk to.", metavar="URL")]
ApiKey = Annotated[
    str | None,
    setting("--api-key", about="The key to show it; HORAI_API_KEY_FILE may name a file that holds it.", metavar="KEY"),
]
AsJson = Annotated[bool, setting("--json", about="Print the server's answer as JSON.")]
Limit = Annotated[int | None, flag("--limit", about="How many at most; with --all, per request.", limits=(1, 500))]
Everything = Annotated[bool, flag("--all", about="Follow the list to its end.")]
Payload = Annotated[str | None, flag("--payload", about="JSON that the target receives.", metavar="JSON")]

# These two are not read by typer: `places.choose_database` weighs flags and variables against each other.
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
    """The duration given to the flag `name`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        refuse_flag(name, str(error))


def words(given: Iterable[str] | None) -> list[str]:
    """The values of a repeated flag, which may also hold several, with commas or spaces between them."""
    return [word for text in given or () for word in text.replace(",", " ").split()]
