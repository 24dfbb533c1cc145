"""Alerts: rules that watch conditions, channels that people read, silences, heartbeats, and a log of every delivery."""

from horai.features.feature import Feature

FEATURE = Feature(
    "alerts",
    routes=("routes_channels", "routes_rules", "routes_silences", "routes_firing", "routes_heartbeats"),
    stage="stage",
)
