"""What documentation, docstrings and comments name exists: pages and sections, paths, modules, functions, classes."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from references import FOLDERS, Repository, Text, anchor_of, on_one_line

ROOT = Path(__file__).resolve().parents[1]

# What is named and is not in this repository, each with its reason.
ELSEWHERE = {
    "CHANGES.md": "a file of a release",
    "platform/touchstone/locale": "made with the first translation",
    "map_cut": "a measure of trec_eval",
    "touchstone.comparisons": "a logger of the example client",
    "touchstone.target": "a unit of systemd, in deploy/systemd/",
    "touchstone_replica_behind_seconds": "a metric: platform/touchstone/metrics.py puts the beginning to its name",
    "ignore_startup_parameters": "a setting of PgBouncer",
    "synchronous_standby_names": "a setting of PostgreSQL",
    "update_session_auth_hash": "Django's",
}
HISTORY = ("CHANGELOG.md",)  # names what was, by the names of its time
OF_A_PAPER = ("schnabel.md", "goldberg.md", "bailey.md")  # here "section 7" alone is the paper's
DERIVATIONS = "docs/methods/derivations/"

PACKAGES = ("judging", "sampling", "analytics", "touchstone", "console", "benchmarks", "experiments")
NUMBER = r"\d+(?:\.\d+)*"
NUMBERS = rf"{NUMBER}(?:(?:, | and | to ){NUMBER})*"
ANY_PAGE = r"(?:\.\./|[\w-]+/)*[\w-]+\.md"

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
PAGE = re.compile(rf"(?<![\w/.-])({ANY_PAGE})(#[\w-]+)?(?![\w/])")
# "docs/methods/derivations/schnabel.md, section 3, erratum 9", "[Sampling](sampling.md), sections 2.3 and 4"
AFTER = re.compile(rf"({ANY_PAGE})[`)]*, sections? ({NUMBERS})(?:, errat(?:um|a) (\d+))?")
# "section 3.1 of [Sampling](sampling.md)"
BEFORE = re.compile(rf"\bsections? ({NUMBERS}) of \[[^\]]*\]\(({ANY_PAGE})\)")
OWN = re.compile(rf"\bsections? ({NUMBERS})(?! of )")
PATH = re.compile(rf"(?<![\w/.<-])((?:{'|'.join(FOLDERS)})/[\w./*-]*)")
FILE = re.compile(r"(?<![\w/.*<-])([\w-]+\.py)\b")
BLOCK = re.compile(r"^    .*$", re.MULTILINE)
MODULE = re.compile(rf"(?<![\w/.@:(-])((?:{'|'.join(PACKAGES)})(?:\.(?!md\b|py\b)[A-Za-z_]\w*)+)(?![\w/-])")
FORMULA = re.compile(r"``.*?``", re.DOTALL)
QUOTED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
DOTTED = re.compile(r"([a-z]\w*)\.(\w+)(?:\(\))?")
CALL = re.compile(r"(\w+)\(\)")
# With an underscore or a capital inside, and no symbol of an equation such as w_i or m_JR.
NAME = re.compile(r"_?[a-z]{2,}[a-z0-9]*(?:_[a-z0-9]+)*_[a-z0-9]{2,}|[A-Z][a-z]+[A-Z]\w*")


def missing_links(repository: Repository, text: Text) -> Iterator[str]:
    """Yield a page's relative links that lead nowhere, as far as file and heading."""
    for link in LINK.findall(text.words) if text.is_page else ():
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        page = repository.page_named(text, name) if name else text.path
        if page is None and ((repository.root / text.path).parent / name).is_file() and not anchor:
            continue
        if page is None or (anchor and anchor not in map(anchor_of, repository.headings[page])):
            yield link


def missing_pages(repository: Repository, text: Text) -> Iterator[str]:
    """Yield pages, headings, sections and errata that are cited and not there."""
    words = on_one_line(text.words)
    for name, anchor in PAGE.findall(LINK.sub("", words)):
        page = repository.page_named(text, name)
        if page is None or (anchor and anchor[1:] not in map(anchor_of, repository.headings[page])):
            yield name + anchor
    for name, numbers, erratum in AFTER.findall(words):
        yield from missing_sections(repository, text, name, numbers, erratum)
    for numbers, name in BEFORE.findall(words):
        yield from missing_sections(repository, text, name, numbers)
    if text.path.startswith(DERIVATIONS) and not text.path.endswith(OF_A_PAPER):
        for numbers in OWN.findall(AFTER.sub("", BEFORE.sub("", words))):
            yield from missing_sections(repository, text, Path(text.path).name, numbers)


def missing_sections(
    repository: Repository, text: Text, name: str, numbers: str, erratum: str = ""
) -> Iterator[str]:
    page = repository.page_named(text, name)
    if page is None:
        return  # the page itself is what is missing
    present = {found[1] for h in repository.headings[page] if (found := re.match(rf"({NUMBER})\.? ", h))}
    yield from (f"{name}, section {n}" for n in re.findall(NUMBER, numbers) if n not in present)
    if erratum and not re.search(rf"^{erratum}\. ", repository.read(page), re.MULTILINE):
        yield f"{name}, erratum {erratum}"


def missing_paths(repository: Repository, text: Text) -> Iterator[str]:
    """Yield files and folders that are named and not there; a star stands for anything."""
    words = on_one_line(text.words)
    for path in (found.rstrip("./") for found in PATH.findall(words)):
        is_there = any(repository.root.glob(path)) if "*" in path else path in repository.places
        if not is_there:
            yield path
    # The tree of docs/architecture.md names files alone; tests/touchstone/test_documentation.py checks it.
    prose = BLOCK.sub("", text.words) if text.is_page else words
    yield from (name for name in FILE.findall(prose) if name not in repository.places)


def missing_modules(repository: Repository, text: Text) -> Iterator[str]:
    """Yield dotted names of our packages whose module, or what it should define, is not there."""
    for name in MODULE.findall(on_one_line(text.words)):
        parts = name.split(".")
        known = max(n for n in range(len(parts) + 1) if not n or ".".join(parts[:n]) in repository.by_dots)
        rest = parts[known:]
        if not known or (rest and rest[0] not in repository.by_dots[".".join(parts[:known])]):
            yield name


def missing_names(repository: Repository, text: Text) -> Iterator[str]:
    """Yield back-quoted functions, classes, parameters and fields that occur nowhere in the code."""
    for quoted in QUOTED.findall(FORMULA.sub("", on_one_line(text.words))):
        known = repository.words
        if (dotted := DOTTED.fullmatch(quoted)) and dotted[1] in repository.by_file_name:
            name, known = dotted[2], known | repository.by_file_name[dotted[1]]
        elif call := CALL.fullmatch(quoted):
            name = call[1]
        elif NAME.fullmatch(quoted):
            name = quoted
        else:
            continue
        if name not in known:
            yield quoted


KINDS = {
    "links": missing_links,
    "pages": missing_pages,
    "paths": missing_paths,
    "modules": missing_modules,
    "names": missing_names,
}


def missing(repository: Repository, kind: str) -> list[str]:
    """Return what is referred to and not there, each with its place."""
    return [
        f"{text.path}:{text.line}: {found}"
        for text in repository.texts
        if kind == "links" or text.path not in HISTORY
        for found in KINDS[kind](repository, text)
        if found not in ELSEWHERE
    ]


@cache
def this_repository() -> Repository:
    return Repository(ROOT)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_referred_to_exists(kind):
    assert missing(this_repository(), kind) == []


def test_every_exception_is_still_needed():
    named = " ".join(
        text.words for text in this_repository().texts if text.path != "tests/test_references.py"
    )
    assert [name for name in ELSEWHERE if name not in named] == []


# -- planted references -------------------------------------------------------------------------------------

PLANTED_PAGE = """# Here
## 1. First
### 1.2 Second
1. An erratum.
"""
PLANTED_MODULE = '''"""See `area()`, `Square`, `side_length`, `shapes.area`, sampling.shapes.area.

And docs/page.md, section 1.2.
"""

SIDES = 4


class Square:
    side_length: float


def area(square):
    return square.side_length**2  # tests/test_shapes.py has docs/page.md, section 1, erratum 1
'''


@pytest.fixture
def planted(tmp_path):
    """Return a function that gives the missing references of a small tree in which one page or docstring is planted."""
    files = {"docs/page.md": PLANTED_PAGE, "sampling/shapes.py": PLANTED_MODULE, "tests/test_shapes.py": ""}

    def missing_of(kind: str, *, page: str = "", docstring: str = "") -> list[str]:
        for path, text in (
            files | {"docs/more.md": page, "sampling/more.py": f'"""{docstring}"""\n'}
        ).items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text)
        return [line.partition(": ")[2] for line in missing(Repository(tmp_path), kind)]

    return missing_of


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_whose_references_exist_has_none_missing(planted, kind):
    assert (
        planted(kind, page="[a](page.md#12-second), section 1.2 of [b](page.md), `area()`, `sampling/`") == []
    )


@pytest.mark.parametrize(
    ("kind", "text", "wrong"),
    [
        ("pages", "See docs/nowhere.md, section 1.", "docs/nowhere.md"),
        ("pages", "See page.md beside this file.", "page.md"),
        ("pages", "See docs/page.md, section\n    1.3.", "docs/page.md, section 1.3"),
        ("pages", "See docs/page.md, sections 1, 1.2 and 2.", "docs/page.md, section 2"),
        ("pages", "See docs/page.md, section 1, erratum 2.", "docs/page.md, erratum 2"),
        ("pages", "See docs/page.md#there.", "docs/page.md#there"),
        ("paths", "Checked by tests/test_circles.py.", "tests/test_circles.py"),
        ("paths", "What circles.py does.", "circles.py"),
        ("paths", "All of sampling/circle*.", "sampling/circle*"),
        ("modules", "As sampling.circles has it.", "sampling.circles"),
        ("modules", "As `sampling.shapes.volume` has it.", "sampling.shapes.volume"),
        ("names", "As `circle_area` has it.", "circle_area"),
        ("names", "As `volume()` has it.", "volume()"),
        ("names", "As `RoundShape` has it.", "RoundShape"),
        ("names", "As `shapes.volume` has it.", "shapes.volume"),
    ],
)
def test_a_planted_reference_to_nothing_is_seen_in_a_docstring(planted, kind, text, wrong):
    assert planted(kind, docstring=text) == [wrong]


@pytest.mark.parametrize(
    ("kind", "text", "wrong"),
    [
        ("links", "[a](nowhere.md)", "nowhere.md"),
        ("links", "![a](missing.png)", "missing.png"),
        ("links", "[a](page.md#there)", "page.md#there"),
        ("links", "# Here\n[a](#there)", "#there"),
        ("pages", "[a](page.md), section 3", "page.md, section 3"),
        ("pages", "by section 3 of [a](page.md)", "page.md, section 3"),
        ("names", "a circle's `circle_area`", "circle_area"),
    ],
)
def test_a_planted_reference_to_nothing_is_seen_on_a_page(planted, kind, text, wrong):
    assert planted(kind, page=text) == [wrong]


def test_a_section_of_the_same_page_is_checked_among_the_derivations(planted, tmp_path):
    (tmp_path / DERIVATIONS).mkdir(parents=True)
    (tmp_path / DERIVATIONS / "area.md").write_text("## 1. Area\nBy section 1 and section 4.\n")
    assert planted("pages") == ["area.md, section 4"]


def test_symbols_formulas_links_and_prose_are_no_references(planted):
    prose = "`w_i`, `m_JR`, `s²_l`, ``sum_frame f w``, and/or, [x](https://example.org/nowhere.md), `Σ w_i`"
    assert [found for kind in KINDS for found in planted(kind, page=prose)] == []
