"""The pages about the library: what stands in them is what comes out, in Python and from the command.

Blocks of a page run from top to bottom in one folder, which has a copy of docs/examples/data/. A line that begins with
`$ touchstone` is the command, and what follows it in the block is what it prints, on either stream;
`$ head` and `$ cat` show a file. Lines are wrapped for readers: blanks count as one.
"""

import contextlib
import doctest
import io
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

import touchstone_ir as ts
import touchstone_ir.adapters as ta
from judging.formats import FORMATS
from touchstone_ir.command import main
from touchstone_ir.commands import COMMANDS
from touchstone_ir.description import EXIT_CODES
from touchstone_ir.results import COLUMNS

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "docs" / "examples" / "data"
PAGES = ("library", "how-to", "gallery")
PICTURES = REPOSITORY / "docs" / "images"
LARGEST_PICTURE = 16_000  # bytes
BLOCK = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def blocks_of(text: str) -> list[str]:
    """Return the code blocks of a page."""
    return [match[0] for match in BLOCK.finditer(text)]


def typed_in(block: str) -> list[tuple[list[str], str]]:
    """Return the commands of a block, each with what it prints; a line that ends with a backslash goes on."""
    lines = re.sub(r"\\\n\s*", " ", block).splitlines()
    found: list[tuple[list[str], list[str]]] = []
    for line in map(str.strip, lines):
        if line.startswith("$ "):
            found.append((shlex.split(line[2:], comments=True), []))
        elif found:
            found[-1][1].append(line)
    return [(words, "\n".join(printed)) for words, printed in found]


def printed_by(words: list[str]) -> str:
    """Return what a command prints on both streams."""
    program, *arguments = words
    if program in ("cat", "head"):
        n_lines = int(arguments.pop(0)[1:]) if program == "head" else None
        return "".join(Path(arguments[0]).read_text().splitlines(keepends=True)[:n_lines])
    assert program == "touchstone", words
    both = io.StringIO()
    with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        main(arguments)
    return both.getvalue()


def differences(text: str) -> list[str]:
    """Return what a page says and what does not come out, block by block."""
    checker = doctest.OutputChecker()
    globals_: dict[str, Any] = {}
    found: list[str] = []
    for block in blocks_of(text):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, globals_, "page", None, 0)
            said = io.StringIO()
            runner = doctest.DocTestRunner(checker, verbose=False, optionflags=FLAGS)
            runner.run(test, out=said.write, clear_globs=False)
            globals_ = test.globs
            found += [said.getvalue()] if said.getvalue() else []
        for words, wanted in typed_in(block):
            got = printed_by(words)
            if not checker.check_output(f"{wanted}\n", f"{got}\n", FLAGS):
                found.append(f"{shlex.join(words)}\nis said to print\n{wanted}\nand prints\n{got}")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_what_comes_out(page, folder):
    text = (REPOSITORY / "docs" / f"{page}.md").read_text()
    assert sum(text.count(sign) for sign in (">>> ", "    $ ")) > 5
    assert "\n\n".join(differences(text)) == ""


def words_of(picture: Path) -> list[str]:
    """Return all texts of an SVG: its title, its description with the numbers, what stands on axes."""
    return [text.strip() for text in etree.parse(picture).getroot().itertext() if text.strip()]


def test_the_pictures_of_the_gallery_are_those_that_its_lines_draw(folder):
    text = (REPOSITORY / "docs" / "gallery.md").read_text()
    assert differences(text) == []
    shown = re.findall(r"\(images/(gallery-[a-z]+\.svg)\)", text)
    assert shown == re.findall(r'\.plot\("([^"]+)"\)', text)
    assert set(shown) == {path.name for path in PICTURES.glob("gallery-*")}
    for name in shown:
        assert words_of(PICTURES / name) == words_of(folder / name), f"{name}: draw it anew"
        assert (PICTURES / name).stat().st_size < LARGEST_PICTURE
        assert '<rect width="100%" height="100%" fill="#fffdf9"/>' in (PICTURES / name).read_text(), (
            "dark letters need a light ground wherever the page is shown"
        )
    assert words_of(PICTURES / shown[0]) != words_of(PICTURES / shown[1]), (
        "the control: words tell pictures apart"
    )


def test_a_planted_number_and_a_planted_line_are_seen(folder):
    planted = "Text.\n\n    >>> 1 + 1\n    3\n\nText.\n\n    $ head -1 bm25.run\n    nothing\n"
    right = "Text.\n\n    >>> 1 + 1\n    2\n\n    $ head -1 bm25.run\n    py01 Q0 ... bm25\n"
    assert len(differences(planted)) == 2
    assert differences(right) == []


def test_the_first_lines_of_the_readme_run_as_they_stand(folder, capsys):
    text = (REPOSITORY / "README.md").read_text()
    (block,) = [block for block in blocks_of(text) if "import touchstone_ir as ts" in block]
    exec(compile("\n".join(line[4:] for line in block.splitlines()), "README.md", "exec"), {})  # noqa: S102
    assert "bm25 has a higher P(rel=1)@10 than tf-idf" in capsys.readouterr().out


def test_the_reference_has_every_name_of_the_library():
    text = (REPOSITORY / "docs" / "library-reference.md").read_text()
    told = {line.rpartition(".")[2] for line in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}
    assert {*ts.__all__, *ta.__all__, "Result", "Design", "Client"} - told == set()


@pytest.mark.parametrize(
    "names",
    [
        [one.key for one in FORMATS],
        [one.name for one in COMMANDS],
        [str(code) for code in EXIT_CODES],
        COLUMNS,
    ],
    ids=["formats", "commands", "exit codes", "columns"],
)
def test_the_tables_of_the_library_have_a_row_for_everything(names):
    rows = re.findall(r"^\| ([^|]+) \|", (REPOSITORY / "docs" / "library.md").read_text(), re.MULTILINE)
    told = {cell.strip("` ") for row in rows for cell in row.split(",")}
    assert set(names) - told == set()
