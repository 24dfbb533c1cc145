"""Reconcilers: create the instances that a source of truth lists and Horai lacks."""

from horai.features.feature import Feature
from horai.features.reconcile.hooks import HOOKS

FEATURE = Feature("reconcile", routes=("routes",), executor="executor", on_job=HOOKS)
