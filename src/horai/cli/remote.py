"""`horai worker --server`: the functions of an application, run for a server."""

import os
from datetime import timedelta
from functools import partial
from pathlib import Path

from horai.cli.application import load_app
from horai.cli.client import checked_address
from horai.cli.credentials import stored_key
from horai.cli.errors import BadUsage
from horai.cli.references import Reference
from horai.cli.serve import Service
from horai.db.database_location import secret
from horai.sdk.remote_worker import RemoteSettings, run


def require_alone(database_url: str | None, data_dir: Path | None, *, is_reloading: bool, processes: int) -> None:
    """Raise `BadUsage` for flags that do not go with --server."""
    if database_url is not None or data_dir is not None:
        raise BadUsage("A worker with --server uses no database.", "Leave out --database-url and --data-dir.")
    if is_reloading:
        raise BadUsage("--reload does not go with --server.", "Leave out one of them.")
    if processes > 1:
        raise BadUsage("--processes does not go with --server.", "Start as many workers as you need.")


def remote_service(
    reference: Reference,
    servers: list[str],
    key: tuple[str | None, Path | None],
    slots: tuple[int, int | None],
    queues: frozenset[str] | None,
    name: str,
    grace: timedelta,
) -> Service:
    """Return a service that runs the functions for one of the servers. `slots`: calls at once, and isolated processes."""
    addresses = [checked_address(server) for server in servers]
    concurrency, isolated = slots
    settings = RemoteSettings(
        addresses,
        _api_key(*key, addresses[0]),
        concurrency,
        queues,
        isolated or os.cpu_count() or 1,
        str(reference),
        name,
        grace,
    )
    return partial(run, load_app(reference), settings)


def _api_key(given: str | None, file: Path | None, address: str) -> str | None:
    """Return the key of the flags, the environment or `horai login`; None if there is none."""
    if given is not None and file is not None:
        raise BadUsage("--api-key and --api-key-file name two keys.", "Leave out one of them.")
    if file is not None:
        try:
            given = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadUsage(f"The key cannot be read from {file}: {error}.", "Check --api-key-file.") from error
    key = given or secret("HORAI_API_KEY", os.environ) or stored_key(address)
    if key is not None and not (key.isascii() and key.isprintable()):
        raise BadUsage("The API key has characters that are not printable ASCII.", "Check --api-key-file.")
    return key
