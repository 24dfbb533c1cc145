"""`horai recover`: recover the cluster after an incident."""

from typing import Annotated

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import show_fields
from horai.cli.views import Document, Pairs, instant

app = new_app("Recover the cluster after an incident.")


@app.command()
def recover(
    incident: Annotated[str, flag("--incident", about="The id of the incident.", metavar="ID")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Recover the cluster after an incident.

    Frees the shards of dead nodes, sends the events of the last 15 minutes to all sinks again, and runs up to 5,000 dead letters with the tag transient_error again. It takes effect once for an incident: a repeated call shows the first result.
    """
    answer = client_of(server, api_key).call("POST", path_of("recover"), {"incident": incident})
    show_fields(answer, as_json, _pairs)


def _pairs(recovery: Document) -> Pairs:
    return [
        ("status", recovery["status"]),
        ("incident", recovery["incident"]),
        ("shards resumed", str(recovery["resumed"])),
        ("events replayed", str(recovery["replayed"])),
        ("dead letters requeued", str(recovery["dlqMoved"])),
        ("completed", instant(recovery["completedAt"])),
    ]
