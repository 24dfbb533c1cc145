"""`horai groups`: create, list, delete."""

from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import say, show_answer, show_fields, show_list
from horai.cli.views import Document, Pairs, instant
from horai.core.roles import AccessRole

app = new_app("Groups: the roles of users who sign in with an identity provider.")

COLUMNS = ("ID", "GROUP", "ROLE", "TENANT", "CREATED")


@app.command()
def create(
    group: Annotated[str, typer.Argument(help="A group of the provider, as its ID tokens name it.")],
    role: Annotated[
        AccessRole,
        flag("--role", about="What its users may do.", metavar="viewer|operator|admin|platform-admin"),
    ] = AccessRole.VIEWER,
    tenant: Annotated[
        str | None, flag("--tenant", about="Tenant of the role; platform-admin has none.", metavar="TENANT")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Give the users of a group a role in a tenant, or that of the platform."""
    wish = {"group": group, "role": role, "tenant": tenant}
    body = {name: value for name, value in wish.items() if value is not None}
    show_fields(client_of(server, api_key).call("POST", path_of("groups"), body), as_json, _pairs)


@app.command("list")
def list_groups(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the roles of groups, newest first."""
    answer = client_of(server, api_key).page(path_of("groups"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def delete(
    mapping: Annotated[str, typer.Argument(help="The id of a role of a group.", metavar="ID")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Take a role from a group. Sessions that rest on it end within a second."""
    show_answer(client_of(server, api_key).call("DELETE", path_of("groups", mapping)), as_json, _say_deleted)


def _say_deleted(mapping: Document) -> None:
    place = f"the tenant {mapping['tenant']}" if mapping["tenant"] else "the platform"
    say(f"The group {mapping['group']} no longer has the role {mapping['role']} in {place}.")


def _row(mapping: Document) -> tuple[str, ...]:
    tenant = mapping["tenant"] or "-"
    return (mapping["id"], mapping["group"], mapping["role"], tenant, instant(mapping["createdAt"]))


def _pairs(mapping: Document) -> Pairs:
    tenant = ("tenant", mapping["tenant"] or "-")
    return [("group", mapping["group"]), ("id", mapping["id"]), ("role", mapping["role"]), tenant]
