"""Tenants: their settings, quotas and life."""

from horai.features.feature import Feature

FEATURE = Feature("tenants", routes=("routes", "routes_own"), stage="stage")
