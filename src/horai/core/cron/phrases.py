"""All that may be said of a cron expression: why a time is no slot of it."""

from horai.core.phrase import Phrasebook


class Mismatch(Phrasebook):
    """Which field does not allow a time."""

    NOT_A_SECOND = "{time} is not a whole second"
    NOT_ON_THE_MINUTE = "the second {number} is not 0: five fields fire on the minute"
    SECOND_IS = "the second {number} {is_not}"
    MINUTE_IS = "the minute {number} {is_not}"
    HOUR_IS = "the hour {number} {is_not}"
    MONTH_IS = "{month} {is_not}"
    DATE_IS = "the {day} {is_not}"
    WEEKDAY_IS = "{weekday} {is_not}"
    WEEKDAY_DATE_IS = "{weekday} the {day} {is_not}"
    YEAR_IS = "the year {number} {is_not}"
    NEITHER_DAY = "{date}, and {weekday}"

    IS_NOT = "is not {allowed}"
    IS_NONE_OF = "is not one of {allowed}"
    IS_NOT_DATE = "is not the {day}"
    IS_NOT_LAST_DAY = "is not the last day of the month ({text})"
    IS_NOT_BEFORE_LAST = "is not the day {count} before the last of the month ({text})"
    IS_NOT_LAST_WEEKDAY = "is not the last weekday of the month (LW)"
    IS_NOT_NEAREST = "is not the nearest weekday to the {day} ({text})"
    IS_NOT_NEAREST_LAST = "is not the nearest weekday to the last day of the month ({text})"
    IS_NOT_NEAREST_BEFORE_LAST = "is not the nearest weekday to the day {count} before the last of the month ({text})"
    IS_NOT_NTH = "is not the {nth} {weekday} of the month ({text})"
    IS_NOT_LAST = "is not the last {weekday} of the month ({text})"
    ORDINAL = "{number}th"


class Nth(Phrasebook):
    """Of the weekdays of a month."""

    NTH_1 = "first"
    NTH_2 = "second"
    NTH_3 = "third"
    NTH_4 = "fourth"
    NTH_5 = "fifth"


class Month(Phrasebook):
    """By their numbers."""

    MONTH_1 = "January"
    MONTH_2 = "February"
    MONTH_3 = "March"
    MONTH_4 = "April"
    MONTH_5 = "May"
    MONTH_6 = "June"
    MONTH_7 = "July"
    MONTH_8 = "August"
    MONTH_9 = "September"
    MONTH_10 = "October"
    MONTH_11 = "November"
    MONTH_12 = "December"


class Weekday(Phrasebook):
    """By their numbers, Sunday being 0."""

    WEEKDAY_0 = "Sunday"
    WEEKDAY_1 = "Monday"
    WEEKDAY_2 = "Tuesday"
    WEEKDAY_3 = "Wednesday"
    WEEKDAY_4 = "Thursday"
    WEEKDAY_5 = "Friday"
    WEEKDAY_6 = "Saturday"
