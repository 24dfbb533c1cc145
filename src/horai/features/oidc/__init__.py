"""OpenID Connect: users sign in to the console with an identity provider; their groups give them roles."""

from horai.features.feature import Feature

FEATURE = Feature("oidc", routes=("routes_sign_in", "routes_groups"))
