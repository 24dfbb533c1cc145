"""`horai jobs create`: a definition from flags, from a file, or from a file with flags laid over it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from horai.cli import views
from horai.cli.client import client_of, path_of
from horai.cli.documents import Members, payload_of, read_document
from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Payload, Server, flag, words
from horai.cli.show import console, fields, print_json

Text = str | None
_SHOWN_HEADER = "write it as 'Name: value'"


def create(
    name: Annotated[Text, typer.Argument(help="The job's name, for good.")] = None,
    file: Annotated[Path | None, flag("--file", "-f", about="JSON definition; - is stdin.", metavar="FILE")] = None,
    cron: Annotated[Text, flag("--cron", about="5 fields, or Quartz with 6 or 7.", metavar="EXPRESSION")] = None,
    every: Annotated[Text, flag("--every", about="A fixed pace, such as 10m.", metavar="DURATION")] = None,
    at: Annotated[Text, flag("--at", about="Once, such as 2026-11-15T09:00:00+08:00.", metavar="TIME")] = None,
    delay: Annotated[Text, flag("--delay", about="Once, this long from now.", metavar="DURATION")] = None,
    timezone: Annotated[Text, flag("--timezone", about="IANA zone of the cron (UTC).", metavar="ZONE")] = None,
    url: Annotated[Text, flag("--url", about="HTTP target.", metavar="URL")] = None,
    method: Annotated[Text, flag("--method", about="Its method (POST).", metavar="METHOD")] = None,
    header: Annotated[list[str] | None, flag("--header", about="'Name: value', repeatable.", metavar="HEADER")] = None,
    handler: Annotated[Text, flag("--handler", about="Worker target (the job's name).", metavar="NAME")] = None,
    payload: Payload = None,
    queue: Annotated[Text, flag("--queue", about="Its queue (default).", metavar="QUEUE")] = None,
    priority: Annotated[Text, flag("--priority", about="core, high, normal or low.", metavar="PRIORITY")] = None,
    max_retry: Annotated[int | None, flag("--max-retry", about="Retries after a failure (5).", metavar="N")] = None,
    timeout: Annotated[Text, flag("--timeout", about="Of one attempt (5s for HTTP).", metavar="DURATION")] = None,
    tag: Annotated[list[str] | None, flag("--tag", about="Repeatable.", metavar="TAG")] = None,
    idempotency_key: Annotated[Text, flag("--idempotency-key", about="Makes a repeat safe.", metavar="KEY")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a job, by flags or from a file; flags win over the file."""
    if name is None and file is None:
        raise BadUsage("A job needs a name.", "horai jobs create NAME, or -f FILE with one in it.")
    target = _given(url=url, method=method and method.upper(), headers=_headers(header), handler=handler)
    flags = _given(name=name, cron=cron, every=every, at=at, delay=delay, timezone=timezone, queue=queue)
    flags |= _given(priority=priority, timeout=timeout, tags=words(tag) or None)
    document = {**(read_document(file) if file else {}), **flags, **payload_of(payload)}
    document |= _laid_over(document, "target", target and {"type": "worker" if handler else "http", **target})
    document |= _laid_over(document, "retry", _given(maxRetry=max_retry))
    once = {"Idempotency-Key": idempotency_key} if idempotency_key else None
    answer = client_of(server, api_key).call("POST", path_of("jobs"), document, once)
    if as_json:
        print_json(answer)
    else:
        console().print(fields(views.job_fields(json.loads(answer))))


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _laid_over(document: Mapping[str, Any], name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The member `name` with what was given by flags, if anything was."""
    if not given:
        return {}
    try:
        written = msgspec.json.decode(document[name], type=Members) if name in document else {}
    except msgspec.DecodeError as error:
        raise BadUsage(f"{name} in the file is no JSON object.") from error
    return {name: {**written, **given}}


def _headers(given: list[str] | None) -> dict[str, str] | None:
    headers: dict[str, str] = {}
    for text in given or ():
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            refuse_flag("--header", f"{text!r}: {_SHOWN_HEADER}")
        headers[name.strip()] = value.strip()
    return headers or None
