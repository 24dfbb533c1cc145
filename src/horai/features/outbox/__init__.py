"""The outbox: events in a final order, delivered to sinks."""

from horai.features.feature import Feature

FEATURE = Feature("outbox", routes=("routes",), stage="stage")
