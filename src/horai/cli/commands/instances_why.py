"""`horai instances why`: the verdict on one instance, and everything in its way."""

import json
from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server
from horai.cli.show import console, fields, print_json, table

COLUMNS = ("HOLD", "DETAILS")


def why(
    instance: Annotated[str, typer.Argument(help="An instance's id.")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Explain why an instance does not run; if it runs or has ended, say how it went."""
    answer = client_of(server, api_key).call("GET", path_of("instances", instance, "why"))
    if as_json:
        print_json(answer)
        return
    told, out = json.loads(answer), console()
    found = told["instance"]
    rows = [("instance", found["id"]), ("job", found["job"]), ("state", found["state"])]
    out.print(fields([*rows, ("verdict", told["verdict"]), ("why", told["why"])]))
    if told["holds"]:
        out.print()
        out.print(table(COLUMNS, ((hold["kind"], hold["detail"]) for hold in told["holds"])))
