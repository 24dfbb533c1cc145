"""Sentences of the governor: why a mode is active."""

from horai.text.phrase import Phrasebook


class GovernorWords(Phrasebook):
    """Causes of modes."""

    DELAY_HIGH = "Of the starts of the last minute, 5 % were more than {value} ms late; the threshold is {limit} ms."
    STALLED = "The oldest instance that nothing holds has been due for {value} ms; the threshold is {limit} ms."
    SUCCESS_LOW = "Of the attempts of the last 10 minutes, {value} % succeeded; the threshold is {limit} %."
    BACKLOG_HIGH = "{value} instances wait for a retry; the threshold is {limit}."
    LETTERS_FAST = "{value} dead letters were added in the last minute; the threshold is {limit}."
    BY_HAND = "An operator has set it by hand."
    BY_HAND_NOTED = "An operator has set it by hand: {note}"
