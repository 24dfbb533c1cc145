"""Actions of the governor: what it does while a mode or a hold is in force."""

from horai.text.phrase import Phrasebook


class Action(Phrasebook):
    """Sentences about limits on dispatch."""

    REQUEST_SCALE = "More dispatchers are requested."
    PAUSE_LOW_PRIORITY = "Low-priority instances wait."
    HALVE_LOW_PRIORITY = "Low-priority instances start at no more than {rate} per second."
    THIN_LOW_PRIORITY = "Low-priority schedules that fire at least every 15 minutes leave out every second slot."
    FREEZE_LOW_PRIORITY = "Low-priority instances wait: an operator of the tenant has frozen them."
    LIMIT_RETRIES = "Retries start at no more than {rate} per second."
    CLOSE_BACKFILL = "New backfills are refused."
    SHORT_RETRIES_FIRST = "Retries of runs over 10 seconds wait for 10 minutes, so that short ones go first."
    CORE_JOBS_ONLY = "Only instances of priority core start."
    PAUSE_DISPATCH = "No instance starts: an operator has paused dispatch."
