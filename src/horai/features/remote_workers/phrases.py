"""The sentences of the worker protocol."""

from horai.text.phrase import Phrasebook


class WorkerWords(Phrasebook):
    """Errors and answers that a remote worker gets."""

    NOT_A_MESSAGE = "The message does not follow the worker protocol: {error}."
    HELLO_FIRST = "The first message must be hello, within {seconds} s."
    OTHER_PROTOCOL = "The server speaks version {ours} of the worker protocol, not {theirs}."
    NOT_AN_OFFER = "The worker offers nothing that it could run: {error}."
    NOT_DECLARED = "The jobs of the code cannot be declared: {error}."
    CREDITS_OUTSIDE = "A worker has 1 to {most} credits."
    TOO_MANY_WORKERS = "{most} workers are connected to this server already."
    TOO_MANY_OF_KEY = "{most} workers are connected with this key already."
    NO_ENGINE = "This server serves no remote workers."
    KEY_GONE = "The key is no longer in force."
    NOT_ITS_TENANT = "A key of the platform has no tenant, so it runs nothing."
    NOT_AN_INSTANCE = "{instance!r} is not the id of an instance."
    HELD_BY_OTHER = "Another session runs this attempt."
    NO_SUCH_ATTEMPT = "The tenant has no such instance."
