"""Rolling refresh: run a job for each of its entities once per window."""

from horai.features.feature import Feature

FEATURE = Feature("refresh", routes=("routes",), executor="executor", on_job="hooks")
