"""The number of cases that a test tries: a few in every run, and all of them in the long form (HORAI_LONG=1)."""

import os

IS_LONG = os.environ.get("HORAI_LONG") == "1"


def examples(count: int) -> int:
    """Return how many examples Hypothesis makes: `count` in the long form, a fifth of them otherwise."""
    return count if IS_LONG else max(count // 5, 10)
