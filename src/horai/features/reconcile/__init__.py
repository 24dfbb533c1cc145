"""Reconcilers: create the instances that a source of truth lists and Horai lacks."""

from horai.features.feature import Feature

FEATURE = Feature("reconcile", routes=("routes",), executor="executor", on_job="hooks", kind="definition_kind")
