"""The statements of an SQL script, split as PostgreSQL's own client splits them, and their tokens.

Strings, quoted names, dollar quotes, nested comments and bodies of `begin atomic` may contain semicolons.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

_TOKEN = re.compile(
    r"""(?P<line>--[^\n]*)|(?P<block>/\*)|(?P<escaped>e'(?:[^'\\]|\\.|'')*')|(?P<text>'(?:[^']|'')*')
    |(?P<name>"(?:[^"]|"")*")|(?P<dollar>\$(?:[a-z_]\w*)?\$)|(?P<word>[a-z_][\w$]*)|(?P<number>\d[\w.]*)|(?P<space>\s+)|(?P<other>.)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_COMMENT = re.compile(r"/\*|\*/")
_OPENS = frozenset({"begin", "case"})
_ROUTINES = frozenset({"function", "procedure"})


@dataclass(frozen=True, slots=True)
class ScriptToken:
    """A piece of a statement. `word` is in lower case unless it is quoted; `end` is its end in the statement's text."""

    word: str
    end: int


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement with the comments before it, without its semicolon."""

    text: str
    comments: tuple[str, ...] = ()
    tokens: tuple[ScriptToken, ...] = field(default=(), repr=False)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the tokens as words."""
        return tuple(token.word for token in self.tokens)

    def note(self, name: str) -> str | None:
        """Return the text of the comment line `-- name: text`; None without one."""
        found = (comment.removeprefix("--").strip() for comment in self.comments)
        return next((line.removeprefix(f"{name}:").strip() for line in found if line.startswith(f"{name}:")), None)

    def after(self, token: int) -> str:
        """Return the text after the token of that number."""
        return self.text[self.tokens[token].end :]


@lru_cache(maxsize=128)
def split_script(script: str) -> tuple[ScriptStatement, ...]:
    """Return the statements of a script, in order."""
    found: list[ScriptStatement] = []
    comments: list[str] = []
    tokens: list[ScriptToken] = []
    begin = 0
    for word, start, end in _tokens(script):
        if word.startswith(("--", "/*")):
            comments.append(word)
            continue
        if not tokens:
            begin = start
        if word == ";" and not _is_in_body(tokens):
            if tokens:
                found.append(ScriptStatement(script[begin:start].strip(), tuple(comments), tuple(tokens)))
            comments, tokens = [], []
            continue
        tokens.append(ScriptToken(word, end - begin))
    if tokens:
        found.append(ScriptStatement(script[begin:].strip(), tuple(comments), tuple(tokens)))
    return tuple(found)


def _tokens(script: str) -> Iterator[tuple[str, int, int]]:
    """Yield each token that is no white space, with its place. Comments and dollar quotes are one token each."""
    place = 0
    while found := _TOKEN.match(script, place):
        start, end = found.span()
        if found.lastgroup == "block":
            end = _end_of_comment(script, start)
        elif found.lastgroup == "dollar":
            closing = script.find(found[0], end)
            end = len(script) if closing < 0 else closing + len(found[0])
        place = end
        if found.lastgroup != "space":
            is_plain = found.lastgroup in {"word", "number"}
            yield script[start:end].lower() if is_plain else script[start:end], start, end


def _end_of_comment(script: str, start: int) -> int:
    depth = 0
    for mark in _COMMENT.finditer(script, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(script)


def _is_in_body(tokens: list[ScriptToken]) -> bool:
    """Return whether the tokens end inside the `begin atomic` body of a routine."""
    words = [token.word for token in tokens]
    if "atomic" not in words or words[0] != "create" or not _ROUTINES & set(words[:4]):
        return False
    body = words[words.index("atomic") :]
    return 1 + sum(word in _OPENS for word in body) - body.count("end") > 0
