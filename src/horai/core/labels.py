"""Labels: the title, the description and the owner that people give to a job, in any script.

A job is found by its name; labels only tell people about it.
"""

from collections.abc import Mapping
from typing import Any

from horai.core.jsontext import JsonError, check_text
from horai.core.validation import Validation
from horai.text import Hint, Wrong, told_by

LONGEST_LABELS: Mapping[str, int] = {"title": 200, "description": 4_000, "owner": 200}
"""The labels with their greatest lengths, in characters."""


def check_labels(document: Mapping[str, Any], faults: Validation) -> None:
    """Add a fault for each label that is empty, too long, or has line breaks where only one line is shown."""
    for field, most in LONGEST_LABELS.items():
        text: object = document.get(field)
        if text is None:
            continue
        if not isinstance(text, str) or not text.strip():
            faults.add(field, Wrong.EMPTY_LABEL(), Hint.LEAVE_OUT_LABEL())
        elif len(text) > most:
            faults.add(field, Wrong.TOO_LONG(most=most))
        elif field != "description" and not text.isprintable():
            faults.add(field, Wrong.NOT_ONE_LINE(), Hint.ONE_LINE_LABEL())
        else:
            _check_stored(field, text, faults)


def _check_stored(field: str, text: str, faults: Validation) -> None:
    try:
        check_text(text)
    except JsonError as error:
        faults.add(field, told_by(error))
