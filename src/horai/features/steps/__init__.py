"""Durable steps: records of what a function has finished, suspension, and signals."""

from horai.features.feature import Feature

FEATURE = Feature("steps", routes=("routes",), stage="stage")
