"""Access: keys and sessions."""

from horai.features.feature import Feature

FEATURE = Feature("access", routes=("routes_keys", "routes_session"))
