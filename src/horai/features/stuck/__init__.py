"""Lists of stuck runs, clogged queues and blocked workflow runs."""

from horai.features.feature import Feature

FEATURE = Feature("stuck", routes=("routes",))
