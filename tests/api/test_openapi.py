"""`/openapi.json` describes what the server does, and Schemathesis tries to prove otherwise."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import Client, node
from keys import KeyHolder, holder
from sizes import IS_LONG

from api import given
from horai.features.workflow.wire import WorkflowOut
from horai.wire.health import Problem
from horai.wire.jobs import JobList, JobOut

ROUTES = {
    "/api/v1/jobs": {"get", "post"},
    "/api/v1/job-count": {"get"},
    "/api/v1/jobs/{job}": {"get", "patch", "delete"},
    "/api/v1/jobs/{job}/next": {"get"},
    "/api/v1/jobs/{job}/explain": {"get"},
    "/api/v1/jobs/{job}/backfill": {"post"},
    "/api/v1/backfills": {"get"},
    "/api/v1/reconcilers": {"get", "post"},
    "/api/v1/reconcilers/{reconciler}": {"get", "patch", "delete"},
    "/api/v1/reconcilers/{reconciler}/pause": {"post"},
    "/api/v1/reconcilers/{reconciler}/resume": {"post"},
    "/api/v1/reconcilers/{reconciler}/run": {"post"},
    "/api/v1/reconcilers/{reconciler}/reports": {"get"},
    "/api/v1/backfills/{backfill}": {"get"},
    "/api/v1/backfills/{backfill}/pause": {"post"},
    "/api/v1/backfills/{backfill}/resume": {"post"},
    "/api/v1/backfills/{backfill}/cancel": {"post"},
    "/api/v1/jobs/pause": {"post"},
    "/api/v1/jobs/trigger": {"post"},
    "/api/v1/jobs/delete": {"post"},
    "/api/v1/jobs/resume": {"post"},
    "/api/v1/jobs/{job}/pause": {"post"},
    "/api/v1/jobs/{job}/resume": {"post"},
    "/api/v1/jobs/{job}/trigger": {"post"},
    "/api/v1/jobs/{job}/days": {"get"},
    "/api/v1/jobs/{job}/instances": {"get"},
    "/api/v1/jobs/{job}/instances/{key}": {"put", "delete"},
    "/api/v1/jobs/{job}/instances/{key}/history": {"get"},
    "/api/v1/jobs/{job}/instances/batch": {"post"},
    "/api/v1/jobs/{job}/entities": {"get"},
    "/api/v1/jobs/{job}/entities/{key}": {"get", "put", "delete"},
    "/api/v1/jobs/{job}/entities/batch": {"post"},
    "/api/v1/jobs/{job}/entities/remove": {"post"},
    "/api/v1/jobs/{job}/entity-count": {"get"},
    "/api/v1/jobs/{job}/refresh": {"get"},
    "/api/v1/instances": {"get"},
    "/api/v1/instances/count": {"get"},
    "/api/v1/instances/{instance}": {"get"},
    "/api/v1/instances/cancel": {"post"},
    "/api/v1/instances/replay": {"post"},
    "/api/v1/instances/{instance}/steps": {"get"},
    "/api/v1/instances/{instance}/why": {"get"},
    "/api/v1/instances/{instance}/cancel": {"post"},
    "/api/v1/instances/{instance}/outcome": {"post"},
    "/api/v1/instances/{instance}/signals/{name}": {"post"},
    "/api/v1/jobs/{job}/instances/{key}/signals/{name}": {"post"},
    "/api/v1/signing-secrets": {"get", "post"},
    "/api/v1/definitions/apply": {"post"},
    "/api/v1/definitions/schema": {"get"},
    "/api/v1/definitions/{kind}": {"get"},
    "/api/v1/jobs/{name}/versions": {"get"},
    "/api/v1/jobs/{name}/versions/{version}": {"get"},
    "/api/v1/jobs/{name}/versions/{version}/restore": {"post"},
    "/api/v1/workflows/{name}/versions": {"get"},
    "/api/v1/workflows/{name}/versions/{version}": {"get"},
    "/api/v1/workflows/{name}/versions/{version}/restore": {"post"},
    "/api/v1/queues/{name}/versions": {"get"},
    "/api/v1/queues/{name}/versions/{version}": {"get"},
    "/api/v1/queues/{name}/versions/{version}/restore": {"post"},
    "/api/v1/reconcilers/{name}/versions": {"get"},
    "/api/v1/reconcilers/{name}/versions/{version}": {"get"},
    "/api/v1/reconcilers/{name}/versions/{version}/restore": {"post"},
    "/api/v1/secrets": {"get", "post"},
    "/api/v1/secrets/{name}": {"put", "delete"},
    "/api/v1/keys": {"get", "post"},
    "/api/v1/keys/{key}": {"delete"},
    "/api/v1/groups": {"get", "post"},
    "/api/v1/groups/{mapping}": {"delete"},
    "/api/v1/session": {"get", "post", "patch", "delete"},
    "/api/v1/session/oidc": {"get"},
    "/api/v1/session/oidc/callback": {"get"},
    "/api/v1/session/options": {"get"},
    "/api/v1/scheduler/mode": {"get", "post"},
    "/api/v1/scheduler/mode/history": {"get"},
    "/api/v1/scheduler/thresholds": {"get", "put"},
    "/api/v1/scheduler/sli": {"get"},
    "/api/v1/scheduler/stuck": {"get"},
    "/api/v1/scheduler/clogged": {"get"},
    "/api/v1/scheduler/blocked": {"get"},
    "/api/v1/alerts": {"get"},
    "/api/v1/alerts/channels": {"get", "post"},
    "/api/v1/alerts/channels/{name}": {"get", "put", "delete"},
    "/api/v1/alerts/channels/{name}/test": {"post"},
    "/api/v1/alerts/rules": {"get", "post"},
    "/api/v1/alerts/rules/{name}": {"get", "put", "delete"},
    "/api/v1/alerts/silences": {"get", "post"},
    "/api/v1/alerts/silences/{silence}": {"delete"},
    "/api/v1/alerts/{alert}/acknowledge": {"post"},
    "/api/v1/alerts/deliveries": {"get"},
    "/api/v1/alerts/deliveries/{delivery}/redeliver": {"post"},
    "/api/v1/heartbeats": {"get"},
    "/api/v1/heartbeats/{name}": {"put", "post", "delete"},
    "/api/v1/archive": {"get"},
    "/api/v1/archive/restored/{day}": {"post", "delete"},
    "/api/v1/incidents": {"get", "post"},
    "/api/v1/drills": {"get", "post"},
    "/api/v1/drills/{drill}": {"get"},
    "/api/v1/assets": {"get"},
    "/api/v1/asset-graph": {"get"},
    "/api/v1/assets/{name}": {"get"},
    "/api/v1/assets/{name}/updates": {"post"},
    "/api/v1/incidents/{incident}": {"get"},
    "/api/v1/incidents/{incident}/notes": {"post"},
    "/api/v1/incidents/{incident}/close": {"post"},
    "/api/v1/recover": {"post"},
    "/api/v1/sinks": {"get"},
    "/api/v1/sinks/{name}": {"get", "put", "delete"},
    "/api/v1/sinks/{name}/pause": {"post"},
    "/api/v1/sinks/{name}/resume": {"post"},
    "/api/v1/sinks/{name}/replay": {"post"},
    "/api/v1/scheduler/pause": {"post"},
    "/api/v1/scheduler/resume": {"post"},
    "/api/v1/scheduler/freeze": {"post"},
    "/api/v1/scheduler/unfreeze": {"post"},
    "/api/v1/tenants": {"get", "post"},
    "/api/v1/tenants/{tenant}": {"get", "patch", "delete"},
    "/api/v1/tenants/{tenant}/pause": {"post"},
    "/api/v1/tenants/{tenant}/resume": {"post"},
    "/api/v1/tenant": {"get"},
    "/api/v1/export": {"get"},
    "/api/v1/audit": {"get"},
    "/api/v1/audit/verify": {"get"},
    "/api/v1/audit/export": {"get"},
    "/api/v1/calendars": {"get"},
    "/api/v1/calendars/{name}": {"get", "put", "delete"},
    "/api/v1/calendars/{name}/days": {"get"},
    "/api/v1/queues": {"get"},
    "/api/v1/queues/{name}": {"get", "put"},
    "/api/v1/dlq": {"get"},
    "/api/v1/dlq/count": {"get"},
    "/api/v1/dlq/faults": {"get"},
    "/api/v1/dlq/replay": {"post"},
    "/api/v1/dlq/discard": {"post"},
    "/api/v1/dlq/import": {"post"},
    "/api/v1/dlq/{letter}": {"get"},
    "/api/v1/dlq/{letter}/replay": {"post"},
    "/api/v1/dlq/{letter}/discard": {"post"},
    "/api/v1/events/parked": {"get"},
    "/api/v1/events/parked/{event}": {"get"},
    "/api/v1/events/parked/{event}/retry": {"post"},
    "/api/v1/events/parked/{event}/discard": {"post"},
    "/api/v1/compositions": {"post"},
    "/api/v1/workflows": {"get", "post"},
    "/api/v1/workflows/{workflow}": {"get", "patch", "delete"},
    "/api/v1/workflows/{workflow}/pause": {"post"},
    "/api/v1/workflows/{workflow}/resume": {"post"},
    "/api/v1/workflows/{workflow}/trigger": {"post"},
    "/api/v1/workflows/{workflow}/runs": {"get"},
    "/api/v1/workflows/{workflow}/grid": {"get"},
    "/api/v1/workflows/{workflow}/nodes/{node}/runs": {"get"},
    "/api/v1/workflows/{workflow}/runs/count": {"get"},
    "/api/v1/workflows/{workflow}/runs/cancel": {"post"},
    "/api/v1/workflows/{workflow}/runs/rerun": {"post"},
    "/api/v1/workflows/{workflow}/runs/{run}": {"get"},
    "/api/v1/workflows/{workflow}/runs/{run}/nodes/{node}/items": {"get"},
    "/api/v1/workflows/{workflow}/runs/{run}/rerun": {"post"},
    "/api/v1/workflows/{workflow}/runs/{run}/cancel": {"post"},
    "/api/v1/schedules/preview": {"post"},
    "/api/v1/forecast": {"get"},
    "/api/v1/forecast/minute": {"get"},
    "/api/v1/forecast/what-if": {"get"},
    "/api/v1/events": {"get"},
    "/api/v1/search": {"get"},
    "/api/v1/scheduler/stats": {"get"},
    "/api/v1/scheduler/attention": {"get"},
    "/api/v1/scheduler/health": {"get"},
    "/api/v1/scheduler/nodes": {"get"},
    "/api/v1/scheduler/shards": {"get"},
}
IS_THOROUGH = bool(os.environ.get("HORAI_THOROUGH"))
EXAMPLES = "100" if IS_THOROUGH else "8" if IS_LONG else "3"
PHASES = "coverage,fuzzing" if IS_THOROUGH else "fuzzing"
"""Coverage alone takes a minute: `HORAI_THOROUGH=1` asks for it."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
)


@pytest.fixture(scope="module")
def document(runner: asyncio.Runner, api: Client) -> Any:
    return runner.run(api("GET", "/openapi.json")).json


def test_every_route_is_described_with_its_body_its_answer_and_its_problem(document: Any) -> None:
    assert {path: set(operations) for path, operations in document["paths"].items()} == ROUTES
    shapes = document["components"]["schemas"]
    problem = {"$ref": "#/components/schemas/Problem"}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["responses"]["default"]["content"] == {"application/problem+json": {"schema": problem}}
            assert operation["summary"], path
            if method in {"put", "patch"} or path.endswith(
                ("/batch", "/outcome", "/trigger", "/jobs", "/pause", "/preview")
            ):
                if method == "get":
                    continue
                (media,) = operation["requestBody"]["content"].items()
                assert media[0] == "application/json"
                assert media[1]["schema"]["$ref"].rpartition("/")[2] in shapes
    for reference in _references(document):
        assert reference.rpartition("/")[2] in shapes


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [found for item in node for found in _references(item)]
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for item in node.values() for found in _references(item)]
    return []


def test_C20_the_description_says_that_a_trigger_needs_an_idempotency_key(document: Any) -> None:
    parameters = document["paths"]["/api/v1/jobs/{job}/trigger"]["post"]["parameters"]

    (header,) = [parameter for parameter in parameters if parameter["in"] == "header"]
    assert (header["name"], header["required"]) == ("Idempotency-Key", True)
    assert header["schema"]["type"] == "string"


def test_no_parameter_is_null_for_an_address_has_no_word_for_it(document: Any) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    schemas = [parameter["schema"] for operation in operations for parameter in operation.get("parameters", ())]

    assert schemas
    assert [schema for schema in schemas if '"null"' in json.dumps(schema)] == []
    assert all(schema.keys() & {"type", "anyOf", "$ref", "enum", "const"} for schema in schemas)


def test_no_two_shapes_have_one_name(document: Any) -> None:
    """FastAPI would name both by their modules, and so would every client made from it."""
    assert [name for name in document["components"]["schemas"] if "__" in name] == []


def test_the_console_is_made_from_what_is_served(document: Any) -> None:
    kept = json.loads((Path(__file__).parents[2] / "console" / "openapi.json").read_text())

    assert kept == document, "run `make docs`"


def test_times_are_described_as_instants(document: Any) -> None:
    at = document["components"]["schemas"]["PutIn"]["properties"]["executeTime"]

    assert {"type": "string", "format": "date-time"} in at["anyOf"]


async def test_the_responses_that_are_built_by_hand_have_the_fields_of_their_models(api: Client) -> None:
    fields: dict[str, Any] = {
        "cron": "0 2 * * *",
        "timezone": "Europe/Rome",
        "misfire": {"policy": "all"},
        "overlap": "skip",
    }
    job = await given.job(api, **fields, jitter="5m", dst={"gap": "skip"}, payload={"a": 1}, tags=["night"])
    nodes = [{"name": "only", "job": job["name"]}]
    flow = (await api("POST", "/api/v1/workflows", {"name": given.name("flow"), "nodes": nodes, **fields})).json
    listed = (await api("GET", "/api/v1/jobs?recent=1")).json
    problem = (await api("POST", "/api/v1/jobs", {"name": "", "cron": "0 2 *"})).json

    for model, response in ((JobOut, job), (WorkflowOut, flow), (JobList, listed), (Problem, problem)):
        model.model_validate_json(json.dumps(response))


async def test_schemathesis_finds_no_lie_and_no_server_error(url: str, tmp_path: Path) -> None:
    async with node(url) as api:
        await given.put(api, await given.job(api, name="known"), "a")
        admin = await holder(await holder(api, "platform-admin"), "admin", "default")
        await _fuzz(admin, tmp_path)


async def _fuzz(api: KeyHolder, tmp_path: Path) -> None:
    assert (await api("GET", "/openapi.json")).status == 200  # made by the first request; schemathesis waits for 10 s
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "run", f"{api.base}/openapi.json",
        "--max-examples", EXAMPLES, "--phases", PHASES, "--checks", ",".join(CHECKS),
        "--header", f"Authorization: Bearer {api.key}",
        "--exclude-path", "/api/v1/events",  # an answer that does not end
        "--seed", "20261115", "--workers", "1", "--no-shrink", "--suppress-health-check", "all", "--warnings", "off",
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()[-20_000:]


async def test_operation_ids_are_short_and_unique(api: Client) -> None:
    document = (await api("GET", "/openapi.json")).json
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]

    assert len(set(names)) == len(names)
    assert {"create_job", "get_jobs", "put_instance"} <= set(names)
    assert not [name for name in names if "api_v1" in name]


async def test_the_reference_page_shows_every_operation_and_needs_no_other_server(api: Client) -> None:
    document = (await api("GET", "/openapi.json")).json
    async with api.session.get(api.base + "/docs") as response:
        page = await response.text()
        assert (response.status, response.content_type) == (200, "text/html")
        assert "default-src 'self'" in response.headers["Content-Security-Policy"]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in page, path
    for name in document["components"]["schemas"]:
        assert f'id="schema-{name}"' in page
    assert "http:" not in page.replace("http://127.0.0.1", "")
    assert not any(word in page for word in ("<script", "<style", 'style="', "//cdn"))
    async with api.session.get(api.base + "/docs.css") as response:
        assert (response.status, response.content_type) == (200, "text/css")
