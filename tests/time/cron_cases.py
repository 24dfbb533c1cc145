"""The cases for the tests of cron: zones, expressions of every form, and policies.

`HORAI_TEST_SEED`, which is printed, chooses a sample; `HORAI_LONG=1` takes everything.
"""

import os
import random
from itertools import product

from horai.time.cron import DstPolicy

SEED = int(os.environ.get("HORAI_TEST_SEED") or random.SystemRandom().randrange(2**32))
POLICIES = [DstPolicy(gap, overlap) for gap, overlap in product(("shift", "skip"), ("first", "last", "both"))]
ZONES = {  # name: the first of two years, chosen for what the clock did in them
    **dict.fromkeys(["UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York"], 2025),
    **dict.fromkeys(["America/Los_Angeles", "America/Chicago", "America/St_Johns", "America/Halifax"], 2025),
    **dict.fromkeys(["America/Santiago", "America/Punta_Arenas", "America/Nuuk", "America/Scoresbysund"], 2024),
    **dict.fromkeys(["America/Havana", "America/Asuncion", "America/Mexico_City", "America/Bogota"], 2022),
    **dict.fromkeys(["America/Sao_Paulo", "America/Caracas", "America/Port-au-Prince", "America/Noronha"], 2016),
    **dict.fromkeys(["America/Recife", "America/Argentina/San_Luis", "America/Montevideo"], 2000),
    **dict.fromkeys(["Australia/Lord_Howe", "Australia/Adelaide", "Australia/Sydney", "Australia/Eucla"], 2025),
    **dict.fromkeys(["Pacific/Chatham", "Pacific/Auckland", "Pacific/Easter", "Pacific/Norfolk"], 2025),
    **dict.fromkeys(["Pacific/Apia", "Pacific/Fakaofo", "Pacific/Fiji", "Pacific/Tongatapu"], 2011),
    **dict.fromkeys(["Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Marquesas"], 1994),
    **dict.fromkeys(["Antarctica/Troll", "Antarctica/Casey", "Antarctica/Vostok", "Antarctica/McMurdo"], 2023),
    **dict.fromkeys(["Africa/Casablanca", "Africa/El_Aaiun", "Africa/Cairo", "Africa/Windhoek"], 2025),
    **dict.fromkeys(["Africa/Juba", "Africa/Khartoum", "Africa/Sao_Tome", "Asia/Pyongyang"], 2017),
    **dict.fromkeys(["Asia/Gaza", "Asia/Hebron"], 2040),
    **dict.fromkeys(["Asia/Beirut", "Asia/Tehran", "Asia/Amman", "Asia/Almaty"], 2022),
    **dict.fromkeys(["Asia/Shanghai", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo"], 2025),
    **dict.fromkeys(["Asia/Dhaka", "Asia/Karachi", "Asia/Ulaanbaatar"], 2009),
    **dict.fromkeys(["Europe/Moscow", "Europe/Simferopol", "Europe/Istanbul", "Europe/Volgograd"], 2014),
    **dict.fromkeys(["Atlantic/Azores", "Europe/Chisinau", "Asia/Jerusalem"], 2026),
}
EXPRESSIONS = [
    *["*/5 * * * *", "*/7 * * * *", "0 * * * *", "* 2 * * *", "*/20 1-3 * * *", "0 */2 * * *", "30 * * 3,10 *"],
    *["30 2 * * *", "0 0 * * *", "30 0 * * *", "0 2 * * *", "0 3 * * *", "15,45 1,2,3 * * *", "0-59 2 * * SUN"],
    *["0 9 * * 1-5", "30 1 * * 0", "0 0 13 * FRI", "0 0 */2 * MON", "5/20 23,0,1 * * *", "59 23 * * 6,7"],
    *["0 0 L * *", "30 2 * * SUN#2", "30 2 * 3,10 SUNL", "0 0 LW * 5", "0 12 29 2 *", "45 1 1,15,L * *"],
    *["0 */5 * * * ?", "30 30 2 * * ?", "*/20 30 1,2 * * ?", "0 0 22-2 * * ?", "0 0/15 0-3 ? * SAT-MON"],
    *["0 30 2 ? 3 1L", "0 0 0 ? * 6#1", "0 30 0 15W * ?", "0 0 1 1W * ?", "0 0 2 L-3W OCT-APR ?", "0 30 3 L-1 * ?"],
    *["0 15 2 1/3 NOV-MAR ? 2011/1", "59 59 23 LW * ? *", "0 0 0 ? * L 1994-2199/2"],
]


def random_item(dice: random.Random, low: int, high: int) -> str:
    first, last = sorted(dice.sample(range(low, high + 1), 2))
    step = dice.randint(1, max(2, (high - low) // 3))
    return dice.choice(
        [f"{first}", f"{first},{last}", f"{first}-{last}", f"{first}/{step}", f"{first}-{last}/{step}", f"*/{step}"]
    )


def random_expression(dice: random.Random) -> str:
    """Any expression that fires each year: fixed times around the usual changes more often than others."""
    is_quartz = dice.random() < 0.5
    minute = dice.choice([random_item(dice, 0, 59), dice.choice(["0", "30", "15,45"])])
    hour = dice.choice([random_item(dice, 0, 23), random_item(dice, 0, 3), "2", "*"])
    date = dice.choice(
        ["*", "*", random_item(dice, 1, 28), dice.choice(["L", "LW", "L-3", "L-2W", "15W", "1,L", "1W,15"])]
    )
    low = 1 if is_quartz else 0
    number = dice.randint(low, 7)
    weekday = dice.choice(
        [
            "*",
            "*",
            random_item(dice, low, 7),
            dice.choice([f"{number}L", f"{number}#2", "MON-FRI", "SUN#1,SUNL", "SUN"]),
        ]
    )
    if not is_quartz:
        return f"{minute} {hour} {date} {dice.choice(['*', '*', '1-11'])} {weekday}"
    if date != "*":
        weekday = "?"
    second, month = dice.choice(["0", "0", "30", "15,45"]), dice.choice(["*", "*", "OCT-APR"])
    return f"{second} {minute} {hour} {date} {month} {weekday}" + dice.choice(["", "", " *", " 1994-2199"])
