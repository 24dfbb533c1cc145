"""Backfill: run slots of a job's past."""

from horai.features.feature import Feature

FEATURE = Feature("backfill", routes=("routes",), stage="stage", on_job="hooks")
