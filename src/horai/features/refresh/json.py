"""Entities as public JSON."""

from collections.abc import Sequence
from typing import Any

from horai.api.json import decode_cursor, page_cursor, raw, without_nul
from horai.features.refresh.store import EntityRow


def entity_json(entity: EntityRow) -> dict[str, Any]:
    """Return an entity."""
    return {
        "id": str(entity.id),
        "key": entity.key,
        "status": entity.status.name,
        "startTime": entity.start_time,
        "finishTime": entity.finish_time,
        "refreshedAt": entity.fresh_at,
        "remark": entity.remark,
        "batchNo": None if entity.batch_no is None else str(entity.batch_no),
        "instanceId": None if entity.instance_id is None else str(entity.instance_id),
        "payload": raw(entity.payload),
        "payloadSize": entity.payload_size,
        "createTime": entity.create_time,
        "updateTime": entity.update_time,
    }


def entity_page(rows: Sequence[EntityRow], limit: int) -> dict[str, Any]:
    """Return a page of entities."""
    cursor = page_cursor(rows[-1].key) if len(rows) == limit else None
    return {"items": [entity_json(row) for row in rows], "nextCursor": cursor}


def entity_cursor(cursor: str | None) -> str:
    """Return the key after which a page of entities begins."""
    return "" if cursor is None else without_nul(decode_cursor(cursor, "utf-8"))
