"""The query parameters of paged lists."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from horai.api.cursors import instance_cursor, job_cursor
from horai.core.limits import PAGE_DEFAULT, PAGE_LIMIT
from horai.db.instance_lists import PageStart
from horai.wire.fields import Instant, Model

LAST = 2**63 - 1
"""Above every id."""


class PageQuery(Model):
    """The page of a list; subclasses add filters."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_DEFAULT
    cursor: str | None = None

    @property
    def before(self) -> int:
        """Return the id that all ids of the page are below, in a list with the newest first."""
        return LAST if self.cursor is None else job_cursor(self.cursor)


class TimedPageQuery(PageQuery):
    """The page of a list by time; subclasses add filters."""

    order: Literal["newest", "oldest"] = "newest"
    at: Annotated[
        Instant | None,
        Field(description="Begin the list at this time of its order, or at the next one that a row has."),
    ] = None

    @property
    def start(self) -> PageStart:
        """Return the start of the page. A cursor decides before a time: it continues the list that the time began."""
        upwards = self.order == "oldest"
        if self.cursor is not None:
            return PageStart(instance_cursor(self.cursor), upwards)
        return PageStart.of_all(upwards=upwards) if self.at is None else PageStart.from_time(self.at, upwards=upwards)
