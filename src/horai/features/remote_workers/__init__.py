"""Remote workers: processes without access to the database that run functions for a server."""

from horai.features.feature import Feature
from horai.features.remote_workers.phrases import WorkerWords

FEATURE = Feature("remote_workers", routes=("routes",), phrases=(WorkerWords,))
