"""`horai tenants`: create, list, show, set, pause, resume, export, delete."""

from pathlib import Path
from typing import Annotated, Any

import typer

from horai.cli.client import client_of, path_of
from horai.cli.errors import refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag, words
from horai.cli.lazy import new_app
from horai.cli.output import stream_to
from horai.cli.show import show_fields, show_list
from horai.cli.views import Document, Pairs, instant

app = new_app("Tenants: create, change, pause, export and delete tenants.")

OF_THE_NODES = "the time of the nodes"
COLUMNS = ("NAME", "ID", "STATUS", "WEIGHT", "CREATED")
NONE = "none"
"""The value that removes a quota or a time."""
TIME_OR_NONE = "DURATION|none"
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
def show(
    name: Annotated[str | None, typer.Argument(help="A tenant's name; without it, the tenant of your key.")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show a tenant with its quotas and their use."""
    path = path_of("tenant") if name is None else path_of("tenants", name)
    show_fields(client_of(server, api_key).call("GET", path), as_json, _pairs)


@app.command("set")
def set_tenant(
    name: Name,
    weight: Annotated[
        int | None, flag("--weight", about="Turns of the tenant while other tenants have one.", metavar="N")
    ] = None,
    jobs: Annotated[str | None, flag("--jobs", about="Most jobs; none: no limit.", metavar="N|none")] = None,
    live_instances: Annotated[
        str | None, flag("--live-instances", about="Most live instances; none: no limit.", metavar="N|none")
    ] = None,
    enqueue_per_second: Annotated[
        str | None, flag("--enqueue-per-second", about="Most new instances per second.", metavar="N|none")
    ] = None,
    payload_bytes: Annotated[
        str | None, flag("--payload-bytes", about="Largest payload, in bytes; none: 1 MB.", metavar="N|none")
    ] = None,
    concurrency: Annotated[
        str | None, flag("--concurrency", about="Most instances that run at once; none: no limit.", metavar="N|none")
    ] = None,
    callback_network: Annotated[
        list[str] | None,
        flag(
            "--callback-network",
            about="Network that HTTP targets may be in; repeatable; none: public ones.",
            metavar="CIDR|none",
        ),
    ] = None,
    keep_history: Annotated[
        str | None,
        flag("--keep-history", about="Time to keep finished instances; none: that of the nodes.", metavar=TIME_OR_NONE),
    ] = None,
    keep_dead_letters: Annotated[
        str | None,
        flag("--keep-dead-letters", about="Time to keep dead letters; none: that of the nodes.", metavar=TIME_OR_NONE),
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Set the weight, the quotas and the retention of a tenant; settings without a flag stay as they are."""
    numbers = {
        "jobs": _number("--jobs", jobs),
        "liveInstances": _number("--live-instances", live_instances),
        "enqueuePerSecond": _number("--enqueue-per-second", enqueue_per_second),
        "payloadBytes": _number("--payload-bytes", payload_bytes),
        "concurrency": _number("--concurrency", concurrency),
    }
    networks = words(callback_network)
    given: dict[str, Any] = {**numbers, "callbackNetworks": NONE if networks == [NONE] else networks or None}
    quotas = {field: None if value == NONE else value for field, value in given.items() if value is not None}
    times = {"keepHistory": keep_history, "keepDeadLetters": keep_dead_letters}
    body: dict[str, Any] = {field: None if time == NONE else time for field, time in times.items() if time is not None}
    body |= ({} if weight is None else {"weight": weight}) | ({"quotas": quotas} if quotas else {})
    show_fields(client_of(server, api_key).call("PATCH", path_of("tenants", name), body), as_json, _pairs)


@app.command()
def pause(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Pause a tenant: none of its instances starts; running ones finish. Only the platform can resume it."""
    answer = client_of(server, api_key).call("POST", path_of("tenants", name, "pause"))
    show_fields(answer, as_json, _pairs)


@app.command()
def resume(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Resume a paused tenant."""
    answer = client_of(server, api_key).call("POST", path_of("tenants", name, "resume"))
    show_fields(answer, as_json, _pairs)


@app.command()
def delete(
    name: Name,
    confirm: Annotated[
        str | None, flag("--confirm", about="The name once more: all data of the tenant is deleted.", metavar="NAME")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Delete a paused tenant with all of its data, for good. Its audit log stays."""
    if confirm != name:
        refuse_flag("--confirm", f"repeat the name to delete all data of the tenant: --confirm {name}")
    answer = client_of(server, api_key).call("DELETE", path_of("tenants", name) + f"?confirm={name}")
    show_fields(answer, as_json, _pairs)


@app.command()
def export(
    output: Annotated[
        Path | None, flag("--output", "-o", about="File to write; it must not exist (stdout).", metavar="FILE")
    ] = None,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Write all data of your tenant as JSON lines; secret values are ***. Needs a key of its admin."""
    client = client_of(server, api_key)
    stream_to(output, lambda write: client.stream(path_of("export"), {}, write))


def _number(name: str, text: str | None) -> int | str | None:
    if text is None or text == NONE:
        return text
    if not text.isascii() or not text.isdigit():
        refuse_flag(name, f"{text!r} is neither a whole number nor none")
    return int(text)


def _row(tenant: Document) -> tuple[str, ...]:
    return (tenant["name"], tenant["id"], tenant["status"], str(tenant["weight"]), instant(tenant["createdAt"]))


def _pairs(tenant: Document) -> Pairs:
    pairs = [
        ("name", tenant["name"]),
        ("id", tenant["id"]),
        ("status", tenant["status"]),
        ("weight", str(tenant["weight"])),
        ("created", instant(tenant["createdAt"])),
    ]
    if "quotas" not in tenant:
        return pairs
    quotas, usage = tenant["quotas"], tenant["usage"]
    networks = quotas["callbackNetworks"]
    return [
        *pairs,
        ("jobs", _used(usage["jobs"], quotas["jobs"])),
        ("live instances", _used(usage["liveInstances"], quotas["liveInstances"])),
        ("running", _used(usage["running"], quotas["concurrency"])),
        ("new per second", _limit(quotas["enqueuePerSecond"])),
        ("payload bytes", _limit(quotas["payloadBytes"])),
        ("callback networks", "public" if networks is None else ", ".join(networks) or "none"),
        ("history kept for", tenant["keepHistory"] or OF_THE_NODES),
        ("dead letters kept for", tenant["keepDeadLetters"] or OF_THE_NODES),
    ]


def _used(now: int, most: int | None) -> str:
    return f"{now} of {_limit(most)}"


def _limit(most: int | None) -> str:
    return "no limit" if most is None else str(most)
