"""Horai makes things happen at their time, exactly as often as intended, and can say why.

The public names are imported on first use: `horai --help` needs none of them.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Backfill": "sdk.backfills",
    "BackfillPlan": "sdk.backfills",
    "BackfillProgress": "sdk.backfills",
    "Cancelled": "sdk.instance",
    "Fire": "core.upcoming",
    "Handle": "sdk.handle",
    "Horai": "sdk.app",
    "HoraiError": "core.errors",
    "Instance": "sdk.instance",
    "InstanceCancelled": "sdk.handle",
    "InstanceFailed": "sdk.handle",
    "Invalid": "core.errors",
    "Job": "sdk.job",
    "Misfire": "sdk.declaration",
    "Node": "sdk.workflow",
    "NotFound": "core.errors",
    "Refresh": "sdk.declaration",
    "Retry": "sdk.declaration",
    "RetryLater": "sdk.outcomes",
    "Unrecoverable": "sdk.outcomes",
    "Wanted": "sdk.reconcile",
    "Workflow": "sdk.workflow",
    "verify_webhook": "sdk.webhooks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'horai' has no attribute {name!r}")
    return getattr(import_module(f"horai.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
