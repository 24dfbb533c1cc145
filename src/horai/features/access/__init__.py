"""Access: keys, tenants and sessions."""

from horai.features.feature import Feature

FEATURE = Feature("access", routes=("routes_keys", "routes_tenants", "routes_session"))
