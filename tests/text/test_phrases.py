"""Every sentence of Horai has a code, and every code is known in Chinese."""

import ast
import importlib
import json
import pkgutil
import re
from itertools import groupby
from pathlib import Path

import horai
from horai.core.errors import HoraiError
from horai.features.phrasebooks import BOOKS, every_phrase
from horai.text.phrase import Joined, Phrasebook

ROOT = Path(__file__).resolve().parents[2]
CHINESE = json.loads((ROOT / "console" / "src" / "i18n" / "zh-CN" / "said.json").read_text())
PLACE = re.compile(r"\{\{(\w+)\}\}")


def every_error() -> list[type[HoraiError]]:
    """The errors of core/errors.py."""
    return [each for each in HoraiError.__subclasses__() if each.__module__ == HoraiError.__module__]


class Greeting(Phrasebook):
    """For tests of the books themselves."""

    HELLO = "hello {name!r}, for the {count:,}th time"


def test_a_phrase_is_its_english_text_and_knows_its_code():
    said = Greeting.HELLO(name="O'Neil", count=1_200)

    assert said == 'hello "O\'Neil", for the 1,200th time'
    assert (said.code, said.params) == ("HELLO", {"name": "O'Neil", "count": 1_200})
    assert Greeting.HELLO.places == {"name", "count"}


def test_a_sentence_is_the_same_one_with_a_capital_and_a_full_stop():
    said = Greeting.HELLO(name="Eirene", count=2).sentence()

    assert (said, said.code, said.params["count"]) == ("Hello 'Eirene', for the 2th time.", "HELLO", 2)
    assert said.sentence() == said


def test_several_phrases_become_one_that_has_them_all():
    first, second, third = (Greeting.HELLO.worded(text) for text in ("one", "two", "three"))

    said = Joined.EITHER.all([first, second, third])

    assert said == "one, or two, or three"
    assert (said.code, said.params) == ("EITHER", {"parts": (first, second, third)})
    assert Joined.EITHER.all([first]) is first


def test_every_book_is_listed():
    for module in pkgutil.walk_packages(horai.__path__, "horai."):
        if module.name.startswith(("horai.core", "horai.operations", "horai.api", "horai.db")):
            importlib.import_module(module.name)

    assert set(BOOKS) == {book for book in Phrasebook.__subclasses__() if book.__module__.startswith("horai.")}


def test_a_code_means_one_sentence():
    codes = sorted(phrase.name for phrase in every_phrase())

    assert [code for code, found in groupby(codes) if len([*found]) > 1] == []
    assert [name for book in BOOKS for name in book.__members__ if book[name].name != name] == [], "two say the same"


def test_every_sentence_is_known_in_chinese_with_the_places_it_has():
    assert sorted(CHINESE) == sorted(phrase.name for phrase in every_phrase())
    for phrase in every_phrase():
        assert set(PLACE.findall(CHINESE[phrase.name])) == phrase.places, phrase.name


SPEAKING = ("text", "time", "core", "operations", "api", "db", "features")
"""The packages that answer requests; sentences only for a program or a terminal may be in English alone."""
AMONG_OURSELVES = {
    "operations/declarations.py": "told to a program that starts",
    "operations/declared_owner.py": "told to a program that starts",
    "operations/declared_queues.py": "told to a program that starts",
    "features/workflow/declare.py": "told to a program that starts",
    "db/migrate.py": "told to a terminal",
    "features/reconcile/rules.py": "kept in a report, in the words of the row",
    "core/wakes.py": "of one node to another",
    "core/log_levels.py": "told to a program",
    "time/cron/segments.py": "cannot be",
    "core/addresses.py": "of a flag",
    "core/bucket.py": "of a flag",
    "time/wheel.py": "of our own code",
    "time/schedule.py": "of what was stored",
    "time/cron/fires.py": "of what was stored",
    "time/durations.py": "of our own code",
    "core/put.py": "of our own code",
    "core/callbacks.py": "of the signing secret",
    "db/catalog.py": "of our own code",
    "db/archives.py": "of our own code",
    "operations/archive_directory.py": "of a record that this server has not written",
}
ERRORS = {"ValueError", "CronError", "JsonError", "NoRerun", "FieldError", *(each.__name__ for each in every_error())}


def told(path: Path) -> list[ast.Call]:
    """Where an error is made, or a fault is noted."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func).split(".")[-1] in ERRORS | {"add", "field"}]


def test_no_error_is_told_without_a_code():
    source = ROOT / "src" / "horai"
    mute = [
        f"{path.relative_to(source)}:{call.lineno} {ast.unparse(given)}"
        for layer in SPEAKING
        for path in sorted((source / layer).rglob("*.py"))
        if not str(path.relative_to(source)).startswith(tuple(AMONG_OURSELVES))
        for call in told(path)
        for given in call.args
        if isinstance(given, ast.JoinedStr | ast.Constant) and " " in ast.unparse(given)
    ]

    assert mute == []
