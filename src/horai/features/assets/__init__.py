"""Data assets: jobs and workflows update them with their successes, and others start when they were updated."""

from horai.features.feature import Feature

FEATURE = Feature("assets", routes=("routes",), stage="stage", on_job="hooks")
