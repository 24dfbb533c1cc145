"""The query parameters of paged lists."""

from typing import Annotated

from pydantic import ConfigDict, Field

from horai.api.cursors import job_cursor
from horai.core.settings import PAGE_DEFAULT, PAGE_LIMIT
from horai.wire.fields import Model

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
