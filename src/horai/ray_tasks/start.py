"""The start of a worker whose application has functions on Ray: its requirements, and its claims."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec

from horai.core.errors import Invalid
from horai.core.shares import Shares
from horai.ray_tasks.tasks import RayTasks
from horai.sdk.app import Horai

PACKAGE = "ray"
CLIENT = "ray://"


def address_of(environ: Mapping[str, str]) -> str:
    """Return the address of the cluster: RAY_ADDRESS, or the cluster that has a node on this machine."""
    return environ.get("RAY_ADDRESS") or "auto"


def jobs_on_ray(app: Horai) -> list[str]:
    """Return the names of the application's jobs with `executor="ray"`."""
    return [job.name for job in app.jobs.values() if job.declaration.ray is not None]


def require_ray(app: Horai, reference: str | None, address: str) -> None:
    """Raise `Invalid` if the application has functions on Ray and the worker cannot run them."""
    wanting = jobs_on_ray(app)
    if not wanting:
        return
    if app.lifecycle.needs_process:
        raise Invalid(
            f"The job {wanting[0]!r} runs as a Ray task, in which hooks and resources of the application do not run.",
            "Prepare what it needs inside the function, or run it in the worker, without executor.",
        )
    if find_spec(PACKAGE) is None:
        raise Invalid(
            f"The job {wanting[0]!r} runs on Ray, which is not installed.", "Install it: pip install 'horai[ray]'."
        )
    if reference is None:
        raise Invalid(
            f"The job {wanting[0]!r} runs on Ray, whose nodes do not know where to find the application.",
            "Start the worker with `horai worker module:app`.",
        )
    if address.startswith(CLIENT):
        raise Invalid(
            f"The address {address} is that of a Ray Client, which ends the tasks of a connection that breaks.",
            "Run the worker on a node of the cluster: `ray start --address=HEAD:6379 --num-cpus=0`, and leave --ray-address out.",
        )


def ray_tasks(app: Horai, reference: str | None, address: str) -> RayTasks | None:
    """Return the tasks of the application's functions on Ray; None if it has none."""
    require_ray(app, reference, address)
    return RayTasks(reference, address) if reference is not None and jobs_on_ray(app) else None


def follow_cluster(tasks: RayTasks, app: Horai, shares: Shares, make_room: Callable[[], None]) -> None:
    """Let the worker claim instances of its jobs on Ray only while the cluster is reached."""
    names = jobs_on_ray(app)

    def change(is_reached: bool) -> None:
        for name in names:
            if is_reached:
                shares.resume(name)
            else:
                shares.suspend(name)
        if is_reached:
            make_room()

    change(tasks.is_reached)
    tasks.on_change = change
