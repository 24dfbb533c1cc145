"""`horai keyring`: status, rotate, erase."""

import asyncio
import os
import sys
from typing import Annotated, Any

import typer

from horai.cli.errors import BadUsage
from horai.cli.flags import DatabaseUrl, DataDir, Yes, setting
from horai.cli.lazy import new_app
from horai.cli.node_flags import EncryptionKeyCommand, EncryptionKeyFile
from horai.db.database_location import choose_database

app = new_app("Encryption keys: count, rotate and erase the data keys of a database.")

COLUMNS = ("KEY", "DATA KEYS", "SINCE", "GIVEN")
AsJson = Annotated[bool, setting("--json", about="Print the result as JSON.")]


@app.command()
def status(
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    encryption_key_file: EncryptionKeyFile = None,
    encryption_key_command: EncryptionKeyCommand = None,
    as_json: AsJson = False,
) -> None:
    """Count the data keys by the key that wraps them, and tell which of these keys are given."""
    from horai.cli.keyring_in_database import count_keys, given_keyring  # noqa: PLC0415

    place = choose_database(database_url, data_dir, os.environ)
    keyring = given_keyring(place, encryption_key_file, encryption_key_command)
    _show(asyncio.run(count_keys(place, keyring)), as_json)


@app.command()
def rotate(
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    encryption_key_file: EncryptionKeyFile = None,
    encryption_key_command: EncryptionKeyCommand = None,
    as_json: AsJson = False,
) -> None:
    """Wrap all data keys again under the first of the given keys.

    Give the new key before the old one, on every node first, then here. Afterwards the old key is no longer needed. No sealed value is written again.
    """
    from horai.cli.keyring_in_database import given_keyring, rotate_keys  # noqa: PLC0415
    from horai.cli.show import say  # noqa: PLC0415

    place = choose_database(database_url, data_dir, os.environ)
    keyring = given_keyring(place, encryption_key_file, encryption_key_command)
    count, left = asyncio.run(rotate_keys(place, keyring))
    if not as_json:
        say(f"{count} data keys were wrapped again.")
    _show(left, as_json)


@app.command()
def erase(
    tenant: Annotated[str, typer.Argument(help="The name of a tenant.")],
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    yes: Yes = False,
) -> None:
    """Delete all data keys of a tenant: its sealed values can never be read again, in no backup either."""
    from horai.cli.keyring_in_database import erase_keys  # noqa: PLC0415
    from horai.cli.show import say  # noqa: PLC0415

    if not yes:
        if not sys.stdin.isatty():
            raise BadUsage(
                f"Erasing the keys of {tenant} needs confirmation, and stdin is not a terminal.", "Add --yes."
            )
        typer.confirm(
            f"Erase the data keys of the tenant {tenant}, and with them all its secrets?", abort=True, err=True
        )
    count = asyncio.run(erase_keys(choose_database(database_url, data_dir, os.environ), tenant))
    say(f"{count} data keys of the tenant {tenant} are erased. Running nodes have forgotten them within 5 seconds.")


def _show(counts: list[dict[str, Any]], as_json: bool) -> None:
    from horai.cli.show import console, print_json, table  # noqa: PLC0415

    if as_json:
        import json  # noqa: PLC0415

        print_json(json.dumps({"items": counts}).encode())
        return
    rows = (
        (one["key"], str(one["dataKeys"]), one["since"] or "-", "yes" if one["isGiven"] else "no") for one in counts
    )
    console().print(table(COLUMNS, rows))
