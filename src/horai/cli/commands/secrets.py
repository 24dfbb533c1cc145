"""`horai secrets`: list, rotate."""

from typing import Annotated

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import show_list
from horai.cli.views import Document, instant

app = new_app("Signing secrets: list and rotate the secrets that sign calls.")

COLUMNS = ("ID", "SECRET", "CREATED", "EXPIRES")


@app.command("list")
def list_secrets(as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """List the valid secrets, newest first. Receivers verify with any of them."""
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
    """Create a new secret. The old ones also sign for another 24 hours."""
    body = {} if expire_old is None else {"expireOld": expire_old}
    answer = client_of(server, api_key).call("POST", path_of("signing-secrets"), body)
    show_list(answer, as_json, COLUMNS, _row)


def _row(secret: Document) -> tuple[str, ...]:
    return (secret["id"], secret["secret"], instant(secret["createdAt"]), instant(secret["expiresAt"]))
