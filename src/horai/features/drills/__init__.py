"""Drills: the reports of `horai drill` that operators have filed with the cluster."""

from horai.features.feature import Feature

FEATURE = Feature("drills", routes=("routes",))
