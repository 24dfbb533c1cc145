"""Wire models of the search."""

from datetime import datetime

from horai.wire.fields import Id, Model
from horai.wire.instances import StateName
from horai.wire.jobs import StatusName


class FoundJobOut(Model):
    """A job whose name or title contains the text."""

    id: Id
    name: str
    status: StatusName
    title: str | None


class FoundWorkflowOut(Model):
    """A workflow whose name contains the text."""

    id: Id
    name: str


class FoundInstanceOut(Model):
    """An instance whose id is the text, or whose key begins with it."""

    id: Id
    job: str
    job_id: Id
    key: str | None
    state: StateName
    fire_time: datetime


class SearchOut(Model):
    """The results of a search; at most eight of each kind."""

    jobs: list[FoundJobOut]
    workflows: list[FoundWorkflowOut]
    instances: list[FoundInstanceOut]
