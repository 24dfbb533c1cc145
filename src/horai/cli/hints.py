"""The server's hints for the command line: commands instead of REST paths."""

from collections.abc import Mapping
from typing import Any

LISTS = {
    "/api/v1/alerts": "horai alerts firing",
    "/api/v1/alerts/channels": "horai alerts channels",
    "/api/v1/alerts/deliveries": "horai alerts deliveries",
    "/api/v1/alerts/rules": "horai alerts rules",
    "/api/v1/alerts/silences": "horai alerts silences",
    "/api/v1/archive": "horai archive list",
    "/api/v1/backfills": "horai backfills list",
    "/api/v1/calendars": "horai calendars list",
    "/api/v1/dlq": "horai dlq list",
    "/api/v1/drills": "horai drill list",
    "/api/v1/events/parked": "horai source parked",
    "/api/v1/groups": "horai groups list",
    "/api/v1/incidents": "horai incidents list",
    "/api/v1/instances": "horai instances list",
    "/api/v1/jobs": "horai jobs list",
    "/api/v1/keys": "horai keys list",
    "/api/v1/secrets": "horai secrets names",
    "/api/v1/sinks": "horai sinks list",
    "/api/v1/tenants": "horai tenants list",
    "/api/v1/jobs/{job}/entities": "horai entities list JOB",
    "/api/v1/reconcilers": "horai reconcilers list",
    "/api/v1/workflows": "horai workflows list",
    "/api/v1/workflows/{workflow}": "horai workflows show WORKFLOW",
    "/api/v1/workflows/{workflow}/runs": "horai workflows runs WORKFLOW",
    "/api/v1/workflows/{workflow}/runs/{run}": "horai workflows run WORKFLOW RUN",
}
"""Commands by the path that lists the same objects."""

COMMANDS = {
    "ALL_ADDRESSES": "Check --server: this server does not have that address.",
    "ALL_FIELDS": "`--help` of the command lists its flags.",
    "CAMEL_CASE": "Field names are camelCase.",
    "CHANGE_RECONCILER_IN_CODE": "Change it in the code. Without it there, `horai jobs delete JOB` deletes its job.",
    "CHOOSE_ANOTHER_NAME": "Choose another name.",
    "CREATE_CALENDAR_FIRST": "Create it first: `horai calendars put NAME`.",
    "CREATE_CHANNEL_FIRST": "Create it first: `horai alerts set-channel NAME KIND`.",
    "PUT_CHANNEL": "`horai alerts set-channel {name} KIND` replaces it.",
    "PUT_RULE": "`horai alerts set-rule {name} KIND` replaces it.",
    "DEFINE_HEARTBEAT": "Define it first: `horai heartbeats set {name} --every DURATION`.",
    "CREATE_SECRET_FIRST": "Create it first: `horai secrets set NAME`.",
    "LIST_VERSIONS": "`history` of the same command lists the kept versions: the newest 50 of each object.",
    "MAKE_QUEUE": "Create it first: `horai queues set {name}`.",
    "DELETE_RECONCILERS": "Delete its reconcilers first: `horai reconcilers delete RECONCILER`.",
    "DELETE_MAPPING": "Delete it first: `horai groups delete {mapping}`.",
    "DISCARD": "Discard it: `horai dlq discard {letter}`.",
    "KEY_HISTORY": "It may have finished: `horai instances history JOB KEY` shows its history.",
    "REVOKE_AND_CREATE": "If its text is lost, revoke it and create another: `horai keys revoke {key}`.",
    "SEND_A_BEARER": "Give --api-key or set HORAI_API_KEY, or sign in: `horai login`.",
    "LIST_SIGNING_SECRETS": "`horai secrets list` lists the secrets in force.",
    "PUT_TO_REPLACE": "`horai secrets set {name}` replaces its value.",
    "PAUSE_TENANT_FIRST": "Pause it first: `horai tenants pause {name}`.",
    "CONFIRM_NAME": "Repeat the name: `horai tenants delete {name} --confirm {name}`.",
    "PUT_INSTEAD": "Use `horai instances put JOB KEY`, or give the job a cron or an every first.",
    "QUEUE_COMES": "`horai queues set QUEUE` creates a queue; so does the first job in it.",
    "SEND_SMALLER": "Send a smaller one, then `horai source discard {event}`.",
    "DELETE_FORMS": "Delete the workflow of each form first: `horai workflows delete WORKFLOW`. It cancels the open runs.",
    "TAKE_OUT_OF_WORKFLOWS": "Take it out of its workflows first, or delete them: `horai workflows delete WORKFLOW`.",
    "WAIT_FOR_MODE": "`horai governor show` shows the mode or the hold. Try again when it has ended.",
    "TRY_AGAIN_BY_KEY": "Try again; a repeat with the same key has no second effect. `horai health` shows the state.",
}
"""Sentences by the code of the server's hint, with the same parameters."""


def hint_of(problem: Mapping[str, Any]) -> str | None:
    """Return the hint of a problem, with a command where the server named a path."""
    hint: str | None = problem.get("hint")
    said: Mapping[str, Any] = problem.get("hintSaid") or {}
    code, params = str(said.get("code")), dict[str, Any](said.get("params") or {})
    if code == "LISTED_AT" and params.get("path") in LISTS:
        return f"`{LISTS[params['path']]}` lists them."
    try:
        return COMMANDS[code].format_map(params)
    except KeyError:
        return hint
