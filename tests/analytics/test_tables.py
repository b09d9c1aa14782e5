"""Tables for a paper: what is marked, what the caption says, and names that would break a format."""

import csv
import html
import io
import re
import shutil
import subprocess

import pytest
from markdown_it import MarkdownIt

from analytics.charts.theme import printable
from analytics.latex import latex_text
from analytics.tables import (
    MARKS,
    Difference,
    Rank,
    RunNumber,
    Terms,
    marks_of,
    pairs_table,
    ranking_table,
    runs_table,
    table_format,
)

TERMS = Terms(
    "DCG@10", "corrected", "for these topics", "two-sided test", "p adjusted by Holm over all 3 pairs"
)
RUNS = [
    RunNumber("best", 0.5, 0.45, 0.55),
    RunNumber("base", 0.4, 0.35, 0.45),
    RunNumber("worst", 0.30049, -0.25, 0.35),
]
# best - base is significant and stored the other way round; base - worst is not significant.
PAIRS = [
    Difference("base", "best", -0.1, -0.15, -0.05, 0.0004, 0.0012, is_significant=True),
    Difference("best", "worst", 0.2, 0.1, 0.3, 0.0001, 0.0003, is_significant=True),
    Difference("base", "worst", 0.1, -0.01, 0.21, 0.06, 0.06),
]
HOSTILE = [
    r"a\b_{c}$d&e#f%g~h^i",
    "[1pt]",
    "*",
    'x<y>z|w"q',
    "a--b---c''d,,e`f",
    r"\input{/etc/passwd}",
    "a|b|c",
    "back\\",
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "![i](http://e.example/x.png)",
    "**bold** `code` ~~gone~~ _em_",
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@x",
    'quo"te,comma;semi',
    "www.e.example http://e.example",
    "line\nbreak\r\nand\ttab\u202e",
    "&amp; &lt;",
]


def written(key, table):
    return table_format(key).write(table)


def rows_of(latex):
    """Return the cells of every row between the rules, split at ampersands that are no escaped ones."""
    body = latex.split("\\midrule\n")[1].split("\\bottomrule")[0]
    return [re.split(r"(?<!\\) ?& ?", row.removesuffix(" \\\\")) for row in body.splitlines()]


def depth(latex):
    """Return how many braces are open at the end; ValueError if one closes that was not open."""
    level = 0
    for brace in re.findall(r"(?<!\\)[{}]", latex.replace("\\\\", "")):
        level += 1 if brace == "{" else -1
        if level < 0:
            raise ValueError("a brace closes that was not open")
    return level


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def markdown_cells(text):
    """Return the cells of the body as a reader of Markdown shows them, and the whole page it makes of the text."""
    page = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").render(text)
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows], page


# -- marks and captions -----------------------------------------------------------------------------------------


def test_daggers_tell_higher_and_lower_than_the_baseline():
    of_base = read_csv(written("csv", runs_table(RUNS, PAIRS, TERMS, marks_of("daggers"), "base")))
    assert [row["marks"] for row in of_base] == ["†", "", ""]
    of_best = read_csv(written("csv", runs_table(RUNS, PAIRS, TERMS, marks_of("daggers"), "best")))
    assert [row["marks"] for row in of_best] == ["", "‡", "‡"]


def test_letters_name_the_runs_that_a_run_beats():
    rows = read_csv(written("csv", runs_table(RUNS, PAIRS, TERMS, marks_of("letters"))))
    assert [(row["letter"], row["run"], row["marks"]) for row in rows] == [
        ("a", "best", "b c"),
        ("b", "base", ""),
        ("c", "worst", ""),
    ]


def test_what_is_not_significant_or_has_no_sign_gets_no_mark():
    even = [Difference("best", "base", 0.0, -0.1, 0.1, 0.01, 0.01, is_significant=True)]
    for marks in MARKS:
        rows = read_csv(written("csv", runs_table(RUNS, even, TERMS, marks, "base")))
        assert {row["marks"] for row in rows} == {""}


def test_the_caption_says_measure_claim_test_and_adjustment():
    caption = runs_table(RUNS, PAIRS, TERMS, marks_of("daggers"), "base").caption
    for words in (
        "DCG@10",
        "for these topics",
        "two-sided test",
        "Holm over all 3 pairs",
        "below 0.05",
        "base",
    ):
        assert words in caption
    assert "Holm" not in runs_table(RUNS, PAIRS, TERMS).caption  # nothing is marked: nothing was tested
    assert "Holm over all 3 pairs" in pairs_table(PAIRS, TERMS).caption
    untested = Terms("AP", "corrected", "for these topics", "two-sided test", "")
    assert "No difference was tested" in pairs_table([], untested).caption


def test_marks_against_a_run_that_is_not_in_the_table_are_refused():
    with pytest.raises(ValueError, match="'other'"):
        runs_table(RUNS, PAIRS, TERMS, marks_of("daggers"), "other")


# -- the formats ------------------------------------------------------------------------------------------------


def test_latex_has_booktabs_rules_numbers_and_marks():
    latex = written("latex", runs_table(RUNS, PAIRS, TERMS, marks_of("letters")))
    assert [latex.count(f"\\{rule}rule") for rule in ("top", "mid", "bottom")] == [1, 1, 1]
    assert rows_of(latex) == [
        ["a", "best", r"0.500$^{\mathrm{b},\mathrm{c}}$", "[0.450, 0.550]"],
        ["b", "base", "0.400", "[0.350, 0.450]"],
        ["c", "worst", "0.300", "[$-0.250$, 0.350]"],
    ]
    assert r"\begin{tabular}{llrr}" in latex
    daggers = written("latex", runs_table(RUNS, PAIRS, TERMS, marks_of("daggers"), "base"))
    assert r"0.500$^{\dagger}$" in daggers
    assert "†" not in daggers


def test_pairs_have_both_ps_in_every_format():
    table = pairs_table(PAIRS, TERMS)
    assert rows_of(written("latex", table))[0] == [
        "base", "best", "$-0.100$", "[$-0.150$, $-0.050$]", "$<$ 0.001", "0.001", "yes",
    ]  # fmt: skip
    assert markdown_cells(written("markdown", table))[0][2] == [
        "base", "worst", "+0.100", "[−0.010, 0.210]", "0.060", "0.060", "no",
    ]  # fmt: skip
    first = read_csv(written("csv", table))[0]
    assert [float(first[name]) for name in ("difference", "low", "high", "p", "p_adjusted")] == [
        -0.1, -0.15, -0.05, 0.0004, 0.0012,
    ]  # fmt: skip


def test_the_ranking_has_ranks_as_numbers():
    table = ranking_table([Rank(RUNS[0], 1, 1, 2), Rank(RUNS[1], 2, 2, 2)], PAIRS, TERMS)
    assert [row[-2:] for row in rows_of(written("latex", table))] == [["1", "1 to 2"], ["2", "2"]]
    assert [(row["rank"], row["rank_low"], row["rank_high"]) for row in read_csv(written("csv", table))] == [
        ("1", "1", "2"),
        ("2", "2", "2"),
    ]


def test_a_reason_stands_whole_below_the_table_and_once():
    reason = "no audit is complete yet; 12 selected items wait & 50% of them_all"
    runs = [RUNS[0], RunNumber("x", None, refusal=reason), RunNumber("y", None, refusal=reason)]
    latex = written("latex", runs_table(runs, PAIRS, TERMS))
    assert latex.count(latex_text(reason)) == 1
    assert rows_of(latex)[1:] == [["x", "not estimable [1]", ""], ["y", "not estimable [1]", ""]]
    markdown = written("markdown", runs_table(runs, PAIRS, TERMS))
    assert html.escape(reason) in markdown_cells(markdown)[1]
    rows = read_csv(written("csv", runs_table(runs, PAIRS, TERMS)))
    assert [row["refusal"] for row in rows] == ["", reason, reason]
    assert rows[1]["value"] == ""


# -- hostile names ----------------------------------------------------------------------------------------------


def hostile_tables():
    runs = [RunNumber(name, 0.5, 0.4, 0.6) for name in HOSTILE]
    pairs = [Difference(HOSTILE[0], name, 0.1, 0.05, 0.2, 0.01, 0.02, True) for name in HOSTILE[1:]]
    return (
        runs_table(runs, pairs, TERMS, marks_of("daggers"), HOSTILE[0]),
        runs_table(runs, pairs, TERMS, marks_of("letters")),
        pairs_table(pairs, TERMS),
        ranking_table([Rank(run, 1, 1, 2) for run in runs], pairs, TERMS),
    )


def test_hostile_names_leave_latex_balanced_with_as_many_cells_in_every_row():
    for table in hostile_tables():
        latex = written("latex", table)
        assert depth(latex) == 0
        rows = rows_of(latex)
        assert len(rows) == len(table.rows)
        assert {len(row) for row in rows} == {len(table.columns)}
        assert "\\input{/" not in latex
        for row in rows:
            assert not row[0].startswith(("[", "*"))
            assert not re.search(r"(?<!\\)[%#_]", " ".join(row).replace("\\\\", ""))
    with pytest.raises(ValueError, match="brace"):
        depth("{a}}")
    assert depth("{a") == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_latex_of_a_name_reads_back_as_the_name(name):
    """A reader of the escapes that does not share the writer's table."""
    commands = {
        "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<",
        "textgreater": ">", "textbar": "|", "textasciigrave": "`",
    }  # fmt: skip
    token = re.compile(r"\\(text[a-z]+)\{\}|\{\\char34\}|\\([{}$&#_%])|\{\}|([^\\{}])")
    text, place, read = latex_text(printable(name)), 0, ""
    while place < len(text):
        found = token.match(text, place)
        assert found, text[place:]
        read += (
            commands[found[1]] if found[1] else '"' if "char34" in found[0] else (found[2] or found[3] or "")
        )
        place = found.end()
    assert read == re.sub(r"[\t\r\n]+", " ", name).replace("\u202e", "")


def test_markdown_shows_hostile_names_as_they_are():
    table = hostile_tables()[1]
    cells, page = markdown_cells(written("markdown", table))
    assert [html.unescape(row[1]) for row in cells] == [
        re.sub(r"[\t\r\n]+", " ", name).replace("\u202e", "").strip() for name in HOSTILE
    ]
    assert {len(row) for row in cells} == {4}
    tags = set(re.findall(r"<([a-z0-9]+)", page))
    assert tags <= {"p", "table", "thead", "tbody", "tr", "th", "td", "sup"}
    _, wrong = markdown_cells("| a |\n|---|\n| **bold** <b>x</b> |\n")
    assert set(re.findall(r"<([a-z0-9]+)", wrong)) - tags == {"strong", "b"}


def test_csv_keeps_hostile_names_and_no_spreadsheet_runs_them():
    for table in hostile_tables():
        rows = read_csv(written("csv", table))
        assert len(rows) == len(table.rows)
        column = "run" if "letter" in rows[0] or "value" in rows[0] else "against"
        names = HOSTILE if column == "run" else HOSTILE[1:]
        for row, name in zip(rows, names, strict=True):
            assert row[column] == (f"'{name}" if name[0] in "=+-@" else name)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_latex_compiles(tmp_path):
    body = "\n".join(written("latex", table) for table in hostile_tables())
    (tmp_path / "all.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n" + body + "\\end{document}\n"
    )
    made = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=batchmode", "-no-shell-escape", "all.tex"],
        cwd=tmp_path,
        timeout=120,
        capture_output=True,
        check=False,
    )
    assert made.returncode == 0, (tmp_path / "all.log").read_text()[-2000:]
