"""Secrets: named secrets of a tenant, and the stage that encrypts secrets which were stored before there was a key."""

from horai.features.feature import Feature

FEATURE = Feature("secrets", routes=("routes",), stage="stage")
