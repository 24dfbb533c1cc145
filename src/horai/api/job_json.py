"""Jobs as public JSON."""

from typing import Any

from horai.core.masking import shown_target
from horai.db.jobs import JobRow
from horai.wire.fields import raw_json


def job_json(job: JobRow) -> dict[str, Any]:
    """Return the JSON of a job (`JobOut`).

    It is a dict because most of its fields are those of the stored document: in the order in which the user wrote
    them, and absent if the user did not.
    """
    return {
        "id": str(job.id),
        "misfire": "once",
        "overlap": "allow",
        "priority": job.priority.name,
        **job.document,
        "target": shown_target(job.document["target"]),
        "status": job.status.name,
        "payload": None if job.payload is None else raw_json(job.payload),
        "payloadSize": job.payload_size,
        "encrypted": job.is_encrypted,
        "searchPaths": list(job.search_paths),
        "note": job.note,
        "version": job.version,
        "createdAt": job.created_at,
        "updatedAt": job.updated_at,
    }
