"""Recovery after an incident: resume shards, replay events, requeue dead letters."""

from horai.features.feature import Feature

FEATURE = Feature("recovery", routes=("routes",))
