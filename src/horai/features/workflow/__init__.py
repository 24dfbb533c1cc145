"""Workflows: run jobs in the order of a graph."""

from horai.features.feature import Feature
from horai.features.workflow.hooks import HOOKS

FEATURE = Feature("workflow", routes=("routes",), stage="stage", executor="executor", on_job=HOOKS)
