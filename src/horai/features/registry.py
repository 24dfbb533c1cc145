"""FEATURES: every capability on top of the kernel. To add one, add its folder and one line here."""

from horai.features import (
    access,
    alerts,
    audit,
    backfill,
    dead_letters,
    events,
    explain,
    forecast,
    governor,
    incidents,
    metrics,
    oidc,
    overview,
    reconcile,
    refresh,
    secrets,
    sli,
    tenants,
    workflow,
)
from horai.features.feature import Feature

FEATURES: tuple[Feature, ...] = (
    access.FEATURE,
    oidc.FEATURE,
    tenants.FEATURE,
    overview.FEATURE,
    dead_letters.FEATURE,
    explain.FEATURE,
    forecast.FEATURE,
    backfill.FEATURE,
    workflow.FEATURE,
    refresh.FEATURE,
    reconcile.FEATURE,
    events.FEATURE,
    audit.FEATURE,
    secrets.FEATURE,
    governor.FEATURE,
    incidents.FEATURE,
    alerts.FEATURE,
    metrics.FEATURE,
    sli.FEATURE,
)
JOB_HOOKS = tuple(feature.on_job for feature in FEATURES if feature.on_job is not None)
