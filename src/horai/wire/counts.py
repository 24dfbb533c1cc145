"""Counts on the wire."""

from horai.wire.fields import Model


class CountOut(Model):
    """The number of rows that match. With `more`, at least `count` match: not all were read."""

    count: int
    more: bool
