"""The service level: the share of due instances that started within 60 seconds, over 30 days, with its error budget."""

from horai.features.feature import Feature

FEATURE = Feature("sli", routes=("routes",), stage="stage")
