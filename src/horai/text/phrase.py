"""What Horai says to people: sentences that know which one they are.

A `Phrase` is its English text. Its code and its parameters are for whoever says it in another language; a parameter may
be a phrase itself. The sentences stand in books, each beside those who speak by it; `phrasebooks` names them all.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from string import Formatter
from typing import Self

Params = Mapping[str, "str | int | tuple[Phrase, ...]"]
"""What stands in the places of a sentence; of joined ones, `parts`."""


class Phrase(str):
    """A text in English, with the code of its sentence and what was put into it."""

    code: str
    params: Params

    @classmethod
    def of(cls, text: str, code: str, params: Params) -> Self:
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
    """Phrases one after the other; each value is what stands between them."""

    LISTED = ", "
    EITHER = ", or "
    BESIDES = "; "
    THEN = " "

    def all(self, phrases: Iterable[Phrase]) -> Phrase:
        """Several as one; one stays as it is."""
        parts = tuple(phrases)
        return parts[0] if len(parts) == 1 else Phrase.of(self.value.join(parts), self.name, {"parts": parts})
