"""`horai keys`: create, list, revoke."""

import asyncio
import os
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import (
    DEFAULT_SERVER,
    ApiKey,
    AsJson,
    DatabaseUrl,
    DataDir,
    Everything,
    Limit,
    Server,
    duration,
    flag,
    words,
)
from horai.cli.lazy import new_app
from horai.cli.show import print_json, say, show_answer, show_list
from horai.cli.views import Document, instant
from horai.core.roles import AccessRole
from horai.db.database_location import choose_database

app = new_app("Keys: create, list and revoke the keys of the server.")

COLUMNS = ("ID", "NAME", "ROLE", "TENANT", "CREATED", "EXPIRES", "LAST USED", "REVOKED")


@app.command()
def create(
    role: Annotated[
        AccessRole, flag("--role", about="What the key may do.", metavar="viewer|operator|admin|worker|platform-admin")
    ] = AccessRole.ADMIN,
    tenant: Annotated[
        str | None, flag("--tenant", about="Tenant of the key (that of your own key).", metavar="TENANT")
    ] = None,
    name: Annotated[str | None, flag("--name", about="Name by which lists show it.", metavar="NAME")] = None,
    network: Annotated[
        list[str] | None, flag("--network", about="Network that may use the key; repeatable.", metavar="CIDR")
    ] = None,
    expires_in: Annotated[
        str | None, flag("--expires-in", about="Time after which the key ends, such as 90d.", metavar="DURATION")
    ] = None,
    in_database: Annotated[
        bool, flag("--in-database", about="Write the key to the database itself, without a server.")
    ] = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a key and print it, this once.

    The first key closes the server to requests without one. With --in-database, --database-url or --data-dir the key is written to the database itself: for the first key, or when every key is lost.
    """
    wish: dict[str, Any] = {"role": role, "tenant": tenant, "name": name, "networks": words(network) or None}
    if expires_in is not None:
        wish["expiresAt"] = (datetime.now(UTC) + duration("--expires-in", expires_in)).isoformat()
    body = {field: value for field, value in wish.items() if value is not None}
    if in_database or database_url is not None or data_dir is not None:
        from horai.cli.key_in_database import create_key  # noqa: PLC0415

        answer = asyncio.run(create_key(choose_database(database_url, data_dir, os.environ), body))
    else:
        answer = client_of(server, api_key).call("POST", path_of("keys"), body)
    show_answer(answer, as_json, _print_key)


def _print_key(key: Document) -> None:
    print(key["key"])
    tenant = "" if key["tenant"] is None else f" of the tenant {key['tenant']}"
    say(f"This is the key {key['id']} with the role {key['role']}{tenant}. It is not shown again.")


@app.command("list")
def list_keys(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List keys, newest first: those of your tenant, or with a key of the platform those of every tenant."""
    answer = client_of(server, api_key).page(path_of("keys"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="The id of a key.")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Revoke a key. Every node refuses it within a second."""
    answer = client_of(server, api_key).call("DELETE", path_of("keys", key))
    if as_json:
        print_json(answer)
    else:
        say(f"The key {key} is revoked.")


def _row(key: Document) -> tuple[str, ...]:
    times = (key["createdAt"], key["expiresAt"], key["lastUsedAt"], key["revokedAt"])
    return (key["id"], key["name"], key["role"], key["tenant"] or "-", *map(instant, times))
