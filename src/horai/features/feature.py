"""The `Feature` record: what a capability adds to the kernel."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from horai.text.phrase import Phrasebook


@dataclass(frozen=True, slots=True)
class Feature:
    """A description of what a capability adds to the kernel. Every field but the name is optional.

    Modules are given by name. Each process imports only those it needs: a worker imports no routes, a client no stages.
    """

    name: str
    routes: tuple[str, ...] = ()
    """Modules with a `router`. An optional function `prepare(app)` adds the state that their requests share."""
    stage: str | None = None
    """A module with `stages(parts: StageParts) -> list[Stage]`."""
    executor: str | None = None
    """A module with a `HANDLER` and a context manager `executor(parts: ExecutorParts)`."""
    on_job: str | None = None
    """A module with `HOOKS` into the life of a job (operations/job_hooks.py)."""
    phrases: tuple[type[Phrasebook], ...] = ()
    kind: str | None = None
    """A module with a `KIND` of definitions (operations/definitions.py)."""

    def module(self, name: str) -> Any:
        """Import a module of the feature's folder."""
        return import_module(f"horai.features.{self.name}.{name}")
