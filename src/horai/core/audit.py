"""The audit log: its verbs, its entries, and the values that it may show.

An entry names the fields that a write changed. Values that may be secret or belong to the business (payloads, results,
headers, query values, passwords) are replaced by `***`, and long values by their size: the log is read by more people
than the data.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from horai.core.masking import HIDDEN, shown_database_url, shown_target, shown_url

VALUE_LIMIT = 2_000
"""The longest value of a field that is stored, in characters of its JSON."""
_HIDDEN_FIELDS = frozenset({"payload", "result", "secret", "secrets", "password", "token", "apiKey", "headers"})
_TARGETS = frozenset({"target", "source"})


class AuditVerb(StrEnum):
    """Every kind of write that the log records."""

    JOB_CREATE = "job.create"
    JOB_CHANGE = "job.change"
    JOB_DELETE = "job.delete"
    JOB_PAUSE = "job.pause"
    JOB_RESUME = "job.resume"
    JOB_TRIGGER = "job.trigger"
    JOBS_PAUSE_MATCHING = "jobs.pause_matching"
    JOBS_RESUME_MATCHING = "jobs.resume_matching"
    INSTANCE_CANCEL = "instance.cancel"
    INSTANCE_SIGNAL = "instance.signal"
    INSTANCES_CANCEL_MATCHING = "instances.cancel_matching"
    INSTANCES_REPLAY_MATCHING = "instances.replay_matching"
    BACKFILL_CREATE = "backfill.create"
    BACKFILL_PAUSE = "backfill.pause"
    BACKFILL_RESUME = "backfill.resume"
    BACKFILL_CANCEL = "backfill.cancel"
    WORKFLOW_CREATE = "workflow.create"
    WORKFLOW_CHANGE = "workflow.change"
    WORKFLOW_DELETE = "workflow.delete"
    WORKFLOW_PAUSE = "workflow.pause"
    WORKFLOW_RESUME = "workflow.resume"
    WORKFLOW_TRIGGER = "workflow.trigger"
    WORKFLOW_COMPOSE = "workflow.compose"
    WORKFLOW_RERUN = "workflow.rerun"
    WORKFLOW_CANCEL = "workflow.cancel"
    RECONCILER_CREATE = "reconciler.create"
    RECONCILER_CHANGE = "reconciler.change"
    RECONCILER_DELETE = "reconciler.delete"
    RECONCILER_PAUSE = "reconciler.pause"
    RECONCILER_RESUME = "reconciler.resume"
    RECONCILER_RUN = "reconciler.run"
    DEAD_LETTER_REPLAY = "dead_letter.replay"
    DEAD_LETTER_DISCARD = "dead_letter.discard"
    DEAD_LETTERS_IMPORT = "dead_letters.import"
    DEAD_LETTERS_REPLAY_MATCHING = "dead_letters.replay_matching"
    DEAD_LETTERS_DISCARD_MATCHING = "dead_letters.discard_matching"
    PARKED_EVENTS_RETRY = "parked_events.retry"
    PARKED_EVENT_DISCARD = "parked_event.discard"
    ARCHIVE_RESTORE = "archive.restore"
    ARCHIVE_REMOVE_RESTORED = "archive.remove_restored"
    ASSET_UPDATE = "asset.update"
    CALENDAR_CREATE = "calendar.create"
    CALENDAR_CHANGE = "calendar.change"
    CALENDAR_DELETE = "calendar.delete"
    QUEUE_CHANGE = "queue.change"
    SIGNING_SECRET_ROTATE = "signing_secret.rotate"  # noqa: S105 - a verb
    SECRET_CREATE = "secret.create"  # noqa: S105 - a verb
    SECRET_REPLACE = "secret.replace"  # noqa: S105 - a verb
    SECRET_DELETE = "secret.delete"  # noqa: S105 - a verb
    KEYRING_ROTATE = "keyring.rotate"
    KEYRING_ERASE = "keyring.erase"
    KEY_CREATE = "key.create"
    KEY_REVOKE = "key.revoke"
    TENANT_CREATE = "tenant.create"
    GROUP_CREATE = "group.create"
    GROUP_DELETE = "group.delete"
    USER_SIGN_IN = "user.sign_in"
    TENANT_CHANGE = "tenant.change"
    TENANT_PAUSE = "tenant.pause"
    TENANT_RESUME = "tenant.resume"
    TENANT_DELETE = "tenant.delete"
    TENANT_DELETED = "tenant.deleted"
    """The last row of a deleted tenant is gone."""
    MODE_ENTER = "mode.enter"
    """The governor or an operator has put a mode in force, or changed its level."""
    MODE_LEAVE = "mode.leave"
    MODE_OVERRIDE = "mode.override"
    THRESHOLDS_CHANGE = "thresholds.change"
    FREEZE = "dispatch.freeze"
    UNFREEZE = "dispatch.unfreeze"
    DISPATCH_PAUSE = "dispatch.pause"
    DISPATCH_RESUME = "dispatch.resume"
    RECOVERY_COMPLETE = "recovery.complete"
    SINK_CREATE = "sink.create"
    SINK_CHANGE = "sink.change"
    SINK_PAUSE = "sink.pause"
    SINK_RESUME = "sink.resume"
    SINK_REPLAY = "sink.replay"
    SINK_DELETE = "sink.delete"
    INCIDENT_OPEN = "incident.open"
    INCIDENT_NOTE = "incident.note"
    INCIDENT_CLOSE = "incident.close"
    DRILL_FILE = "drill.file"
    """An operator has filed the report of a drill."""
    ALERT_CHANNEL_CREATE = "alert_channel.create"
    ALERT_CHANNEL_CHANGE = "alert_channel.change"
    ALERT_CHANNEL_DELETE = "alert_channel.delete"
    ALERT_CHANNEL_TEST = "alert_channel.test"
    ALERT_RULE_CREATE = "alert_rule.create"
    ALERT_RULE_CHANGE = "alert_rule.change"
    ALERT_RULE_DELETE = "alert_rule.delete"
    ALERT_SILENCE_CREATE = "alert_silence.create"
    ALERT_SILENCE_DELETE = "alert_silence.delete"
    ALERT_ACKNOWLEDGE = "alert.acknowledge"
    ALERT_DELIVERY_REDELIVER = "alert_delivery.redeliver"
    HEARTBEAT_PUT = "heartbeat.put"
    HEARTBEAT_DELETE = "heartbeat.delete"
    BACKUP_CREATE = "backup.create"
    BACKUP_FAIL = "backup.fail"
    WORKER_CONNECT = "worker.connect"
    """A remote worker has begun a session."""
    ACCESS_DENIED = "access.denied"
    AUDIT_DROP_MONTH = "audit.drop_month"
    """Retention has dropped a month of the log."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A write: its verb, its object, and the fields that it changed. A batch is one entry with counts."""

    verb: str
    object_kind: str
    object_id: str
    object_name: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    counts: Mapping[str, int] | None = None


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of both documents whose values differ. A field that one of them lacks is absent there."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before[name] for name in names if name in before}, {
        name: after[name] for name in names if name in after
    }


def masked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with `***` for values that the log must not show, and the size of values that are too long."""
    return {name: _short(_masked_value(name, value)) for name, value in fields.items()}


def _masked_value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _HIDDEN_FIELDS:
        return HIDDEN
    if isinstance(value, Mapping):
        inner: Mapping[str, Any] = shown_target(value) if name in _TARGETS else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return {key: _masked_value(key, each) for key, each in inner.items()}
    if isinstance(value, list | tuple):
        return [_masked_value(name, each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return _masked_text(value) if isinstance(value, str) else value


def _masked_text(text: str) -> str:
    if text.startswith(("postgresql://", "postgres://")):
        return shown_database_url(text)
    return shown_url(text) if text.startswith(("http://", "https://")) else text


def _short(value: Any) -> Any:
    size = len(json.dumps(value, ensure_ascii=False, default=str))
    return value if size <= VALUE_LIMIT else f"({size} characters)"
