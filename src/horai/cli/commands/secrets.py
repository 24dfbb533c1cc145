"""`horai secrets`: list, rotate, names, set, delete."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.errors import BadUsage
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import print_json, say, show_list
from horai.cli.views import Document, instant

app = new_app("Secrets: rotate the secrets that sign calls; set and delete named secrets of headers.")

COLUMNS = ("ID", "SECRET", "CREATED", "EXPIRES")
NAMED_COLUMNS = ("NAME", "VERSION", "CREATED", "UPDATED")

Name = Annotated[str, typer.Argument(help="The name of a secret.")]


@app.command("list")
def list_secrets(as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """List the valid signing secrets, newest first. Receivers verify with any of them."""
    answer = client_of(server, api_key).call("GET", path_of("signing-secrets"))
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def rotate(
    expire_old: Annotated[
        str | None,
        flag(
            "--expire-old",
            about="Time for which the old secrets also sign (24h); 0s ends them now.",
            metavar="DURATION",
        ),
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a new signing secret. The old ones also sign for another 24 hours."""
    body = {} if expire_old is None else {"expireOld": expire_old}
    answer = client_of(server, api_key).call("POST", path_of("signing-secrets"), body)
    show_list(answer, as_json, COLUMNS, _row)


def _row(secret: Document) -> tuple[str, ...]:
    return (secret["id"], secret["secret"], instant(secret["createdAt"]), instant(secret["expiresAt"]))


@app.command()
def names(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the named secrets, without their values."""
    answer = client_of(server, api_key).page(path_of("secrets"), {"limit": limit}, everything)
    show_list(answer, as_json, NAMED_COLUMNS, _named_row)


@app.command("set")
def set_secret(
    name: Name,
    file: Annotated[Path, flag("--file", about="File with the value; - is stdin.", metavar="FILE")] = Path("-"),
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a named secret, or replace its value, which is read from stdin or a file.

    One line break at its end is left out. Targets send it in a header as {"secret": "NAME"}.
    """
    answer = client_of(server, api_key).call("PUT", path_of("secrets", name), {"value": _value_in(file)})
    if as_json:
        print_json(answer)
    else:
        say(f"The secret {name} is stored.")


@app.command()
def delete(
    name: Name,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Delete a named secret that no job uses."""
    answer = client_of(server, api_key).call("DELETE", path_of("secrets", name))
    if as_json:
        print_json(answer)
    else:
        say(f"The secret {name} is deleted.")


def _value_in(file: Path) -> str:
    try:
        text = (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadUsage(f"{file} cannot be read: {reason}.") from error
    return text.removesuffix("\n").removesuffix("\r")


def _named_row(secret: Document) -> tuple[str, ...]:
    return (secret["name"], str(secret["version"]), instant(secret["createdAt"]), instant(secret["updatedAt"]))
