"""Leases and outcomes of a remote worker as messages of the worker protocol."""

from datetime import timedelta

from msgspec import UNSET, Raw, UnsetType

from horai.core.calls import Call, WorkerTarget
from horai.core.outcome import (
    FailedRetryable,
    FailedUnrecoverable,
    NotSent,
    Outcome,
    Postponed,
    Succeeded,
)
from horai.wire.worker_messages import LeasedAttempt, Report


def call_of_lease(lease: LeasedAttempt, tenant: str) -> Call:
    """Return the call that a lease stands for."""
    timeout = None if lease.timeout_seconds is None else timedelta(seconds=lease.timeout_seconds)
    return Call(
        int(lease.instance),
        lease.job_id,
        lease.job,
        tenant,
        lease.key,
        lease.fire_time,
        lease.execute_time,
        lease.attempt,
        lease.fence,
        lease.born_for,
        lease.slot,
        None if isinstance(lease.payload, UnsetType) else bytes(lease.payload).decode(),
        WorkerTarget(lease.handler),
        timeout,
        retry_count=lease.retry_count,
        is_encrypted=lease.encrypted,
        traceparent=lease.traceparent,
        interval_from=lease.interval_start,
    )


def report_of(call: Call, outcome: Outcome) -> Report:
    """Return the report of an outcome."""
    report = Report(str(call.instance_id), call.fence, "succeeded")
    match outcome:
        case Succeeded(output):
            report.output = UNSET if output is None else Raw(output.encode())
        case FailedRetryable(code, message, retry_after, traceback):
            report.result, report.code, report.message = "failed", code, message
            report.delay = 0.0 if retry_after is None else retry_after.total_seconds()
            report.traceback = traceback or ""
        case FailedUnrecoverable(code, message, tags, traceback):
            report.result, report.code, report.message = "unrecoverable", code, message
            report.tags, report.traceback = list(tags), traceback or ""
        case Postponed(delay):
            report.result, report.delay = "later", delay.total_seconds()
        case NotSent():
            report.result = "released"
    return report
