"""What a search finds, on the wire."""

from datetime import datetime

from horai.wire.fields import Id, Model
from horai.wire.instances import StateName
from horai.wire.jobs import StatusName


class FoundJobOut(Model):
    """A job whose name contains what was typed."""

    id: Id
    name: str
    status: StatusName


class FoundWorkflowOut(Model):
    """A workflow whose name contains what was typed."""

    id: Id
    name: str


class FoundInstanceOut(Model):
    """An instance whose id was typed, or whose key begins with what was."""

    id: Id
    job: str
    job_id: Id
    key: str | None
    state: StateName
    fire_time: datetime


class SearchOut(Model):
    """What a few characters may mean; eight of each kind at the most."""

    jobs: list[FoundJobOut]
    workflows: list[FoundWorkflowOut]
    instances: list[FoundInstanceOut]
