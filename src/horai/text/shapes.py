"""Errors of a field's type, limits or presence: the request does not match its model."""

from horai.text.phrase import Phrasebook


class Misshapen(Phrasebook):
    """Errors of a field; the name of the field precedes the sentence."""

    NOT_A_TEXT = "is not a string"
    NOT_WHOLE = "is not a whole number"
    NOT_A_NUMBER = "is not a number"
    NOT_YES_OR_NO = "is neither true nor false"
    NOT_A_LIST = "is not a list"
    NOT_AN_OBJECT = "is not an object"
    NOT_ALLOWED = "is not {expected}"
    LESS_THAN = "is less than {ge}"
    MORE_THAN_MOST = "is more than {le}"
    TOO_SHORT_A_TEXT = "has fewer than {min_length} characters"
    TOO_LONG_A_TEXT = "has more than {max_length} characters"
    TOO_FEW = "has fewer than {min_length} items"
    TOO_MANY = "has more than {max_length} items"
    UNLIKE = "does not match {pattern}"
    NO_NAME = (
        "is not a name: use letters, digits, dots, hyphens and underscores, starting with a letter or digit, "
        "at most {most} characters"
    )
    UNKNOWN_FIELD = "unknown field"
    IS_MISSING = "is missing"
    NOT_AN_INSTANT = "is not an instant with an offset, such as 2026-11-15T09:00:00+08:00 or 2026-11-15T01:00:00Z"
    NOT_IN_YEARS = "is not between the years 1970 and 9000"
    NOT_PLAIN = "contains a NUL character or a lone surrogate"
