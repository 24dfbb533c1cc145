"""The parts of `executor="ray"` that need no Ray: declarations, requirements, outcomes, and the hold on claims."""

import asyncio
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
import ray_app

from horai import Horai, Invalid, Node
from horai.core.outcome import FailedRetryable, Lost, NotSent, Outcome
from horai.core.shares import Shares
from horai.ray_tasks.driver import is_alive
from horai.ray_tasks.fates import fate_of
from horai.ray_tasks.start import address_of, follow_cluster, require_ray
from horai.ray_tasks.tasks import UNREACHABLE, RayTasks
from horai.sdk import worker
from horai.sdk.ray_resources import RayResources
from horai.sdk.worker import WorkerSettings
from isolation.isolated_calls import call


def declared(**options: Any) -> RayResources | None:
    async def function() -> None:
        """Do nothing."""

    return Horai("x").job(name="f", **options)(function).declaration.ray


def test_a_job_on_ray_has_the_resources_that_it_declares():
    assert declared() is None
    assert declared(executor="ray") == RayResources(1, 0, None)
    chosen = declared(executor="ray", resources={"num_cpus": 0.5, "num_gpus": 2, "memory": 2**30})

    assert chosen is not None
    assert chosen.options() == {"num_cpus": 0.5, "num_gpus": 2, "memory": 2**30}
    assert RayResources().options() == {"num_cpus": 1, "num_gpus": 0}


@pytest.mark.parametrize(
    ("options", "says", "hint"),
    [
        ({"executor": "dask"}, 'executor must be "ray"', "Leave it out"),
        ({"resources": {"num_cpus": 1}}, 'only accepted with executor="ray"', 'Add executor="ray"'),
        ({"executor": "ray", "isolation": "process"}, "isolation is not accepted together", "process of its own"),
        ({"executor": "ray", "resources": 3}, "must be a mapping, not int", "num_cpus"),
        ({"executor": "ray", "resources": {"num_cpu": 1}}, "has no resource 'num_cpu'", "Did you mean 'num_cpus'?"),
        ({"executor": "ray", "resources": {"TPU": 1}}, "has no resource 'TPU'", "Known: num_cpus, num_gpus, memory."),
        ({"executor": "ray", "resources": {"num_cpus": -1}}, "num_cpus is not a number", "num_cpus"),
        ({"executor": "ray", "resources": {"num_cpus": True}}, "num_cpus is not a number", "num_cpus"),
        ({"executor": "ray", "resources": {"num_cpus": float("nan")}}, "num_cpus is not a number", "num_cpus"),
        ({"executor": "ray", "resources": {"num_gpus": 1.5}}, "must be a whole number", "num_gpus"),
        ({"executor": "ray", "resources": {"memory": 0}}, "memory is not a whole number of bytes", "memory"),
        ({"executor": "ray", "resources": {"memory": "4GB"}}, "memory is not a whole number of bytes", "memory"),
    ],
)
def test_a_wrong_option_of_a_job_on_ray_is_refused(options: dict[str, Any], says: str, hint: str):
    with pytest.raises(Invalid) as refused:
        declared(**options)

    assert says in refused.value.detail.replace(": ", " ")
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize("option", [{"executor": "ray"}, {"resources": {"num_cpus": 1}}])
def test_a_workflow_has_no_executor_of_its_own(option: dict[str, Any]):
    with pytest.raises(Invalid, match="is not for workflows"):
        Horai("x").workflow("flow", [Node("f")], **option)


def test_a_worker_without_ray_refuses_to_start_and_names_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed

    with pytest.raises(Invalid, match="which is not installed") as refused:
        asyncio.run(worker.run(ray_app.app, WorkerSettings(reference="ray_app:app"), asyncio.Event(), print))

    assert refused.value.hint == "Install it: pip install 'horai[ray]'."


@pytest.mark.parametrize(
    ("reference", "address", "says"),
    [(None, "auto", "do not know where to find"), ("ray_app:app", "ray://head:10001", "that of a Ray Client")],
)
def test_a_worker_that_cannot_run_tasks_refuses_to_start(
    reference: str | None, address: str, says: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "ray", sys)  # as if it were installed: it is not used

    with pytest.raises(Invalid, match=says):
        require_ray(ray_app.app, reference, address)


def test_ray_is_not_imported_by_declarations_and_by_workers():
    script = "import sys, ray_app, horai.sdk.worker, horai.ray_tasks.driver; sys.exit('ray' in sys.modules)"

    code = f"import sys; sys.path[:] = {sys.path!r}; {script}"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_address_of_the_cluster_is_that_of_ray_itself():
    assert address_of({"RAY_ADDRESS": "10.0.0.1:6379"}) == "10.0.0.1:6379"
    assert address_of({}) == "auto"


@pytest.mark.parametrize(
    ("names", "outcome"),
    [
        (["NodeDiedError", "RayError"], Lost("The Ray cluster has lost the task: why")),
        (["ObjectLostError", "RayError"], Lost("The Ray cluster has lost the task: why")),
        (["OwnerDiedError", "ObjectLostError", "RayError"], Lost("The Ray cluster has lost the task: why")),
        (["LocalRayletDiedError", "RayError"], Lost("The Ray cluster has lost the task: why")),
        (["WorkerCrashedError", "RayError"], Lost("The process of the task died: why", is_crash=True)),
        (["OutOfMemoryError", "RayError"], Lost("The process of the task died: why", is_crash=True)),
        (["TaskCancelledError", "RayError"], Lost("The task was cancelled in the Ray cluster.")),
        (["RayTaskError(ImportError)", "RayTaskError", "RayError"], FailedRetryable("RAY_TASK_FAILED", "why")),
        (["RuntimeEnvSetupError", "RayError"], FailedRetryable("RAY_TASK_FAILED", "why")),
    ],
)
def test_the_errors_of_ray_become_losses_and_failures(names: list[str], outcome: Outcome):
    assert fate_of(names, "why\n") == outcome


def test_a_task_that_the_driver_has_ended_is_neither_lost_nor_crashed():
    cancelled = ["TaskCancelledError", "RayError"]

    assert fate_of(cancelled, "", is_over=True) == NotSent()
    late = fate_of(["WorkerCrashedError"], "", timeout=timedelta(seconds=3))
    assert late == FailedRetryable("TIMEOUT", "The function did not end within 3s.")


@pytest.mark.parametrize(
    ("nodes", "alive"),
    [
        ([{"NodeID": "a", "Alive": True}, {"NodeID": "b", "Alive": False}], True),
        ([{"NodeID": "a", "Alive": False}, {"NodeID": "b", "Alive": True}], False),
        ([{"NodeID": "b", "Alive": True}], False),
    ],
)
def test_a_driver_whose_node_is_not_alive_in_the_cluster_is_lost(nodes: list[dict[str, Any]], alive: bool):
    assert is_alive("a", nodes) is alive


async def test_without_a_cluster_no_call_begins_and_the_log_says_what_to_do(capfd: pytest.CaptureFixture[str]):
    tasks, shares = RayTasks("ray_app:app", "127.0.0.1:1"), Shares(10, ["square", "beside"])
    follow_cluster(tasks, ray_app.app, shares, lambda: None)
    tasks.start()
    try:
        assert await tasks.run(call("square", 3), "square", {}) == UNREACHABLE
        said = ""
        async with asyncio.timeout(30):
            while "Ray cannot be reached" not in said:
                await asyncio.sleep(0.02)
                captured = capfd.readouterr()
                said += captured.out + captured.err
    finally:
        await tasks.close()

    assert "127.0.0.1:1 does not answer" in said
    assert "ray start --address" in said
    assert not shares.may_begin("square")
    assert shares.may_begin("beside")
