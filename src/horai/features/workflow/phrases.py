"""Sentences about nodes of runs: why a node was skipped."""

from horai.text.phrase import Phrasebook


class SkipWords(Phrasebook):
    """The reason why a node was skipped."""

    RULE_NOT_MET = "its trigger rule {rule} cannot be met: {parents}"
    NODE_STANDS = "{node!r} is {state}"
    PASSED_OVER = "a node before it chose other nodes"
    SKIPPED_ITSELF = "its function skipped it"
    SKIPPED_BECAUSE = "its function skipped it: {reason}"
    NOT_READY = "its condition was not met at its deadline"
