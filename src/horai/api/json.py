"""Rows as public JSON. Payloads and results pass through unchanged and unparsed."""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from fastapi import Response

from horai.core.callbacks import TRUNCATED
from horai.core.calls import millis
from horai.core.errors import Invalid
from horai.core.health import Reading, reading_from
from horai.core.masking import shown_target
from horai.core.shards import Duty, lease_name
from horai.db.instance_lists import Glimpse, InstancePage
from horai.db.instance_queries import LAST, InstanceRow
from horai.db.jobs import JobRow
from horai.db.key_history import FIRST, NO_SEQ, ChainEntry, Link
from horai.db.nodes import LostNode, NodeInfo
from horai.db.queues import QueueLoad, QueueRow
from horai.db.shards import ShardInfo
from horai.text import Hint, Wrong

_CURSOR = re.compile(r"(\d{1,18})\.(\d{1,19})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_STORE = {"Cache-Control": "no-store"}


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response that must not be cached."""
    return Response(msgspec.json.encode(content), status, {**NO_STORE, **(headers or {})}, "application/json")


def raw(text: str | None) -> msgspec.Raw | None:
    """Return JSON text for output without parsing it."""
    return None if text is None else msgspec.Raw(text.encode())


def job_json(job: JobRow) -> dict[str, Any]:
    """Return the JSON of a job."""
    return {
        "id": str(job.id),
        "misfire": "once",
        "overlap": "allow",
        "priority": job.priority.name,
        **job.document,
        "target": shown_target(job.document["target"]),
        "status": job.status.name,
        "payload": raw(job.payload),
        "payloadSize": job.payload_size,
        "note": job.note,
        "version": job.version,
        "createdAt": job.created_at,
        "updatedAt": job.updated_at,
    }


def instance_json(row: InstanceRow) -> dict[str, Any]:
    """Return the JSON of an instance, without its attempts."""
    return {
        "id": str(row.id),
        "job": row.job,
        "jobId": str(row.job_id),
        "key": row.key,
        "state": row.state.name,
        "reason": row.reason.name if row.reason else None,
        "fireTime": row.fire_time,
        "executeTime": row.execute_time,
        "due": row.due,
        "attempt": row.attempt,
        "retryCount": row.retry_count,
        "fence": row.fence,
        "queue": row.queue,
        "priority": row.priority.name,
        "payload": raw(row.payload),
        "payloadSize": row.payload_size,
        "result": None if row.result == TRUNCATED else raw(row.result),
        "resultTruncated": row.result == TRUNCATED,
        "errorCode": row.error_code,
        "errorMsg": row.error_msg,
        "createdAt": row.created_at,
        "startedAt": row.claimed_at,
        "finishedAt": row.finished_at,
        "node": row.node,
        "version": row.version,
        "supersedes": None if row.supersedes is None else str(row.supersedes),
        "replayOf": None if row.replay_of is None else str(row.replay_of),
        "idempotencyKey": row.idem_key,
    }


def glimpse_json(glimpse: Glimpse) -> dict[str, Any]:
    """Return the few fields of an instance that a list of jobs shows."""
    return {
        "id": str(glimpse.id),
        "state": glimpse.state.name,
        "fireTime": glimpse.fire_time,
        "startedAt": glimpse.started_at,
        "finishedAt": glimpse.finished_at,
    }


def nodes_json(live: Sequence[NodeInfo], leases: Sequence[ShardInfo]) -> list[dict[str, Any]]:
    """Return the JSON of the live nodes, each with the number of its shards."""
    held = Counter((lease.node, lease.duty) for lease in leases)
    return [{**_node_json(node), "shards": {d: held[node.incarnation, d] for d in Duty}} for node in live]


def shard_json(lease: ShardInfo) -> dict[str, Any]:
    """Return the JSON of a shard's lease."""
    return {
        "name": lease_name(lease.duty, lease.shard),
        "duty": lease.duty,
        "shard": lease.shard,
        "node": None if lease.node is None else str(lease.node),
        "nodeName": lease.node_name,
        "epoch": lease.epoch,
        "leaseUntil": lease.lease_until,
    }


def lost_node_json(node: LostNode) -> dict[str, Any]:
    """Return the JSON of a node that missed its lease."""
    return {
        "incarnation": str(node.incarnation),
        "name": node.name,
        "host": node.host,
        "pid": node.pid,
        "roles": node.roles,
        "startedAt": node.started_at,
        "leaseUntil": node.lease_until,
        "fencedAt": node.fenced_at,
        "rescuedAt": node.rescued_at,
    }


def _node_json(node: NodeInfo) -> dict[str, Any]:
    told = Reading() if node.vitals is None else reading_from(node.vitals, node.name)
    return {
        "incarnation": str(node.incarnation),
        "name": node.name,
        "host": node.host,
        "pid": node.pid,
        "version": node.version,
        "startedAt": node.started_at,
        "leaseUntil": node.lease_until,
        "roles": node.roles,
        "draining": node.is_draining,
        "inFlight": told.in_flight,
        "slots": told.slots,
        "handlers": told.handlers,
    }


def instance_page(page: InstancePage) -> dict[str, Any]:
    """Return the JSON of a page of instances. The cursor is null on the last page."""
    cursor = None if page.next is None else cursor_after(*page.next)
    return {"items": [instance_json(row) for row in page.rows], "nextCursor": cursor}


def cursor_after(at: datetime, id_: int) -> str:
    """Return the cursor of the page after this row, in a list by time and id."""
    return page_cursor(f"{_micros(at)}.{id_}")


def instance_cursor(cursor: str | None) -> tuple[datetime, int]:
    """Decode the cursor of a page of instances or dead letters. Raises `Invalid` for any other text."""
    if cursor is None:
        return LAST
    match = _CURSOR.fullmatch(decode_cursor(cursor))
    if match is None or int(match[2]) > LAST[1]:
        raise _bad_cursor()
    try:
        return _EPOCH + timedelta(microseconds=int(match[1])), int(match[2])
    except OverflowError as error:
        raise _bad_cursor() from error


def job_page(rows: Sequence[JobRow], limit: int) -> dict[str, Any]:
    """Return the JSON of a page of jobs."""
    cursor = page_cursor(str(rows[-1].id)) if len(rows) == limit else None
    return {"items": [job_json(row) for row in rows], "nextCursor": cursor}


def job_cursor(cursor: str | None) -> int:
    """Decode the cursor of a page of jobs or queues. Raises `Invalid` for any other text."""
    if cursor is None:
        return 0
    text = decode_cursor(cursor)
    if not re.fullmatch(r"\d{1,18}", text):
        raise _bad_cursor()
    return int(text)


def chain_page(entries: Sequence[ChainEntry], limit: int) -> dict[str, Any]:
    """Return the JSON of a page of a key's history."""
    last = entries[-1].link if len(entries) == limit else None
    cursor = None if last is None else page_cursor(f"{_micros(last.at)}.{last.instance_id}.{last.seq}")
    return {"items": [_chain_json(entry) for entry in entries], "nextCursor": cursor}


def _chain_json(entry: ChainEntry) -> dict[str, Any]:
    link = entry.link
    seq = None if link.seq == NO_SEQ else link.seq
    return {
        "at": link.at,
        "instanceId": str(link.instance_id),
        "seq": seq,
        "kind": entry.kind,
        "data": raw(entry.data),
    }


def chain_cursor(cursor: str | None) -> Link:
    """Decode the cursor of a page of a key's history: the page begins after this link."""
    if cursor is None:
        return FIRST
    match = re.fullmatch(r"(\d{1,18})\.(\d{1,18})\.(\d{1,10})", decode_cursor(cursor))
    if match is None or int(match[3]) > NO_SEQ:
        raise _bad_cursor()
    try:
        return Link(_EPOCH + timedelta(microseconds=int(match[1])), int(match[2]), int(match[3]))
    except OverflowError as error:
        raise _bad_cursor() from error


def queue_json(queue: QueueRow, load: QueueLoad) -> dict[str, Any]:
    """Return the JSON of a queue. With a limit, its permits give `running`; without one, its load does."""
    return {
        "name": queue.name,
        "priority": queue.settings.priority_in_force.name,
        "maxConcurrency": queue.settings.max_concurrency,
        "rate": str(queue.settings.rate) if queue.settings.rate else None,
        "paused": queue.settings.paused,
        "waiting": load.waiting,
        "running": load.running if queue.running is None else queue.running,
        "version": queue.version,
        "updatedAt": queue.updated_at,
    }


def queue_page(rows: Sequence[QueueRow], loads: Mapping[int, QueueLoad], limit: int) -> dict[str, Any]:
    """Return the JSON of a page of queues."""
    cursor = page_cursor(str(rows[-1].id)) if len(rows) == limit else None
    return {"items": [queue_json(row, loads.get(row.id, QueueLoad())) for row in rows], "nextCursor": cursor}


def without_nul(text: str) -> str:
    """Refuse a cursor with a NUL character, which PostgreSQL cannot store."""
    if "\x00" in text:
        raise _bad_cursor()
    return text


def _micros(instant: datetime) -> int:
    return millis(instant) * 1000 + instant.microsecond % 1000


def page_cursor(text: str) -> str:
    """Encode a position as a cursor."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, encoding: str = "ascii") -> str:
    """Decode a cursor that `page_cursor` made. Raises `Invalid` for any other text."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode(encoding)
    except (binascii.Error, ValueError) as error:
        raise _bad_cursor() from error


def _bad_cursor() -> Invalid:
    return Invalid.field("cursor", Wrong.NOT_OUR_CURSOR(), Hint.USE_NEXT_CURSOR())
