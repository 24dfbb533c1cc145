"""The sentences about a cron expression: its faults, and the reasons why a time is not one of its slots."""

from horai.text.phrase import Phrasebook


class CronFault(Phrasebook):
    """The faults of an expression, and what to write instead."""

    NO_NEXT_FIRE = "cron has no next fire time"
    NO_DAY_HAS = "no day{years} has the day of month {day} in the month {month} on the weekday {weekday}"
    OF_YEARS = " of the years {years}"
    NO_SUCH_DAY = "no month has a day {text}"
    LAST_TAKES = "L-n takes 0-30"
    NO_DATE = "{text} is no day of month"
    NO_NTH = "no month has a {text}"
    NTH_TAKES = "# takes 1-5: FRI#2 is the second Friday"
    NO_WEEKDAY = "{text} is no day of week"
    L_NO_WEEKDAY = "L is no day of week"
    WRITE_SAT = "write SAT or SUN, or FRIL for the last Friday"
    DATE_FORMS = "write L, L-3, LW, L-3W or 15W, each as one item of a list"
    WEEKDAY_FORMS = "write FRI#2 for the second Friday, FRIL for the last, each as one item of a list"
    FORMS = (
        "write 5 fields (minute hour day month weekday) or 6 or 7 (second minute hour day month weekday [year]), "
        "or one of @yearly @monthly @weekly @daily @hourly"
    )
    CRON_TOO_LONG = "cron is longer than {most} characters"
    USE_RANGES = "use ranges and steps"
    CRON_CHARACTER = "cron has the character {character!r}, which is not printable ASCII"
    WRITE_ASCII = "write it in ASCII"
    REBOOT = "@reboot names no time"
    TRIGGER_AT_START = "trigger the job when the machine starts, by the API or CLI"
    AT_EVERY = "@every is no cron"
    USE_EVERY = 'use `every` instead of `cron`: "every": "{interval}"'
    NO_NICKNAME = "{name} is no nickname"
    WRITE_NICKNAME = "write one of {names}, or 5 to 7 fields"
    STANDS_ALONE = "{name} stands alone"
    LEAVE_OUT = "leave out what follows it"
    FIELD_COUNT = "cron has {count} fields, not 5, 6 or 7"
    BOTH_DAYS = "day of month and day of week are both restricted"
    WRITE_OPEN = "write ? in one of them, or two schedules"
    EMPTY_ITEM = "{field} has an empty item"
    TWO_STEPS = "{text} has more than one step"
    STEP_ONCE = "write a step once: 0/15"
    BACKWARDS = "{field} range {text} runs backwards"
    WRITE_WRAPPED = "write {first}-{high},{low}-{last}, or use the 6-field form, where ranges may wrap"
    TWO_DASHES = "{text} has more than one dash"
    RANGE_ONCE = "write a range once: 1-5"
    EMPTY_VALUE = "{field} has an empty value"
    OPEN_ALONE = "? stands alone"
    OPEN_FOR_DAYS = "? is for the day fields of the 6-field form: write *"
    OPEN_IN_FIELD = "? is no {field}"
    NOT_IN_FIELD = "{text} is no {field}"
    OUT_OF_RANGE = "{field} {number} is out of range"
    WRITE_STEP = "write a step of 1 to {most}, as in */5"
    STEP_NO_NUMBER = "step {text!r} of {field} is not a number"
    STEP_RANGE = "step {number} of {field} is out of range"
    TAKES = "{field} takes {low}-{high}{names}"
    OR_NAMES = " or {first}-{last}"


class CronField(Phrasebook):
    """The fields of an expression."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY_OF_MONTH = "day of month"
    MONTH = "month"
    DAY_OF_WEEK = "day of week"
    YEAR = "year"


class Mismatch(Phrasebook):
    """The field that does not allow a time."""

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
    """The ordinals of the weekdays of a month."""

    NTH_1 = "first"
    NTH_2 = "second"
    NTH_3 = "third"
    NTH_4 = "fourth"
    NTH_5 = "fifth"


class Month(Phrasebook):
    """The names of the months by number."""

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
    """The names of the weekdays by number, with Sunday as 0."""

    WEEKDAY_0 = "Sunday"
    WEEKDAY_1 = "Monday"
    WEEKDAY_2 = "Tuesday"
    WEEKDAY_3 = "Wednesday"
    WEEKDAY_4 = "Thursday"
    WEEKDAY_5 = "Friday"
    WEEKDAY_6 = "Saturday"
