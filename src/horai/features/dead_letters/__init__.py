"""Dead letters: list, replay and discard instances that were given up."""

from horai.features.feature import Feature

FEATURE = Feature("dead_letters", routes=("routes_matching", "routes_import", "routes"))
