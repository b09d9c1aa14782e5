"""Pictures for a paper: their width on paper, their fonts, their letters, and names and reasons that stay whole."""

import json
import re
import struct
import zlib

import pytest
from chart_samples import ROWS, SVG, differences, parse, place, ranks, texts

from analytics import charts
from analytics.charts import ForestRow
from analytics.charts.files import PLOT_FORMATS, Sheet, SheetRefused, plot_format

POINTS_A_MM = 72 / 25.4
LONG = "TEAM_ALPHA-Run.With.A.Very.Long.Name-of-2026-b"
REASON = "no audit is complete yet; 12 selected items wait for the gold tier"


def forest(rows=tuple(ROWS), title="P@10 of every run"):
    return charts.forest(rows, title, "", "P@10")


def media_width(pdf: bytes) -> float:
    """Return the width of the only page in points, as the file itself says it."""
    (box,) = re.findall(rb"/MediaBox ?\[([^\]]*)\]", pdf)
    left, _, right, _ = map(float, box.split())
    return right - left


def font_programs(pdf: bytes) -> list[bytes]:
    """Return the font programs that are embedded, unpacked."""
    found = []
    for number in re.findall(rb"/FontFile[23]? (\d+) 0 R", pdf):
        body = re.search(rb"\b" + number + rb" 0 obj(.*?)stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
        assert body is not None
        found.append(zlib.decompress(body[2]) if b"FlateDecode" in body[1] else body[2])
    return found


def is_font(program: bytes) -> bool:
    return program[:4] in (b"\x00\x01\x00\x00", b"OTTO", b"true") or program[:2] == b"\x01\x00"


@pytest.mark.parametrize(("width", "mm"), [("", 84), ("single", 84), ("double", 174), ("120.5", 120.5)])
def test_a_pdf_is_as_wide_as_was_asked_and_brings_its_fonts(width, mm):
    pdf = plot_format("pdf").write(forest(), Sheet(width=width))
    assert pdf.startswith(b"%PDF-")
    assert media_width(pdf) == pytest.approx(mm * POINTS_A_MM, abs=1e-3)
    programs = font_programs(pdf)
    assert programs
    assert all(map(is_font, programs))
    described = set(re.findall(rb"/Type ?/FontDescriptor", pdf))
    assert described
    assert pdf.count(b"/FontDescriptor") > 0


def test_a_pdf_without_fonts_or_of_another_width_is_noticed():
    pdf = plot_format("pdf").write(forest(), Sheet())
    assert font_programs(pdf.replace(b"/FontFile", b"/FontNone")) == []
    assert media_width(pdf) != pytest.approx(174 * POINTS_A_MM, abs=1)
    assert not is_font(b"no font")


@pytest.mark.parametrize(("width", "points"), [("single", 7), ("single", 8), ("double", 7), ("double", 10.5)])
def test_letters_have_the_points_that_were_asked_for(width, points):
    sheet = Sheet(width=width, font_pt=points)
    root = parse(plot_format("svg").write(forest(), sheet).decode())
    mm = float(root.get("width").removesuffix("mm"))
    units = float(root.get("viewBox").split()[2])
    sizes = {
        float(e.get("font-size").removesuffix("px")) for e in root.iter(f"{SVG}text") if e.text == "bm25"
    }
    (size,) = sizes
    assert mm == {"single": 84, "double": 174}[width]
    assert size * mm * POINTS_A_MM / units == pytest.approx(points, rel=0.003)


def test_a_png_for_a_paper_has_300_dots_an_inch():
    png = plot_format("png").write(forest(), Sheet(width="single"))
    width, _ = struct.unpack(">II", png[16:24])
    assert width == pytest.approx(84 / 25.4 * 300, abs=1)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"width": "39"}, "width"),
        ({"width": "401"}, "width"),
        ({"width": "triple"}, "width"),
        ({"width": "1e2"}, "width"),
        ({"font_pt": 2.9}, "font_pt"),
        ({"font_pt": float("nan")}, "font_pt"),
        ({"font_pt": 9, "width": "single"}, "font_pt"),
        ({"font_pt": 3, "width": "400"}, "font_pt"),
    ],
)
def test_a_size_that_no_picture_has_is_refused_with_its_field(given, field):
    with pytest.raises(SheetRefused) as refused:
        Sheet(**given)
    assert refused.value.field == field


def test_the_letters_that_a_refusal_offers_are_taken():
    with pytest.raises(SheetRefused) as refused:
        Sheet(width="84", font_pt=20)
    for points in re.findall(r"[\d.]+(?= to)|(?<=to )[\d.]+", str(refused.value)):
        assert Sheet(width="84", font_pt=float(points)).units


@pytest.mark.parametrize("width", ["", "single", "double"])
@pytest.mark.parametrize("key", [one.key for one in PLOT_FORMATS if one.key not in ("csv", "pdf", "png")])
def test_the_title_is_left_out_where_a_caption_will_say_it(key, width):
    with_title, without = (
        plot_format(key).write(forest(title="Remarkable"), Sheet(width=width, has_title=has)).decode()
        for has in (True, False)
    )
    shown = re.compile(r'>Remarkable</text>|"text": "Remarkable"')
    assert shown.search(with_title)
    assert not shown.search(without)


@pytest.mark.parametrize("width", ["", "single", "double"])
def test_names_and_reasons_stand_whole_in_the_picture_and_within_it(width):
    rows = [ForestRow(LONG, "corrected", 0.4, 0.3, 0.5), ForestRow("bm25", "corrected", refused=REASON)]
    drawn = plot_format("svg").write(
        forest(rows, f"P@10 of {LONG} and of every other run"), Sheet(width=width)
    )
    root = parse(drawn.decode())
    words = texts(root)
    assert f"[1] {LONG}" in words
    assert REASON in " ".join(words)
    assert f"P@10 of {LONG} and of every other run".replace(" ", "") in "".join(words).replace(" ", "")
    units = float(root.get("viewBox").split()[2])
    for text in root.iter(f"{SVG}text"):
        if text.get("x"):  # a footnote
            assert float(text.get("x")) + 5.6 * len(text.text) < units
    assert not any(word.endswith("…") for word in words)


@pytest.mark.parametrize("picture", [lambda: ranks(LONG), lambda: differences((LONG, "b", "c"))])
def test_a_matrix_has_its_long_names_in_footnotes(picture):
    assert f"[1] {LONG}" in texts(parse(picture().svg()))


def test_a_footnote_that_is_markup_is_text():
    rows = [ForestRow("<script>alert(1)</script>" * 3, "corrected", refused="<b>" * 30)]
    root = parse(forest(rows).svg())
    assert {element.tag for element in root.iter()} & {f"{SVG}script", f"{SVG}b"} == set()
    assert "<script>alert(1)</script>" * 3 in "".join(texts(root))


def test_vega_lite_has_its_data_every_number_and_the_colours_of_a_theme():
    rows = [ForestRow(LONG, "corrected", 1 / 3, 0.3, 0.5), ForestRow("bm25", "corrected", refused=REASON)]
    spec = json.loads(plot_format("vega").write(forest(rows), Sheet(theme="dark")))
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    drawn = [row for rows in spec["datasets"].values() for row in rows]
    assert any(row.get("value") == 1 / 3 for row in drawn)
    assert spec["usermeta"]["rows"][0] == [LONG, "corrected", 1 / 3, 0.3, 0.5, ""]
    assert spec["usermeta"]["rows"][1][-1] == REASON
    assert "var(--" not in json.dumps(spec)
    assert "url" not in json.dumps(spec)


def test_a_narrow_picture_has_its_whole_legend():
    names = ["corrected", "matrix inverse", "importance sampling"]
    rows = [ForestRow(LONG, name, 0.4, 0.3, 0.5) for name in names]
    root = parse(plot_format("svg").write(forest(rows), Sheet(width="single")).decode())
    units = float(root.get("viewBox").split()[2])
    for text in root.iter(f"{SVG}text"):
        if text.text in names:
            assert place(text)[0] + 6.2 * len(text.text) < units
