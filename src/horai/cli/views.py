"""Jobs, instances and health as rows and fields of text."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

Document = Mapping[str, Any]
Pairs = list[tuple[str, str]]

JOB_COLUMNS = ("NAME", "STATUS", "SCHEDULE", "TARGET", "QUEUE", "PRIORITY", "TAGS")
INSTANCE_COLUMNS = ("ID", "JOB", "KEY", "STATE", "EXECUTE TIME", "ATTEMPT", "FAILURES", "ERROR")
ATTEMPT_COLUMNS = ("ATTEMPT", "OUTCOME", "PROGRESS", "STARTED", "FINISHED", "ERROR")
LOG_COLUMNS = ("AT", "ATTEMPT", "PROGRESS", "LEVEL", "MESSAGE")
EVENT_COLUMNS = ("AT", "WHAT", "DATA")
NODE_COLUMNS = ("NODE", "HOST", "PID", "VERSION", "STARTED", "LEASE UNTIL")


def instant(text: str | None, *, exact: bool = False) -> str:
    """Format an instant in UTC, to the second, or to the millisecond if `exact`."""
    if text is None:
        return ""
    moment = datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds" if exact else "seconds") + "Z"


def job_row(job: Document) -> tuple[str, ...]:
    """Return a job on one line, as in `JOB_COLUMNS`."""
    shown = (job["name"], job["status"], schedule_text(job), _target(job["target"]), job["queue"], job["priority"])
    return (*shown, ", ".join(job["tags"]))


def job_fields(job: Document) -> Pairs:
    """Return all fields of a job except the values of its headers, which may be secret."""
    retry = job["retry"]
    return [
        ("name", job["name"]),
        *((field, job[field]) for field in ("title", "description", "owner") if job.get(field)),
        ("id", job["id"]),
        ("status", job["status"]),
        ("note", job["note"] or ""),
        ("schedule", schedule_text(job)),
        *_time_fields(job),
        ("target", _target(job["target"])),
        ("headers", ", ".join(job["target"].get("headers") or ())),
        ("payload", _json(job["payload"])),
        ("payload schema", _json(job.get("payloadSchema"))),
        ("declared by", job.get("declaredBy") or ""),
        ("queue", job["queue"]),
        ("priority", job["priority"]),
        ("retry", f"{retry['maxRetry']} times, from {retry['base']} up to {retry['cap']}, jitter {retry['jitter']}"),
        ("most losses", str(retry["maxLost"])),
        ("timeout", job["timeout"] or "none"),
        *((("per key", str(job["concurrencyPerKey"])),) if job.get("concurrencyPerKey") else ()),
        ("tags", ", ".join(job["tags"])),
        *([("encrypted", "yes")] if job.get("encrypted") else []),
        *([("search paths", ", ".join(job["searchPaths"]))] if job.get("searchPaths") else []),
        *([("history kept for", job["keepHistory"])] if job.get("keepHistory") else []),
        *([("dead letters kept for", job["keepDeadLetters"])] if job.get("keepDeadLetters") else []),
        ("version", str(job["version"])),
        ("created", instant(job["createdAt"])),
        ("updated", instant(job["updatedAt"])),
    ]


def instance_row(instance: Document) -> tuple[str, ...]:
    """Return an instance on one line, as in `INSTANCE_COLUMNS`."""
    return (
        instance["id"],
        instance["job"],
        instance["key"] or "",
        instance["state"],
        instant(instance["executeTime"]),
        str(instance["attempt"]),
        str(instance["retryCount"]),
        instance["errorCode"] or "",
    )


def instance_fields(instance: Document) -> Pairs:
    """Return the fields of an instance without its attempts and its timeline."""
    return [
        ("id", instance["id"]),
        ("job", instance["job"]),
        ("key", instance["key"] or ""),
        ("state", instance["state"]),
        ("reason", instance["reason"] or ""),
        ("fire time", instant(instance["fireTime"])),
        ("execute time", instant(instance["executeTime"])),
        ("attempt", str(instance["attempt"])),
        ("failures", str(instance["retryCount"])),
        ("lost", str(instance.get("lostCount") or "")),
        ("fence", str(instance["fence"])),
        ("queue", instance["queue"]),
        ("priority", instance["priority"]),
        *((("concurrency key", instance["concurrencyKey"]),) if instance.get("concurrencyKey") else ()),
        *((("expires at", instance["expiresAt"]),) if instance.get("expiresAt") else ()),
        ("payload", _json(instance["payload"])),
        ("result", _json(instance["result"])),
        ("error", _error(instance)),
        ("progress", _percent(instance.get("progress"))),
        ("started", instant(instance["startedAt"], exact=True)),
        ("finished", instant(instance["finishedAt"], exact=True)),
        ("node", instance["node"] or ""),
        ("version", "" if instance["version"] is None else str(instance["version"])),
        ("supersedes", instance["supersedes"] or ""),
        ("replay of", instance["replayOf"] or ""),
        ("trace", instance.get("traceId") or ""),
    ]


def attempt_row(attempt: Document) -> tuple[str, ...]:
    """Return an attempt on one line, as in `ATTEMPT_COLUMNS`."""
    outcome = f"{attempt['outcome']} (late)" if attempt["late"] else attempt["outcome"]
    started, finished = instant(attempt["startedAt"], exact=True), instant(attempt["finishedAt"], exact=True)
    return (str(attempt["attempt"]), outcome, _percent(attempt["progress"]), started, finished, _error(attempt))


def log_rows(attempts: Iterable[Document]) -> list[tuple[str, ...]]:
    """Return the log lines of these attempts, as in `LOG_COLUMNS`."""
    return [
        (
            instant(line["at"], exact=True),
            str(attempt["attempt"]),
            _percent(line["progress"]),
            line.get("level", ""),
            line["message"],
        )
        for attempt in attempts
        for line in attempt["log"]
    ]


def event_row(event: Document) -> tuple[str, ...]:
    """Return an entry of a timeline, as in `EVENT_COLUMNS`."""
    return (instant(event["at"], exact=True), event["kind"], _json(event["data"]))


def health_fields(health: Document) -> Pairs:
    """Return the fields of the scheduler's health."""
    delays = "/".join(f"{health[f'triggerDelayP{share}Ms']:g}" for share in (50, 95, 99))
    return [
        ("status", health["status"]),
        *(("reason", reason["text"]) for reason in health["reasons"]),
        ("modes", ", ".join(health["modes"])),
        ("trigger delay", f"{delays} ms (p50/p95/p99)"),
        ("success rate", f"{health['runSuccessRate10m']:.2%} (10 min)"),
        ("retry backlog", str(health["retryBacklog"])),
        ("dead letters", f"{health['dlqGrowthPerMin']} (last min)"),
        ("in flight", str(health["inFlight"])),
        ("unsettled", str(health["unsettled"])),
        ("late results", str(health["lateResults"])),
        ("actions", " ".join(action["text"] for action in health["actions"])),
        ("overdue loops", ", ".join(health["overdueLoops"])),
        *(("held host", _held_host(held)) for held in health["heldHosts"]),
        *_last_backup(health.get("lastBackup")),
        *(("read replica", _read_replica(replica)) for replica in health.get("readReplicas", ())),
        ("version", health["version"]),
        *(("notice", notice) for notice in health["notices"]),
    ]


def _read_replica(replica: Document) -> str:
    lag = "" if replica["lag"] is None else f", lag {replica['lag']:.1f} s"
    return f"{replica['host']}{lag}{'' if replica['used'] else ', not used: ' + replica['problem']}"


def _last_backup(backup: Document | None) -> Pairs:
    """Return the last backup and the last failure after it; nothing if there was never one."""
    if backup is None:
        return []
    made = [("last backup", f"{instant(backup['successAt'])} in {backup['path']}")] if backup["successAt"] else []
    failed = [("backup failed", f"{instant(backup['failedAt'])}: {backup['error']}")] if backup["failedAt"] else []
    return [*made, *failed]


def _held_host(held: Document) -> str:
    since, next_try = instant(held["since"]), instant(held["nextTry"])
    return f"{held['host']} of {held['tenant']} on {held['node']}: {held['state']} since {since}, next try {next_try}"


def node_row(node: Document) -> tuple[str, ...]:
    """Return a live node on one line, as in `NODE_COLUMNS`."""
    times = (instant(node["startedAt"]), instant(node["leaseUntil"]))
    return (node["name"], node["host"], str(node["pid"]), node["version"], *times)


def holders_text(clog: Document) -> str:
    """Return the ids of the instances that hold the slots of a queue."""
    return ", ".join(run["id"] for run in clog["holders"])


def cause_text(cause: Document) -> str:
    """Return a root cause on one line."""
    error = f": {cause['errorCode']}" if cause["errorCode"] else ""
    return f"{cause['node']} (instance {cause['instanceId']}){error}"


def schedule_text(job: Document) -> str:
    if job.get("cron"):
        return f"cron {job['cron']} ({job.get('timezone') or 'UTC'})"
    if job.get("at"):
        return f"at {instant(job['at'])}"
    if job.get("everyFrom") == "finish":
        return f"{job['every']} after each run"
    return next((f"{field} {job[field]}" for field in ("every", "delay") if job.get(field)), "none")


def _calendar_fields(calendar: Document | list[str] | None) -> Pairs:
    if isinstance(calendar, dict):
        return [("calendar", calendar["name"]), ("on holiday", calendar["onHoliday"])]
    return [("excluded", ", ".join(calendar or ()))]


def _time_fields(job: Document) -> Pairs:
    """Return the other fields of a schedule that are not the default."""
    dst: Document = job.get("dst") or {}
    misfire = job.get("misfire") or "once"
    late = [misfire] if isinstance(misfire, str) else [f"{name} {value}" for name, value in misfire.items() if value]
    return [
        ("dst", ", ".join(f"{name} {word}" for name, word in dst.items() if word)),
        ("anchor", instant(job.get("anchor"))),
        *_calendar_fields(job.get("calendar")),
        ("starts", instant(job.get("startAt"))),
        ("ends", instant(job.get("endAt"))),
        ("jitter", job.get("jitter") or ""),
        ("misfire", "" if misfire == "once" else ", ".join(late)),
        ("late after", job.get("misfireAfter") or ""),
        ("overlap", "" if job.get("overlap") in {None, "allow"} else job["overlap"]),
    ]


def _target(target: Document) -> str:
    if target["type"] == "http":
        batch = f", batches of {target['batch']['size']}" if target.get("batch") else ""
        return f"{target.get('method') or 'POST'} {target['url']}{batch}"
    if target["type"] == "nats":
        until = ", settled by report" if target.get("settleOn") == "reported" else ""
        return f"nats {target['broker']} {target['subject']}{until}"
    return f"worker {target.get('handler') or ''}".rstrip()


def _error(about: Document) -> str:
    return ": ".join(part for part in (about["errorCode"], about["errorMsg"]) if part)


def _percent(progress: float | None) -> str:
    return "" if progress is None else f"{progress:.1%}".replace(".0%", "%")


def _json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)
