"""The governor: thresholds that limit dispatch by themselves, overrides, and holds that operators set by hand."""

from horai.features.feature import Feature
from horai.features.governor.phrases import GovernorWords

FEATURE = Feature("governor", routes=("routes", "routes_holds"), stage="stage", phrases=(GovernorWords,))
