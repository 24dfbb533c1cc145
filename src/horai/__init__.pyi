from horai.core.errors import HoraiError as HoraiError
from horai.core.errors import Invalid as Invalid
from horai.core.errors import NotFound as NotFound
from horai.core.upcoming import Fire as Fire
from horai.sdk.app import Horai as Horai
from horai.sdk.backfills import Backfill as Backfill
from horai.sdk.backfills import BackfillPlan as BackfillPlan
from horai.sdk.backfills import BackfillProgress as BackfillProgress
from horai.sdk.declaration import Misfire as Misfire
from horai.sdk.declaration import Refresh as Refresh
from horai.sdk.declaration import Retry as Retry
from horai.sdk.handle import Handle as Handle
from horai.sdk.handle import InstanceCancelled as InstanceCancelled
from horai.sdk.handle import InstanceFailed as InstanceFailed
from horai.sdk.instance import Cancelled as Cancelled
from horai.sdk.instance import Instance as Instance
from horai.sdk.job import Job as Job
from horai.sdk.outcomes import RetryLater as RetryLater
from horai.sdk.outcomes import Unrecoverable as Unrecoverable
from horai.sdk.reconcile import Wanted as Wanted
from horai.sdk.webhooks import verify_webhook as verify_webhook
from horai.sdk.workflow import Node as Node
from horai.sdk.workflow import Workflow as Workflow

__version__: str
