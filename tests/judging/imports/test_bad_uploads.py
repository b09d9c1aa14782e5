"""Uploads that mean harm get one sentence, and nothing is changed. Each has a control that passes."""

import io
import zipfile

import pytest
from file_campaign import everything
from journey_files import TOPICS
from small_sheets import sheet_xml, workbook, workbook_of
from uploaded import card_of, kept, looked, zip_of

from judging.models import Import, Topic

pytestmark = pytest.mark.django_db(transaction=True)


def bomb():
    """Return a zip that says it expands to 400 times its size."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("topics.tsv", "t1\t" + "a" * 40_000_000 + "\n")
    return archive.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bomb(), "bad.zip:1:1: a zip bomb: it expands to more than 200 times its size"),
        (zip_of({f"{number}.txt": "x" for number in range(10_001)}), "10,001 files in the zip"),
        (zip_of({"../topics.tsv": TOPICS}), "bad.zip"),
        (zip_of({"/topics.tsv": TOPICS}), "bad.zip"),
        (zip_of({"inner.zip": zip_of({"topics.tsv": TOPICS})}), "inner.zip"),
        (zip_of({"topics.tsv": TOPICS})[:-30], "bad.zip:1:1: a damaged zip"),
    ],
    ids=["a bomb", "too many", "above the root", "absolute", "nested", "damaged"],
)
def test_a_bad_archive_gets_one_sentence(collection, data, reason):
    before = everything()[0]
    made = looked(collection, {"bad.zip": data})
    (words,) = made.report["obstacles"]
    faults = "\n".join([*made.report["files"][0]["faults"], words])
    assert reason in faults
    assert kept(made, state="failed").error
    made.delete()
    assert everything()[0] == before


def test_the_same_archive_without_harm_is_kept(collection):
    kept(looked(collection, {"good.zip": zip_of({"topics.tsv": TOPICS})}))
    assert Topic.objects.count() == 3


def test_a_sheet_that_kills_the_child_gets_one_sentence(collection):
    good = workbook([["id", "title"], ["t1", "One"], ["t2", "Two"]])
    made = looked(collection, {"topics.xlsx": good})
    assert card_of(made, "topics.xlsx")["kind"] == "topics"
    assert kept(made).error == ""
    assert Topic.objects.count() == 2
    # The sheet says it has a cell in the last of a million rows and 16,384 columns: no memory holds that.
    far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    wide = workbook_of({"Sheet1": sheet_xml([["id", "title"], ["t3", "Three"]]).replace("</sheetData>", far)})
    made = looked(collection, {"wide.xlsx": wide})
    card = card_of(made, "wide.xlsx")
    assert made.report["obstacles"]
    assert len([card["why"], *card["faults"]]) <= 2
    assert kept(made, state="failed").error.startswith("wide.xlsx")
    assert Topic.objects.count() == 2
    assert Import.objects.filter(state="kept").count() == 1


def test_what_no_reader_reads_is_named_with_advice(collection):
    made = looked(collection, {"paper.pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "topics.tsv": TOPICS})
    card = card_of(made, "paper.pdf")
    assert card["is_refused"]
    assert made.report["obstacles"] == [f"paper.pdf cannot be read: {card['why']}"]
    kept(made, [{"name": "paper.pdf", "kind": "none"}])
    assert Topic.objects.count() == 3
