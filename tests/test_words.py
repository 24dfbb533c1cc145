"""One word for one thing, and plain English: in names, docstrings, help, errors, logs and documentation."""

import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from syntax import nodes_of

from horai.features.phrasebooks import every_phrase

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "horai"
PYTHON = sorted(PACKAGE.rglob("*.py"))
SQL = [path for path in sorted(PACKAGE.rglob("*.sql")) if path.parent.name != "migrations"]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
KERNEL_FILES = 22

AVOIDED = re.compile(
    r"\b(whoever|whatever|whichever|somebody|(?<!user )nobody|anybody|someone|anyone|everybody|came to|became of|becomes? of"
    r"|comes? of it|came of|anew|at hand|let(?:s|ting)? (?:\w+ )?go|a word of)\b",
    re.IGNORECASE,
)
"""Actors without a name, and phrases that have to be read twice."""
CLAUSE = re.compile(r"(?:^|[.:;] )(?:What|Who|Whoever|Which|How|Whether)\b[^.?]*(?:\.|$)")
"""A clause as the subject of a sentence, or instead of one."""
PREFIX = re.compile(r"^test_(?:[A-Z]\d+[a-z]?_)*")
OLD_TYPES = frozenset(
    """
    Place Lanes Held Claimed Woken Holdings JobBook Handout Bench Errand Harvest Pick Turns Standing Company Line Question
    Bundle Pace Portions Faults Vitals Herald Scribe Chronicler Recall Catcher Keeper Rezoning Conductor Intent Wish
    Gatekeeper Relane
    """.split()  # noqa: SIM905
)
OLD_MODULES = frozenset(
    """
    accept lanes holdings jobbook handout turns line plans reads within chains pulse attention kept said present house coming
    next_fires spread portions pace bundle handover amendment faults notes vitals herald scribe chronicler recall catcher
    keeper rezoning conductor sweeps replay_sweeps replays reruns gates gatekeeper relanes company survey findings taking
    streaming working creation triggering backfilling facade verbs annotations connections inserts warden
    """.split()  # noqa: SIM905
)


def avoided(text: str) -> list[str]:
    """Return the words to avoid; names of placeholders do not count."""
    return [match.group() for match in AVOIDED.finditer(re.sub(r"\{\w+\}", "", text))]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, those of its attributes included."""
    for node in nodes_of(path):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """The comments of a file; none of a Python file that has no word to avoid."""
    if path.suffix == ".sql":
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "--" in line:
                yield number, line.partition("--")[2]
        return
    text = path.read_text()
    if not avoided(text):
        return  # without a look at each token, which takes most of the time of these tests
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of log lines, errors and help: every string with a space that is no docstring."""
    documented = {id(node.value) for node in nodes_of(path) if isinstance(node, ast.Expr)}
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and id(node) not in documented and " " in str(node.value):
            yield node.lineno, str(node.value)


def clauses(path: Path) -> Iterator[tuple[int, str]]:
    """The first lines of docstrings that are a clause instead of a sentence."""
    for line, text in docstrings(path):
        if text and CLAUSE.search(first := text.splitlines()[0]):
            yield line, first


def test_docstrings_comments_and_messages_are_plain_english() -> None:
    found: list[str] = []
    for path in [*PYTHON, *SQL]:
        name = path.relative_to(PACKAGE).as_posix()
        is_python = path.suffix == ".py"
        texts = [*comments(path), *((*docstrings(path), *messages(path)) if is_python else ())]
        found += [f"{name}:{line}: {word!r} in {text[:80]!r}" for line, text in texts for word in avoided(text)]
        found += [f"{name}:{line}: a clause: {text[:80]!r}" for line, text in (clauses(path) if is_python else ())]

    assert found == []


def test_texts_of_the_server_have_none_of_the_wordings_that_operators_stumbled_over() -> None:
    odd = json.loads((ROOT / "console" / "src" / "i18n" / "odd-wordings.json").read_text())
    phrases = [phrase.lower() for phrase in odd["phrases"]]
    texts = {phrase.name: str(phrase.value) for phrase in every_phrase()}

    assert len(texts) > 500
    assert {
        code: text
        for code, text in texts.items()
        if text in odd["texts"] or any(phrase in text.lower() for phrase in phrases)
    } == {}


BESIDE = sorted(
    path
    for folder in ("tests", "tools", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if ".peers" not in path.parts
)


def test_tests_tools_benchmarks_and_examples_are_plain_english() -> None:
    found: list[str] = []
    for path in BESIDE:
        file = path.relative_to(ROOT).as_posix()
        texts = [] if path == Path(__file__) else [*comments(path), *docstrings(path)]
        found += [f"{file}:{line}: {word!r} in {text[:80]!r}" for line, text in texts for word in avoided(text)]
        found += [f"{file}:{line}: a clause: {text[:80]!r}" for line, text in clauses(path)]
        for node in nodes_of(path):
            if isinstance(node, ast.Assert) and node.msg is not None:
                found += [f"{file}:{node.lineno}: {word!r} in an assertion" for word in avoided(ast.unparse(node.msg))]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                name = PREFIX.sub("", node.name).replace("_", " ")
                if avoided(name) or re.match(r"(?:what|who|which|how|whether) ", name):
                    found.append(f"{file}:{node.lineno}: {name}")

    assert found == []


def test_phrases_are_plain_english() -> None:
    assert [phrase.name for phrase in every_phrase() if avoided(str(phrase.value))] == []


def test_documentation_is_plain_english() -> None:
    pages = [page for page in PAGES if page.parent.name != "decisions"]
    prose = {page.name: re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL) for page in pages}

    assert {name: words for name, text in prose.items() if (words := avoided(text))} == {}


def classes() -> Iterator[tuple[str, str]]:
    for path in PYTHON:
        where = path.relative_to(PACKAGE)
        if where.parts[0] != "wire" and not where.stem.startswith("wire"):
            for node in nodes_of(path):
                if isinstance(node, ast.ClassDef):
                    yield node.name, where.as_posix()


def test_no_class_name_is_used_twice() -> None:
    count = Counter(name for name, _ in classes())

    assert sorted((name, where) for name, where in classes() if count[name] > 1) == []


def test_no_type_and_no_module_has_an_old_name() -> None:
    assert [(name, where) for name, where in classes() if name in OLD_TYPES] == []
    assert [path.relative_to(PACKAGE).as_posix() for path in PYTHON if path.stem in OLD_MODULES] == []


def test_the_architecture_page_names_the_kernel_in_few_files_each_once() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    path_of_one_instance = page[page.index("| step |") : page.index("A stage is")]
    named = re.findall(r"`([\w/]+\.py)`", path_of_one_instance)

    assert len(named) <= KERNEL_FILES
    assert [name for name, count in Counter(named).items() if count > 1] == []
    assert [name for name in named if not (PACKAGE / name).exists()] == []
    assert len(page.splitlines()) <= 100


def test_every_feature_is_registered_and_named_on_the_architecture_page() -> None:
    folders = {path.parent.name for path in (PACKAGE / "features").glob("*/__init__.py")}
    page = (ROOT / "ARCHITECTURE.md").read_text()
    registry = (PACKAGE / "features" / "registry.py").read_text()

    assert [name for name in sorted(folders) if f"    {name}.FEATURE," not in registry] == []
    assert [name for name in sorted(folders) if f"| `{name}` |" not in page] == []
