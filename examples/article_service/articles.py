"""The states of an article and the moves between them. Pure: it knows neither the caller nor the storage.

DRAFT → AUDITING → AUDIT_SUCCESS → PUBLISHED; AUDITING → AUDIT_FAILED → AUDITING again; an author may withdraw an
article that is not published yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Status(StrEnum):
    """Where an article stands."""

    DRAFT = "DRAFT"
    AUDITING = "AUDITING"
    AUDIT_FAILED = "AUDIT_FAILED"
    AUDIT_SUCCESS = "AUDIT_SUCCESS"
    PUBLISHED = "PUBLISHED"
    WITHDRAWN = "WITHDRAWN"


MOVES: Mapping[Status, frozenset[Status]] = {
    Status.DRAFT: frozenset({Status.AUDITING}),
    Status.AUDITING: frozenset({Status.AUDIT_SUCCESS, Status.AUDIT_FAILED, Status.WITHDRAWN}),
    Status.AUDIT_FAILED: frozenset({Status.AUDITING}),
    Status.AUDIT_SUCCESS: frozenset({Status.PUBLISHED, Status.WITHDRAWN}),
    Status.PUBLISHED: frozenset(),
    Status.WITHDRAWN: frozenset(),
}
"""All moves there are; every other one is refused."""

MOVABLE = frozenset({Status.DRAFT, Status.AUDITING, Status.AUDIT_FAILED, Status.AUDIT_SUCCESS})
"""Where the author may still change the publish time."""


@dataclass(frozen=True, slots=True)
class Article:
    """An article as it was read. `version` grows with every change; `told` is the last one that Horai has taken in."""

    id: int
    title: str
    text: str
    status: Status
    publish_at: datetime
    version: int
    told: int


class IllegalMove(Exception):
    """The article is not where this could be done."""


def sources(to: Status) -> frozenset[Status]:
    """From where an article may come to `to`."""
    return frozenset(status for status, targets in MOVES.items() if to in targets)


def is_fit_to_print(article: Article) -> bool:
    """Return true if the auditors accept the article."""
    return "forbidden" not in article.text.lower()
