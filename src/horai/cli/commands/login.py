"""`horai login`: store the key of a server for the other commands."""

import os
import sys
from typing import Annotated

import msgspec
import typer

from horai.cli.client import RestClient, checked_address, path_of
from horai.cli.credentials import credentials_file, store_key
from horai.cli.errors import BadUsage
from horai.cli.flags import DEFAULT_SERVER, ApiKey, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import say

app = new_app()


@app.command()
def login(
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    remove: Annotated[bool, flag("--remove", about="Forget the key of this server instead.")] = False,
) -> None:
    """Store the address and the key of a server for the other commands.

    Asks for the key unless --api-key gives it, checks it with the server, and stores it in a file that only you can read.
    """
    address = checked_address(server)
    if remove:
        store_key(address, None)
        say(f"The key of {address} is forgotten.")
        return
    client = RestClient(address, _key(api_key))
    session = msgspec.json.decode(client.call("GET", path_of("session")))
    store_key(address, client.api_key)
    tenant = "" if session["tenant"] is None else f" of the tenant {session['tenant']}"
    say(f"Signed in to {address} as {session['role']}{tenant}; the key is in {credentials_file()}.")


def _key(given: str | None) -> str:
    key = given or os.environ.get("HORAI_API_KEY")
    if key is None and not sys.stdin.isatty():
        key = sys.stdin.readline().strip()
    elif key is None:
        key = typer.prompt("Key", hide_input=True, err=True).strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise BadUsage("The key is empty, or has characters that are not printable ASCII.", "Give --api-key.")
    return key
