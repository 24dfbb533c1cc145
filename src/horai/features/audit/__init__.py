"""Audit log: lists, exports and verifies the rows that record each write, and seals them in a signed chain."""

from horai.features.feature import Feature

FEATURE = Feature("audit", routes=("routes",), stage="stage")
