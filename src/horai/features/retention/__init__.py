"""Retention: drop old days of history, after the past of their keys was folded into a compact table, and forget old rows."""

from horai.features.feature import Feature

FEATURE = Feature("retention", stage="stage")
