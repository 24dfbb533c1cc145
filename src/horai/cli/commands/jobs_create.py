"""`horai jobs create`: a definition from flags, from a file, or from a file with flags that override it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from horai.cli import time_flags, views
from horai.cli.client import client_of, path_of
from horai.cli.documents import Members, payload_of, read_document
from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Payload, Server, flag, words
from horai.cli.show import show_fields
from horai.cli.time_flags import Text, given

_SHOWN_HEADER = "write it as 'Name: value'"


def create(
    name: Annotated[Text, typer.Argument(help="The job's name, which never changes.")] = None,
    file: Annotated[Path | None, flag("--file", "-f", about="JSON definition; - is stdin.", metavar="FILE")] = None,
    cron: time_flags.Cron = None,
    dialect: time_flags.Dialect = None,
    every: time_flags.Every = None,
    every_from: time_flags.EveryFrom = None,
    anchor: time_flags.Anchor = None,
    at: Annotated[Text, flag("--at", about="Once, such as 2026-11-15T09:00:00+08:00.", metavar="TIME")] = None,
    delay: Annotated[Text, flag("--delay", about="Once, after this time from now.", metavar="DURATION")] = None,
    timezone: time_flags.Timezone = None,
    dst_gap: time_flags.DstGap = None,
    dst_overlap: time_flags.DstOverlap = None,
    calendar: time_flags.Calendar = None,
    on_holiday: time_flags.OnHoliday = None,
    start_at: time_flags.StartAt = None,
    end_at: time_flags.EndAt = None,
    jitter: time_flags.Jitter = None,
    misfire: time_flags.Misfire = None,
    max_catchup: time_flags.MaxCatchup = None,
    catchup_window: time_flags.CatchupWindow = None,
    misfire_after: time_flags.MisfireAfter = None,
    overlap: time_flags.Overlap = None,
    refresh: time_flags.Refresh = None,
    refresh_limit: time_flags.RefreshLimit = None,
    run_on_add: time_flags.RunOnAdd = None,
    url: Annotated[Text, flag("--url", about="HTTP target.", metavar="URL")] = None,
    method: Annotated[Text, flag("--method", about="HTTP method (POST).", metavar="METHOD")] = None,
    header: Annotated[list[str] | None, flag("--header", about="'Name: value', repeatable.", metavar="HEADER")] = None,
    batch_size: Annotated[
        int | None, flag("--batch-size", about="Instances per HTTP call; the target answers for each.", metavar="N")
    ] = None,
    handler: Annotated[Text, flag("--handler", about="Worker target (the job's name).", metavar="NAME")] = None,
    broker: Annotated[
        Text, flag("--broker", about="NATS target: broker that the operator named.", metavar="NAME")
    ] = None,
    subject: Annotated[Text, flag("--subject", about="Subject of a JetStream stream.", metavar="SUBJECT")] = None,
    settle_on: Annotated[
        Text, flag("--settle-on", about="stored (default) or reported by the consumer.", metavar="WORD")
    ] = None,
    payload: Payload = None,
    queue: Annotated[Text, flag("--queue", about="Queue (default).", metavar="QUEUE")] = None,
    priority: Annotated[Text, flag("--priority", about="core, high, normal or low.", metavar="PRIORITY")] = None,
    max_retry: Annotated[int | None, flag("--max-retry", about="Retries after a failure (5).", metavar="N")] = None,
    max_lost: Annotated[
        int | None, flag("--max-lost", about="Most attempts lost with their nodes (20).", metavar="N")
    ] = None,
    timeout: Annotated[
        Text, flag("--timeout", about="Timeout of one attempt (5s for HTTP).", metavar="DURATION")
    ] = None,
    concurrency_per_key: Annotated[
        int | None,
        flag("--concurrency-per-key", about="Instances with one concurrency key that run at once (1).", metavar="N"),
    ] = None,
    produces: Annotated[
        list[str] | None, flag("--produces", about="Asset that a success updates; repeatable.", metavar="ASSET")
    ] = None,
    when: Annotated[
        list[str] | None,
        flag("--when", about="Start when all of these assets were updated; repeatable.", metavar="ASSET"),
    ] = None,
    when_any: Annotated[
        list[str] | None,
        flag("--when-any", about="Start when any of these assets was updated; repeatable.", metavar="ASSET"),
    ] = None,
    tag: Annotated[list[str] | None, flag("--tag", about="Tag; repeatable.", metavar="TAG")] = None,
    title: Annotated[Text, flag("--title", about="Title in any language.", metavar="TEXT")] = None,
    description: Annotated[Text, flag("--description", about="Description for people.", metavar="TEXT")] = None,
    owner: Annotated[Text, flag("--owner", about="Person or team to ask.", metavar="TEXT")] = None,
    encrypted: Annotated[
        bool | None, flag("--encrypted", about="Encrypt payloads, results, error texts and notes; never changes.")
    ] = None,
    search_path: Annotated[
        list[str] | None,
        flag("--search-path", about="Field of encrypted payloads to search by; repeatable.", metavar="PATH"),
    ] = None,
    keep_history: Annotated[
        Text, flag("--keep-history", about="Time to keep finished instances (the tenant's).", metavar="DURATION")
    ] = None,
    keep_dead_letters: Annotated[
        Text, flag("--keep-dead-letters", about="Time to keep dead letters (the tenant's).", metavar="DURATION")
    ] = None,
    idempotency_key: Annotated[Text, flag("--idempotency-key", about="Makes a repeat safe.", metavar="KEY")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a job from flags or from a file; flags override the file."""
    if name is None and file is None:
        raise BadUsage("A job needs a name.", "horai jobs create NAME, or -f FILE with one in it.")
    target = given(url=url, method=method and method.upper(), headers=_headers(header), handler=handler)
    target |= given(broker=broker, subject=subject, settleOn=settle_on, batch=batch_size and {"size": batch_size})
    flags = given(cron=cron, dialect=dialect, every=every, everyFrom=every_from, anchor=anchor, at=at, delay=delay)
    flags |= given(
        timezone=timezone, calendar=time_flags.calendar_of(calendar, on_holiday), startAt=start_at, endAt=end_at
    )
    flags |= given(misfire=time_flags.misfire_of(misfire, max_catchup, catchup_window), misfireAfter=misfire_after)
    flags |= given(jitter=jitter, overlap=overlap, name=name, queue=queue, priority=priority, timeout=timeout)
    flags |= given(tags=words(tag) or None, encrypted=encrypted, searchPaths=search_path or None)
    flags |= given(concurrencyPerKey=concurrency_per_key, produces=produces or None, when=_when(when, when_any))
    flags |= given(title=title, description=description, owner=owner)
    flags |= given(keepHistory=keep_history, keepDeadLetters=keep_dead_letters)
    document = {**(read_document(file) if file else {}), **flags, **payload_of(payload)}
    document |= _laid_over(document, "target", target and {"type": _type_of(target), **target})
    document |= _laid_over(document, "retry", given(maxRetry=max_retry, maxLost=max_lost))
    document |= _laid_over(document, "refresh", given(window=refresh, limit=refresh_limit, runOnAdd=run_on_add))
    document |= _laid_over(document, "dst", given(gap=dst_gap, overlap=dst_overlap))
    once = {"Idempotency-Key": idempotency_key} if idempotency_key else None
    answer = client_of(server, api_key).call("POST", path_of("jobs"), document, once)
    show_fields(answer, as_json, views.job_fields)


def _when(every: list[str] | None, either: list[str] | None) -> list[str] | dict[str, list[str]] | None:
    """Return the assets to wait for as the document names them. Both flags together are refused by the server."""
    if not either:
        return every or None
    return {"any": either, **({"all": every} if every else {})}


def _type_of(target: Mapping[str, Any]) -> str:
    if "handler" in target:
        return "worker"
    return "nats" if {"broker", "subject", "settleOn"}.intersection(target) else "http"


def _laid_over(document: Mapping[str, Any], name: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the member `name` of the document with `flags` over it, or no member without flags."""
    if not flags:
        return {}
    try:
        written = msgspec.json.decode(document[name], type=Members) if name in document else {}
    except msgspec.DecodeError as error:
        raise BadUsage(f"{name} in the file is not a JSON object.") from error
    return {name: {**written, **flags}}


def _headers(written: list[str] | None) -> dict[str, str] | None:
    headers: dict[str, str] = {}
    for text in written or ():
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            refuse_flag("--header", f"{text!r}: {_SHOWN_HEADER}")
        headers[name.strip()] = value.strip()
    return headers or None
