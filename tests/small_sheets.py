"""Spreadsheets written by hand, as small as the format allows."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

PACKAGE = "http://schemas.openxmlformats.org/package/2006/"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
TYPES = f'<Types xmlns="{PACKAGE}content-types">{{}}</Types>'
CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml"
TYPE = f'<Override PartName="/xl/{{}}" ContentType="{CONTENT}.{{}}+xml"/>'
DEFAULT = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
RELATIONS = f'<Relationships xmlns="{PACKAGE}relationships">{{}}</Relationships>'
KIND = f"{OFFICE}/"
BOOK = f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{{}}</sheets></workbook>'
SHEET = f'<worksheet xmlns="{MAIN}"><sheetData>{{}}</sheetData></worksheet>'
FORMATS = '<xf numFmtId="0"/><xf numFmtId="14"/>'  # as it is; as a date
STYLES = f'<styleSheet xmlns="{MAIN}"><cellXfs>{FORMATS}</cellXfs></styleSheet>'
Cell = str | int | float | bool | None


class Date(float):
    """Days since 1899-12-30, shown as a date."""


def column_letters(index: int) -> str:
    letters = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


def _cell(value: Cell, row: int, column: int) -> str:
    place = f'r="{column_letters(column)}{row}"'
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c {place} t="b"><v>{int(value)}</v></c>'
    if isinstance(value, Date):
        return f'<c {place} s="1"><v>{float(value)}</v></c>'
    if isinstance(value, int | float):
        return f"<c {place}><v>{value!r}</v></c>"
    return f'<c {place} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def sheet_xml(rows: Sequence[Sequence[Cell]], first_row: int = 1, first_column: int = 0) -> str:
    lines = []
    for number, row in enumerate(rows, first_row):
        cells = "".join(_cell(value, number, column) for column, value in enumerate(row, first_column))
        lines.append(f'<row r="{number}">{cells}</row>')
    return SHEET.format("".join(lines))


def workbook_of(sheets: Mapping[str, str]) -> bytes:
    """Return the xlsx of these sheets, given as their XML."""
    numbers = range(1, len(sheets) + 1)
    types = DEFAULT + TYPE.format("workbook.xml", "sheet.main") + TYPE.format("styles.xml", "styles")
    types += "".join(TYPE.format(f"worksheets/sheet{n}.xml", "worksheet") for n in numbers)
    book = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>'
        for n, name in zip(numbers, sheets, strict=True)
    )
    parts = [("styles.xml", "styles"), *((f"worksheets/sheet{n}.xml", "worksheet") for n in numbers)]
    relations = "".join(
        f'<Relationship Id="rId{n}" Type="{KIND}{kind}" Target="{target}"/>'
        for n, (target, kind) in enumerate(parts)
    )
    files = {
        "[Content_Types].xml": TYPES.format(types),
        "_rels/.rels": RELATIONS.format(
            f'<Relationship Id="rId1" Type="{KIND}officeDocument" Target="xl/workbook.xml"/>'
        ),
        "xl/workbook.xml": BOOK.format(book),
        "xl/_rels/workbook.xml.rels": RELATIONS.format(relations),
        "xl/styles.xml": STYLES,
    } | {f"xl/worksheets/sheet{n}.xml": xml for n, xml in zip(numbers, sheets.values(), strict=True)}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return target.getvalue()


def workbook(rows: Sequence[Sequence[Cell]], name: str = "Sheet1", **place: int) -> bytes:
    """Return the xlsx of one sheet."""
    return workbook_of({name: sheet_xml(rows, **place)})
