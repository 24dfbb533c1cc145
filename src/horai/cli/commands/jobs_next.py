"""`horai jobs next`: the upcoming fires of a job, as a table."""

import json
from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server, flag
from horai.cli.show import console, print_json, say, table
from horai.cli.views import Document, instant

Count = Annotated[int | None, flag("--count", about="Number of fires (10).", metavar="N", limits=(1, 1_000))]
From = Annotated[str | None, flag("--from", about="Start of the list (now).", metavar="TIME")]


def next_(
    job: Annotated[str, typer.Argument(help="A job's name or id.")],
    count: Count = None,
    from_: From = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show the next fires of a job, in UTC and in the time of its zone."""
    wish = {"count": count, "from": from_}
    print_fires(client_of(server, api_key).page(path_of("jobs", job, "next"), wish, everything=False), as_json)


def print_fires(answer: bytes, as_json: bool) -> None:
    """Print the upcoming fires to stdout, and the note about the job to stderr."""
    if as_json:
        print_json(answer)
        return
    told: Document = json.loads(answer)
    if told["fires"]:
        is_put_off = any("executeTime" in fire for fire in told["fires"])
        columns = ("FIRE TIME", "LOCAL", *(("RUNS AT",) if is_put_off else ()), "NOTE")
        console().print(table(columns, [_row(fire, is_put_off=is_put_off) for fire in told["fires"]]))
    else:
        say("None.")
    if told.get("note"):
        say(told["note"])


def _row(fire: Document, *, is_put_off: bool) -> tuple[str, ...]:
    runs_at = (instant(fire.get("executeTime"), exact=True),) if is_put_off else ()
    return (instant(fire["fireTime"]), fire["local"], *runs_at, fire["note"] or "")
