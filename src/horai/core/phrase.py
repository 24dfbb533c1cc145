"""What Horai says to people: sentences that know which one they are.

A `Phrase` is its English text. Its code and its parameters are for whoever says it in another language; a parameter may
be a phrase itself. The sentences stand in books, each beside those who speak by it; `phrasebooks` names them all.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import reduce
from string import Formatter
from typing import Self


class Phrase(str):
    """A text in English, with the code of its sentence and what was put into it."""

    code: str
    params: "Mapping[str, str | int]"

    @classmethod
    def of(cls, text: str, code: str, params: Mapping[str, str | int]) -> Self:
        """The sentence `code`, which reads `text`."""
        phrase = cls(text)
        phrase.code, phrase.params = code, params
        return phrase

    def sentence(self) -> "Phrase":
        """The same with a capital letter and a full stop."""
        return Phrase.of(self[:1].upper() + self[1:] + ("" if self.endswith(".") else "."), self.code, self.params)


class Phrasebook(Enum):
    """Sentences by their codes. Each value is the English, with a place for each parameter, as `str.format` has it."""

    def __call__(self, **params: str | int) -> Phrase:
        """The sentence with its parameters."""
        return Phrase.of(str(self.value).format_map(params), self.name, params)

    def worded(self, text: str, **params: str | int) -> Phrase:
        """The same where English inflects, and says it as `text`."""
        return Phrase.of(text, self.name, params)

    @property
    def places(self) -> frozenset[str]:
        """The names of its parameters."""
        return frozenset(name for _, name, _, _ in Formatter().parse(str(self.value)) if name)


class Joined(Phrasebook):
    """Phrases one after the other."""

    LISTED = "{these}, {that}"
    EITHER = "{these}, or {that}"
    BESIDES = "{these}; {that}"
    THEN = "{these} {that}"

    def all(self, phrases: Iterable[Phrase]) -> Phrase:
        """Several as one; at least one."""
        return reduce(lambda these, that: self(these=these, that=that), phrases)
