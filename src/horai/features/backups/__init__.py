"""Backups of the embedded database on a schedule: makes them, removes old ones, and records successes and failures."""

from horai.features.feature import Feature

FEATURE = Feature("backups", stage="stage")
