"""Zips: pages as documents, other files handed on, and nothing of a hostile one is unpacked."""

import io
import stat
import struct
import zipfile

import pytest
from small_sheets import workbook

from judging import zip_limits
from judging.faults import Faults
from judging.file_options import FileOptions
from judging.recognise import recognise
from judging.records import DocumentRecord
from judging.textfiles import TrecFormatError
from judging.zipped import Member, open_zip, read_pages

PAGE = (
    b"<!doctype html><html><head><title>Bears &amp; honey</title></head><body><p>They eat.</p></body></html>"
)
LATIN = b'<html><head><meta charset="iso-8859-1"><title>F\xf6hn</title></head><body>\x93x\x94</body></html>'


def zip_of(*members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return target


def refusal(data: io.BytesIO) -> str:
    with pytest.raises(TrecFormatError) as caught, open_zip(data, "a.zip"):
        pass
    return str(caught.value)


def test_pages_are_documents_by_their_path_and_other_files_are_handed_on():
    png = b"\x89PNG\r\n\x1a\n" + bytes(20)
    made = [("site/a.html", PAGE), ("site/b.txt", b"plain\r\ntext"), ("site/c.htm", LATIN)]
    rest = [
        ("site/img/f.png", png),
        ("site/queries.csv", b"query_id,query\n1,bears\n"),
        ("site/s.xlsx", workbook([["a"]])),
    ]
    system = [("__MACOSX/x", b"1"), ("site/.DS_Store", b"1"), ("site/._a.html", b"1")]
    with open_zip(zip_of(*made, ("site/empty/", b""), *rest, *system), "a.zip") as archive:
        assert [one.name for one in archive.members] == [name for name, _ in made + rest]
        assert archive.passed_over == tuple(name for name, _ in system)
        assert archive.shared_folder == "site/"
        kinds = [recognise(one.name, archive.head(one)).kind for one in archive.members]
        assert kinds[0] == "documents"
        assert kinds[3:] == ["images", "topics", ""]
        with archive.open(archive.members[3]) as stream:
            assert stream.read() == png
            assert stream.seek(0) == 0
        assert list(read_pages(archive, archive.members[:3])) == [
            DocumentRecord("site/a.html", "Bears & honey", PAGE.decode(), True),
            DocumentRecord("site/b.txt", "", "plain\ntext", False),
            DocumentRecord("site/c.htm", "Föhn", LATIN.decode("cp1252"), True),
        ]


def test_pages_that_cannot_be_read_are_faults_and_the_others_are_read():
    made = [("a b.html", PAGE), ("c.txt", b"caf\xe9"), ("d.txt", b"x"), ("e.txt", b" ")]
    with open_zip(zip_of(*made), "a.zip") as archive:
        faults = Faults()
        assert [one.doc_id for one in read_pages(archive, archive.members, faults=faults)] == ["d.txt"]
        assert str(faults) == (
            "a b.html:1:1: document id 'a b.html' holds white space or a control character\n"
            "c.txt:1:4: not valid UTF-8\n"
            "e.txt:1:1: no documents in the file\n"
            "3 faults"
        )
        options = FileOptions(encoding="cp1252", joins_ids=True)
        found = list(read_pages(archive, archive.members[:3], options=options))
        assert [(one.doc_id, one.text[:5]) for one in found] == [
            ("a_b.html", "<!doc"),
            ("c.txt", "café"),
            ("d.txt", "x"),
        ]


def test_the_folder_that_all_files_share_is_told():
    with open_zip(zip_of(("x/a.txt", b"1"), ("x/y/b.txt", b"2")), "a.zip") as archive:
        assert archive.shared_folder == "x/"
    with open_zip(zip_of(("x/a.txt", b"1"), ("b.txt", b"2")), "a.zip") as archive:
        assert archive.shared_folder == ""


def _link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([("/etc/passwd", b"x")], "'/etc/passwd' has an absolute path"),
        ([("C:\\x", b"x")], "'C:/x' has an absolute path"),
        ([("a/../../b", b"x")], "'a/../../b' leads out of the zip"),
        ([("a\\..\\b", b"x")], "'a/../b' leads out of the zip"),
        ([(_link(), b"/etc/passwd")], "'link' is a link"),
        ([("a\nb", b"x")], "'a\\nb' has a control character in its name"),
        ([("a.txt", zip_of(("b", b"x")).getvalue())], "a.txt is a zip in the zip; unpack it first"),
        ([("a//b", b"x"), ("a/b", b"y")], "a/b is twice in the zip"),
    ],
)
def test_what_is_hostile_is_refused_before_anything_is_read(members, reason):
    assert refusal(zip_of(*members)) == f"a.zip:1:1: {reason}"


def test_a_bomb_is_refused_by_what_its_directory_says():
    assert refusal(zip_of(("a", bytes(20_000_000)))) == (
        "a.zip:1:1: a zip bomb: it expands to more than 200 times its size"
    )


def test_ten_thousand_files_are_enough(monkeypatch):
    assert zip_limits.MOST_MEMBERS == 10_000
    monkeypatch.setattr(zip_limits, "MOST_MEMBERS", 2)
    assert refusal(zip_of(("a", b"1"), ("b", b"2"), ("c", b"3"))) == (
        "a.zip:1:1: 3 files in the zip: at most 2; send several zips"
    )
    with open_zip(zip_of(("a", b"1"), ("b", b"2")), "a.zip") as archive:
        assert len(archive.members) == 2


def test_encrypted_files_and_rare_methods_are_refused():
    data = bytearray(zip_of(("a.txt", b"x" * 50)).getvalue())
    place = data.find(b"PK\x01\x02")
    data[place + 8] |= 1
    assert refusal(io.BytesIO(bytes(data))) == "a.zip:1:1: a.txt is encrypted; make a zip without a password"
    said = refusal(zip_of(("a.txt", b"x" * 50), method=zipfile.ZIP_BZIP2))
    assert said == "a.zip:1:1: a.txt is compressed by a method other than deflate; make a usual zip"


def test_a_damaged_zip_or_member_is_one_sentence():
    assert refusal(io.BytesIO(b"PK\x03\x04 nothing")).startswith("a.zip:1:1: a damaged zip (")
    data = (
        zip_of(("a.txt", b"some words"), method=zipfile.ZIP_STORED)
        .getvalue()
        .replace(b"some words", b"same words")
    )
    assert "a.txt is damaged in the zip (Bad CRC-32" in refusal(io.BytesIO(data))


def test_a_member_gives_no_more_than_the_directory_says():
    """The directory says 10 bytes of a member that expands to 20 MB: no more than these are ever read."""
    data = bytearray(zip_of(("a.txt", bytes(20_000_000))).getvalue())
    place = data.find(b"PK\x01\x02")
    struct.pack_into("<I", data, place + 24, 10)
    said = refusal(io.BytesIO(bytes(data)))
    assert "is damaged in the zip" in said


def test_a_member_is_what_its_path_names():
    with open_zip(zip_of(("./x//a.txt", b"1")), "a.zip") as archive:
        assert archive.members == (Member("x/a.txt", 1),)
