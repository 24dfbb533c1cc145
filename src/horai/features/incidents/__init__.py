"""Incidents: opened and closed by the governor and by hand, each with a timeline."""

from horai.features.feature import Feature

FEATURE = Feature("incidents", routes=("routes",), stage="stage")
