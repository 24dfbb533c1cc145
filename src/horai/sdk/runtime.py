"""The half of the SDK that needs the database: what the modules that declare jobs use of it, by sdk/deferred.py."""

import structlog

from horai.core.node_results import ChosenNodes, SkippedNode, direction_in
from horai.core.outcome import Outcome
from horai.db import caller_transaction
from horai.db import jobs as stored_jobs
from horai.db.database_location import DatabaseLocation, choose_database
from horai.db.instance_lists import PageStart
from horai.db.instance_queries import EndedInstance, InstanceRow
from horai.db.instances import SealedPaths
from horai.db.pool import Plans, TenantWrite
from horai.engine.dispatch.births import Births
from horai.features.assets import service as assets
from horai.features.assets.store import LAST_UPDATE, OutsideUpdate, UpdateRow
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import BackfillRequest, Mode
from horai.features.backfill.rules import checked as checked_backfill
from horai.features.backfill.service import Survey
from horai.features.backfill.store import BackfillRow
from horai.features.reconcile import compare as reconciles
from horai.features.reconcile import rules as reconcile_rules
from horai.features.reconcile import store as reconcilers
from horai.features.reconcile.compare import Comparison, Overtaken, ReconcileRun, counts_of
from horai.features.reconcile.rules import Faulty, Row, wanted_row
from horai.features.reconcile.store import ReconcilerRow
from horai.features.steps.rules import StepId, StepRecord, StepReport
from horai.features.steps.service import signal_by_id
from horai.features.workflow import rerun as reruns
from horai.features.workflow.composed import CALLS, TakenResults, template_of
from horai.features.workflow.compositions import define_form
from horai.features.workflow.declare import compare_workflows, declare_workflows
from horai.features.workflow.definition import WrittenWorkflow
from horai.features.workflow.forms import ChainForm, FormEnds, FormPlan, GroupForm, plan_of
from horai.features.workflow.items import read_items
from horai.features.workflow.map_store import ItemPage
from horai.features.workflow.rerun import RunView, read_run
from horai.features.workflow.rerun_store import NodeNow, RunFilter, RunRow, list_runs
from horai.features.workflow.service import create_workflow, require_workflow, set_paused
from horai.features.workflow.triggers import RunRequest, trigger_run
from horai.logs import running
from horai.operations import declarations
from horai.operations.declarations import DeclaredJob
from horai.operations.declared_owner import DeclaredChanges, Owner
from horai.operations.request_keys import Once
from horai.operations.scope import Scope, require_job
from horai.sdk import drivers
from horai.sdk.asset_updates import AssetUpdate
from horai.sdk.backfills import Backfill, BackfillPlan, ModeName, backfill_of
from horai.sdk.client import Client, When, open_client
from horai.sdk.composed_run import ComposedRun
from horai.sdk.django import with_fresh_connections
from horai.sdk.drivers import is_sync
from horai.sdk.durable_run import DurableRun
from horai.sdk.entities import Entities
from horai.sdk.explanations import Explanation, explanation
from horai.sdk.functions import AsyncFunction, Crew, ThreadedFunction, executor_of
from horai.sdk.runs import Run, pending_info, started_info, view_info
from horai.sdk.signals import signal_of
from horai.sdk.step_tasks import ChildTask
from horai.sdk.steps import call_job, start_over
from horai.sdk.sync import SyncVerbs
from horai.sdk.sync_handle import SyncHandle
from horai.sdk.sync_workflow import SyncWorkflow
from horai.sdk.transaction import CallersTransaction, Digester, Sealer

__all__ = (
    "CALLS",
    "LAST_UPDATE",
    "AssetUpdate",
    "AsyncFunction",
    "Backfill",
    "BackfillPlan",
    "BackfillRequest",
    "BackfillRow",
    "Births",
    "CallersTransaction",
    "ChainForm",
    "ChildTask",
    "ChosenNodes",
    "Client",
    "Comparison",
    "ComposedRun",
    "Crew",
    "DatabaseLocation",
    "DeclaredChanges",
    "DeclaredJob",
    "Digester",
    "DurableRun",
    "EndedInstance",
    "Entities",
    "Explanation",
    "Faulty",
    "FormEnds",
    "FormPlan",
    "GroupForm",
    "InstanceRow",
    "ItemPage",
    "Mode",
    "ModeName",
    "NodeNow",
    "Once",
    "Outcome",
    "OutsideUpdate",
    "Overtaken",
    "Owner",
    "PageStart",
    "Plans",
    "ReconcileRun",
    "ReconcilerRow",
    "Row",
    "Run",
    "RunFilter",
    "RunRequest",
    "RunRow",
    "RunView",
    "Scope",
    "SealedPaths",
    "Sealer",
    "SkippedNode",
    "StepId",
    "StepRecord",
    "StepReport",
    "Survey",
    "SyncHandle",
    "SyncVerbs",
    "SyncWorkflow",
    "TakenResults",
    "TenantWrite",
    "ThreadedFunction",
    "UpdateRow",
    "When",
    "WrittenWorkflow",
    "assets",
    "backfill_of",
    "backfills",
    "call_job",
    "caller_transaction",
    "checked_backfill",
    "choose_database",
    "compare_workflows",
    "counts_of",
    "create_workflow",
    "declarations",
    "declare_workflows",
    "define_form",
    "direction_in",
    "drivers",
    "executor_of",
    "explanation",
    "is_sync",
    "list_runs",
    "open_client",
    "pending_info",
    "plan_of",
    "read_items",
    "read_run",
    "reconcile_rules",
    "reconcilers",
    "reconciles",
    "require_job",
    "require_workflow",
    "reruns",
    "running",
    "set_paused",
    "signal_by_id",
    "signal_of",
    "start_over",
    "started_info",
    "stored_jobs",
    "structlog",
    "template_of",
    "trigger_run",
    "view_info",
    "wanted_row",
    "with_fresh_connections",
)
