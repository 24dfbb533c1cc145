"""Archive: writes closed days of history to Parquet files, verifies them, and lists and restores them."""

from horai.features.feature import Feature

FEATURE = Feature("archive", routes=("routes",), stage="stage")
