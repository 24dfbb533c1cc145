"""Workflows: run jobs in the order of a graph."""

from horai.features.feature import Feature
from horai.features.workflow.phrases import SkipWords

FEATURE = Feature(
    "workflow",
    routes=("routes_matching", "routes", "routes_grid", "routes_compositions"),
    stage="stage",
    executor="executor",
    on_job="hooks",
    phrases=(SkipWords,),
    kind="definition_kind",
)
