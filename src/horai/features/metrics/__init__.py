"""Metrics: the figures of this process and of the cluster at `/metrics`, in the format of Prometheus."""

from horai.features.feature import Feature

FEATURE = Feature("metrics", routes=("routes",))
