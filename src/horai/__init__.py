"""Horai makes things happen at their time, exactly as often as intended, and can say why.

The public names are imported on first use: `horai --help` needs none of them.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Asset": "sdk.assets",
    "AssetUpdate": "sdk.asset_updates",
    "Backfill": "sdk.backfills",
    "BackfillPlan": "sdk.backfills",
    "BackfillProgress": "sdk.backfills",
    "Branch": "sdk.branches",
    "CallFailed": "sdk.suspension",
    "Cancelled": "sdk.instance",
    "ChildRunInfo": "sdk.runs",
    "ClaimLost": "sdk.suspension",
    "ComposedRun": "sdk.composed_run",
    "Fire": "core.upcoming",
    "Handle": "sdk.handle",
    "Horai": "sdk.app",
    "HoraiError": "core.errors",
    "Instance": "sdk.instance",
    "InstanceCancelled": "sdk.handle",
    "InstanceFailed": "sdk.handle",
    "InstanceSkipped": "sdk.handle",
    "Interval": "sdk.intervals",
    "Invalid": "core.errors",
    "Job": "sdk.job",
    "LogEntry": "sdk.handle",
    "Map": "sdk.workflow",
    "MapFailed": "sdk.runs",
    "MapInfo": "sdk.runs",
    "MapItem": "sdk.runs",
    "Misfire": "sdk.declaration",
    "NoInterval": "sdk.instance",
    "Node": "sdk.workflow",
    "NotFound": "core.errors",
    "NotReady": "sdk.outcomes",
    "Param": "sdk.workflow",
    "Queue": "sdk.queues",
    "Refresh": "sdk.declaration",
    "Resource": "sdk.lifecycle",
    "Retry": "sdk.declaration",
    "RetryLater": "sdk.outcomes",
    "Run": "sdk.runs",
    "RunFailed": "sdk.runs",
    "RunInfo": "sdk.runs",
    "RunNodeInfo": "sdk.runs",
    "Sensor": "sdk.workflow",
    "SensorInfo": "sdk.runs",
    "Skip": "sdk.outcomes",
    "StepFailed": "sdk.suspension",
    "Unrecoverable": "sdk.outcomes",
    "Wanted": "sdk.reconcile",
    "Workflow": "sdk.workflow",
    "branch": "sdk.branches",
    "chain": "sdk.composition",
    "chord": "sdk.composition",
    "gather": "sdk.steps",
    "group": "sdk.composition",
    "sleep": "sdk.steps",
    "step": "sdk.steps",
    "step_key": "sdk.steps",
    "verify_webhook": "sdk.webhooks",
    "wait_for": "sdk.steps",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'horai' has no attribute {name!r}")
    return getattr(import_module(f"horai.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
