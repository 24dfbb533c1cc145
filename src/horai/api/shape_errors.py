"""Pydantic's validation errors as sentences of Horai."""

from collections.abc import Mapping

from pydantic_core import ErrorDetails

from horai.text import Misshapen, Wrong
from horai.text.phrase import Phrase
from horai.text.wrong import NAME_PATTERN

_SENTENCES: Mapping[str, Misshapen] = {
    "extra_forbidden": Misshapen.UNKNOWN_FIELD,
    "missing": Misshapen.IS_MISSING,
    "string_type": Misshapen.NOT_A_TEXT,
    "int_type": Misshapen.NOT_WHOLE,
    "int_parsing": Misshapen.NOT_WHOLE,
    "int_from_float": Misshapen.NOT_WHOLE,
    "float_type": Misshapen.NOT_A_NUMBER,
    "float_parsing": Misshapen.NOT_A_NUMBER,
    "bool_type": Misshapen.NOT_YES_OR_NO,
    "bool_parsing": Misshapen.NOT_YES_OR_NO,
    "list_type": Misshapen.NOT_A_LIST,
    "dict_type": Misshapen.NOT_AN_OBJECT,
    "model_type": Misshapen.NOT_AN_OBJECT,
    "model_attributes_type": Misshapen.NOT_AN_OBJECT,
    "literal_error": Misshapen.NOT_ALLOWED,
    "greater_than_equal": Misshapen.LESS_THAN,
    "less_than_equal": Misshapen.MORE_THAN_MOST,
    "string_too_short": Misshapen.TOO_SHORT_A_TEXT,
    "string_too_long": Misshapen.TOO_LONG_A_TEXT,
    "too_short": Misshapen.TOO_FEW,
    "too_long": Misshapen.TOO_MANY,
    "string_pattern_mismatch": Misshapen.UNLIKE,
    "instant": Misshapen.NOT_AN_INSTANT,
    "years": Misshapen.NOT_IN_YEARS,
    "plain": Misshapen.NOT_PLAIN,
}
"""Sentences by error type: pydantic's, and our own of wire/fields.py."""


def misshapen(error: ErrorDetails) -> Phrase:
    """Return our sentence for an error, or pydantic's message if we have none."""
    shape = _SENTENCES.get(error["type"])
    if shape is None:
        return Wrong.AS_SAID(text=error["msg"].removeprefix("Value error, "))
    known = error.get("ctx") or {}
    if shape is Misshapen.UNLIKE and (name := NAME_PATTERN.search(str(known.get("pattern")))):
        return Misshapen.NO_NAME(most=int(name[1]) + 1)
    return shape(**{place: str(known.get(place, "")) for place in shape.places})
