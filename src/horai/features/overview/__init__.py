"""Console overview: statistics, what needs attention, search, and the event stream."""

from horai.features.feature import Feature

FEATURE = Feature("overview", routes=("routes_days", "routes_events", "routes", "routes_search"))
