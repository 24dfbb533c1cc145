"""Translatable sentences: English text plus code and parameters.

A `Phrase` is its English text. Clients translate it by its code and parameters; a parameter may itself be a phrase.
Each `Phrasebook` is next to the code that uses it; `phrasebooks` lists them all.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from string import Formatter
from typing import Self

Params = Mapping[str, "str | int | tuple[Phrase, ...]"]
"""Values of the placeholders of a sentence; joined phrases have `parts`."""


class Phrase(str):
    """An English text with the code and the parameters of its sentence."""

    code: str
    params: Params

    @classmethod
    def of(cls, text: str, code: str, params: Params) -> Self:
        """Return the sentence `code` with the English `text`."""
        phrase = cls(text)
        phrase.code, phrase.params = code, params
        return phrase

    def sentence(self) -> "Phrase":
        """Return the phrase with a capital letter and a full stop."""
        return Phrase.of(self[:1].upper() + self[1:] + ("" if self.endswith(".") else "."), self.code, self.params)


class Phrasebook(Enum):
    """Sentences by code. Each value is the English text, with a `str.format` placeholder for each parameter."""

    def __call__(self, **params: str | int) -> Phrase:
        """Return the sentence with these parameters."""
        return Phrase.of(str(self.value).format_map(params), self.name, params)

    def worded(self, text: str, **params: str | int) -> Phrase:
        """Return the sentence with the English `text`, for texts that need inflection."""
        return Phrase.of(text, self.name, params)

    @property
    def places(self) -> frozenset[str]:
        """Return the names of the parameters."""
        return frozenset(name for _, name, _, _ in Formatter().parse(str(self.value)) if name)


class Joined(Phrasebook):
    """Phrases in sequence; each value is the separator between them."""

    LISTED = ", "
    EITHER = ", or "
    BESIDES = "; "
    THEN = " "

    def all(self, phrases: Iterable[Phrase]) -> Phrase:
        """Join phrases into one; return a single phrase unchanged."""
        parts = tuple(phrases)
        return parts[0] if len(parts) == 1 else Phrase.of(self.value.join(parts), self.name, {"parts": parts})
