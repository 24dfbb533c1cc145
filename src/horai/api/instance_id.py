"""Ids of instances in paths."""

from horai.core.digits import number_in
from horai.core.errors import NotFound
from horai.text import Hint, Refused


def instance_id_of(text: str) -> int:
    """Parse the id of an instance in a path. Raises `NotFound` if it is not an id."""
    if (number := number_in(text)) is None:
        raise NotFound(Refused.NO_INSTANCE_NAMED(instance=text[:40]), Hint.LISTED_AT(path="/api/v1/instances"))
    return number
