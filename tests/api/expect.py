"""Checks on responses and tables."""

from typing import Any

from harness import Reply

from horai.db.pool import Platform

TABLES = (
    "job",
    "instance_live",
    "instance_history",
    "attempt",
    "event",
    "dead_letter",
    "idempotency_key",
    "schedule",
    "skip",
    "lane",
    "tenant",
    "backfill",
    "backfill_instance",
)
OF_A_JOB = ("instance_live", "instance_history", "attempt", "event", "dead_letter")


def problem(reply: Reply, status: int, code: str, *words: str) -> Any:
    """A problem as RFC 9457 and the contract want it, whose detail or hint has these words."""
    assert reply.status == status, reply
    assert reply.headers["content-type"] == "application/problem+json"
    told = reply.json
    assert told["status"] == status
    assert told["code"] == code
    assert told["type"]
    assert told["title"]
    assert told["detail"]
    text = f"{told['detail']} {told.get('hint', '')}"
    for word in words:
        assert word in text, text
    return told


def invalid(reply: Reply, *words: str) -> Any:
    """The problem of a request that makes no sense."""
    return problem(reply, 422, "SCH_422_INVALID", *words)


async def contents(db: Platform, job: Any = None) -> dict[str, list[str]]:
    """Every row that the API may write; with `job` only what belongs to it."""
    found: dict[str, list[str]] = {}
    for table in TABLES if job is None else OF_A_JOB:
        mine = "" if job is None else f" where job_id = {int(job['id'])}"
        rows = await db.fetch(f"select t::text as row from horai.{table} t{mine} order by 1")
        found[table] = [row["row"] for row in rows]
    return found
