"""`horai tenants`: create, list, show."""

from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server
from horai.cli.lazy import new_app
from horai.cli.show import show_fields, show_list
from horai.cli.views import Document, Pairs, instant

app = new_app("Tenants: create and list tenants.")

COLUMNS = ("NAME", "ID", "CREATED")
Name = Annotated[str, typer.Argument(help="A tenant's name.")]


@app.command()
def create(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Create a tenant. `horai keys create --tenant NAME` creates its first key."""
    answer = client_of(server, api_key).call("POST", path_of("tenants"), {"name": name})
    show_fields(answer, as_json, _pairs)


@app.command("list")
def list_tenants(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List tenants by name."""
    answer = client_of(server, api_key).page(path_of("tenants"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def show(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show one tenant."""
    show_fields(client_of(server, api_key).call("GET", path_of("tenants", name)), as_json, _pairs)


def _row(tenant: Document) -> tuple[str, ...]:
    return (tenant["name"], tenant["id"], instant(tenant["createdAt"]))


def _pairs(tenant: Document) -> Pairs:
    return [("name", tenant["name"]), ("id", tenant["id"]), ("created", instant(tenant["createdAt"]))]
