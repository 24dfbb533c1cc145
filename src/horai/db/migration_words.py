"""A reader of the words of one statement, from left to right."""

from collections.abc import Sequence

_OPEN, _CLOSE = frozenset({"(", "["}), frozenset({")", "]"})


class WordReader:
    """Reads words. A method that finds something moves behind it."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(words)
        self.place = 0

    @property
    def rest(self) -> tuple[str, ...]:
        """Return the words that were not read."""
        return self._words[self.place :]

    def take(self, *wanted: str) -> bool:
        """Read these words if they come next."""
        if self.rest[: len(wanted)] != wanted:
            return False
        self.place += len(wanted)
        return True

    def take_any(self, *wanted: str) -> None:
        """Read any of these words as long as one comes next."""
        while self.rest and self.rest[0] in wanted:
            self.place += 1

    def skip_to(self, word: str) -> bool:
        """Read up to and including the next `word`, or nothing if there is none."""
        if word not in self.rest:
            return False
        self.place += self.rest.index(word) + 1
        return True

    def name(self) -> str:
        """Read a name, with its schema if there is one; quotes are removed."""
        parts = [self._one()]
        while self.take("."):
            parts.append(self._one())
        return ".".join(parts)

    def _one(self) -> str:
        if not self.rest:
            return ""
        word = self.rest[0]
        self.place += 1
        return word[1:-1].replace('""', '"') if word.startswith('"') else word

    def parts(self) -> list[tuple[str, ...]]:
        """Split the rest at the commas outside of parentheses."""
        found: list[list[str]] = [[]]
        for word, depth in with_depth(self.rest):
            if word == "," and depth == 0:
                found.append([])
            else:
                found[-1].append(word)
        return [tuple(part) for part in found if part]


def with_depth(words: Sequence[str]) -> list[tuple[str, int]]:
    """Return each word with the number of parentheses around it."""
    depth = 0
    found: list[tuple[str, int]] = []
    for word in words:
        depth -= word in _CLOSE
        found.append((word, depth))
        depth += word in _OPEN
    return found


def outer(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words outside of parentheses."""
    return tuple(word for word, depth in with_depth(words) if depth == 0)


def follows(words: Sequence[str], *wanted: str) -> bool:
    """Return whether `wanted` occurs in the words, one directly after the other."""
    return any(tuple(words[place : place + len(wanted)]) == wanted for place in range(len(words)))


def names_after(words: Sequence[str], word: str) -> list[str]:
    """Return the name after each `word`."""
    found: list[str] = []
    for place, each in enumerate(words):
        if each == word:
            reader = WordReader(words[place + 1 :])
            found.append(reader.name())
    return found
