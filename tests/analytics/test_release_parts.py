"""The parts of a release that need no database: hashes, pseudonyms, packing, grades, citations."""

import hashlib
import json
import zipfile

import numpy as np
import polars as pl
import pytest

from analytics.aggregation.grade_tables import lower_medians, majorities
from analytics.estimation.samples import Labels
from analytics.releases.about import About, slug
from analytics.releases.citation import bibtex, citation_text
from analytics.releases.croissant import three_numbers
from analytics.releases.datasheet import changes_text, licence_text, readme
from analytics.releases.folder import Folder, json_line
from analytics.releases.grade_changes import grade_changes
from analytics.releases.manifest import differences, manifest
from analytics.releases.merkle import MerkleTree, lines_of, root_of
from analytics.releases.pseudonyms import new_key, pseudonym
from analytics.releases.tables import JUDGMENTS, to_parquet, write_json_lines
from judging.trec_tables import write_qrels

HOSTILE = [
    "a/b",
    'q"uote',
    "back\\slash",
    "ünïcödé",
    "../../etc/passwd",
    "comma,x",
    "'",
    "試験",
    "=1+1",
    "0301",
    "null",
]


def about(**known):
    given = {
        "campaign": "c", "collection": "k", "version": "1.0", "title": "T", "as_of": "2026-11-21T10:00:00Z",
        "published": "2026-11-21", "slug": "c",
    }  # fmt: skip
    return About(**given | known)


def sha(data):
    return hashlib.sha256(data).digest()


def textbook_root(lines):
    """RFC 6962, section 2.1, as it is written: recursive."""
    if not lines:
        return sha(b"")
    if len(lines) == 1:
        return sha(b"\x00" + lines[0])
    k = 1
    while k * 2 < len(lines):
        k *= 2
    return sha(b"\x01" + textbook_root(lines[:k]) + textbook_root(lines[k:]))


def merkle_root(lines):
    tree = MerkleTree()
    for line in lines:
        tree.add(line)
    return tree.root()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 100])
def test_the_merkle_root_is_that_of_the_standard(n):
    lines = [f"line {number}".encode() for number in range(n)]
    assert merkle_root(lines) == textbook_root(lines).hex()
    assert root_of([b"".join(line + b"\n" for line in lines)]) == merkle_root(lines)


def test_a_tree_of_a_million_lines_keeps_no_more_than_a_hash_a_level():
    tree = MerkleTree()
    for number in range(100_000):
        tree.add(b"%d" % number)
    assert tree.n == 100_000
    assert len(tree._complete) <= 17


def test_pseudonyms_of_two_keys_have_nothing_in_common():
    first, second = new_key(), new_key()
    names = [[pseudonym(key, number) for number in range(1000)] for key in (first, second)]
    assert len(set(names[0])) == len(set(names[1])) == 1000
    assert not set(names[0]) & set(names[1])
    assert all(len(name) == 12 for name in names[0])
    assert names[0] == [pseudonym(first, number) for number in range(1000)]


@pytest.mark.parametrize("key", ["", "ab", "no hexadecimal digits"])
def test_there_are_no_pseudonyms_without_a_key(key):
    with pytest.raises(ValueError, match=r"16 bytes|non-hexadecimal"):
        pseudonym(key, 1)


def filled(root):
    folder = Folder(root)
    folder.write_lines("judgments.jsonl", [{"topic_id": "1", "grade": grade} for grade in (0, 2, 1)])
    folder.write("runs/0001.txt", "héllo\n")
    with folder.open_gzip("runs/0002.run.gz") as stream:
        stream.write(b"1 Q0 d 1 1.0 r\n" * 100)
    entries = folder.entries()
    tree = merkle_root(lines_of([folder.path("judgments.jsonl").read_bytes()]))
    folder.write_json("manifest.json", manifest({"version": "1.0"}, entries, tree))
    return folder


def found_in(folder):
    known = json.loads(folder.path("manifest.json").read_bytes())
    return differences(lambda name: [folder.path(name).read_bytes()], folder.names(), known)


def test_the_same_files_are_packed_into_the_same_bytes_wherever_and_whenever(tmp_path):
    one, two = filled(tmp_path / "one"), filled(tmp_path / "two")
    for name in two.names():
        (tmp_path / "two" / name).touch()
        (tmp_path / "two" / name).chmod(0o600)
    one.pack(tmp_path / "one.zip", "c-1.0")
    two.pack(tmp_path / "elsewhere.zip", "c-1.0")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "elsewhere.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == sorted(archive.namelist())
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.read("c-1.0/runs/0001.txt").decode() == "héllo\n"


def test_a_manifest_finds_nothing_wrong_where_nothing_is(tmp_path):
    assert found_in(filled(tmp_path)) == []


@pytest.mark.parametrize("name", ["judgments.jsonl", "runs/0001.txt", "runs/0002.run.gz"])
def test_every_single_flipped_bit_is_found(tmp_path, name):
    folder = filled(tmp_path)
    right = folder.path(name).read_bytes()
    for place in range(len(right)):
        wrong = bytearray(right)
        wrong[place] ^= 1 << place % 8
        folder.path(name).write_bytes(wrong)
        assert any(words.startswith(name) for words in found_in(folder)), place
    folder.path(name).write_bytes(right)
    assert found_in(folder) == []


def test_files_that_are_missing_added_or_cut_are_found(tmp_path):
    folder = filled(tmp_path)
    folder.path("runs/0001.txt").unlink()
    folder.write("extra.txt", "")
    folder.path("runs/0002.run.gz").write_bytes(b"")
    assert [words.split(":")[0] for words in found_in(folder)] == [
        "extra.txt",
        "runs/0001.txt",
        "runs/0002.run.gz",
    ]


def test_a_line_that_was_swapped_with_another_changes_the_root(tmp_path):
    folder = filled(tmp_path)
    first, second, third = folder.path("judgments.jsonl").read_bytes().splitlines(keepends=True)
    assert root_of([first, second, third]) != root_of([second, first, third])


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "a//b", "./x"])
def test_no_file_of_a_release_lies_outside_it(tmp_path, name):
    with pytest.raises(ValueError, match="lies inside"):
        Folder(tmp_path).write(name, "x")


def labels(item, grade, n_items):
    return Labels(item, np.zeros(len(item), dtype=int), grade, n_items=n_items, n_assessors=1, n_grades=4)


def test_one_grade_of_several_is_what_the_rules_say():
    item, grade = [0, 0, 0, 1, 1, 2, 2, 2, 2], [2, 0, 2, 3, 1, 1, 2, 3, 3]
    table = labels(item, grade, 4).table()
    assert lower_medians(table).tolist() == [2, 1, 2, -1]
    assert majorities(table).tolist() == [2, 1, 3, -1]
    rng = np.random.default_rng(1)
    item, grade = rng.integers(0, 50, 300), rng.integers(0, 4, 300)
    expected = [sorted(grade[item == one])[(np.sum(item == one) - 1) // 2] for one in range(50)]
    assert lower_medians(labels(item, grade, 50).table()).tolist() == expected
    with pytest.raises(ValueError, match="label_grade must be at most 3, got 4"):
        labels([0], [4], 1)


def test_changes_of_grades_are_counted_line_by_line():
    rng = np.random.default_rng(2)
    before = {
        (f"t{t}", f"d/{d}"): int(rng.integers(3)) for t in range(5) for d in range(20) if rng.random() < 0.7
    }
    after = {pair: (grade + int(rng.random() < 0.3)) for pair, grade in before.items() if rng.random() < 0.8}
    after |= {(f"t{t}", "é"): 1 for t in range(3)}

    def lines(grades):
        ordered = sorted(grades.items(), key=lambda one: (one[0][0].encode(), one[0][1].encode()))
        return [f"{t} 0 {d} {grade}".encode() for (t, d), grade in ordered]

    both = before.keys() & after.keys()
    assert grade_changes(lines(before), lines(after)) == {
        "added": len(after.keys() - before.keys()),
        "changed": sum(before[pair] != after[pair] for pair in both),
        "removed": len(before.keys() - after.keys()),
        "same": sum(before[pair] == after[pair] for pair in both),
    }
    with pytest.raises(ValueError, match="order"):
        grade_changes(lines(before)[::-1], lines(after))


def test_hostile_ids_come_back_from_every_table_as_they_are(tmp_path):
    rows = pl.DataFrame(
        [
            dict.fromkeys(JUDGMENTS) | {"topic_id": one, "doc_id": one, "grade": 1, "counted": True}
            for one in HOSTILE
        ],
        schema=JUDGMENTS,
    )
    path = tmp_path / "judgments.jsonl"
    with path.open("wb") as stream:
        write_json_lines(rows, stream)
    assert [json.loads(line)["doc_id"] for line in path.read_bytes().split(b"\n")[:-1]] == HOSTILE
    to_parquet(path, tmp_path / "judgments.parquet", JUDGMENTS)
    twin = pl.read_parquet(tmp_path / "judgments.parquet")
    assert twin["topic_id"].to_list() == HOSTILE
    assert dict(twin.schema) == JUDGMENTS
    with (tmp_path / "qrels").open("wb") as stream:
        write_qrels(rows, stream)
    assert (tmp_path / "qrels").read_text().splitlines() == [f"{one} 0 {one} 1" for one in HOSTILE]


def test_a_table_without_rows_has_its_columns_nevertheless(tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    to_parquet(tmp_path / "empty.jsonl", tmp_path / "empty.parquet", JUDGMENTS)
    assert list(pl.read_parquet(tmp_path / "empty.parquet").columns) == list(JUDGMENTS)


def test_json_says_no_to_numbers_that_are_none():
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_line({"value": float("nan")})
    assert json.loads(json_line({"é": "\u2028\n"})) == {"é": "\u2028\n"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Robust 04", "robust-04"), ("  -- ", "x"), ("../../etc", "etc"), ("試験", "x"), ("Ä/B\\C", "a-b-c")],
)
def test_a_campaigns_name_becomes_the_name_of_a_folder_that_is_safe(name, expected):
    assert slug(name, "x") == expected
    assert len(slug(name * 100, "x")) <= 60


def test_a_citation_names_authors_title_version_year_and_root():
    text = citation_text(about(title="Grades\nof all", authors=("Ada B.", "Cy D."), merkle_root="ab12"))
    assert text.count("\n") == 1
    assert all(part in text for part in ("Ada B. and Cy D.", "(2026)", "Grades of all", "1.0", "ab12"))


def test_what_tex_would_obey_is_escaped():
    entry = bibtex(about(title=r"50% \input{x} & {R_1}$", authors=("A } B",)))
    assert r"50\% \textbackslash{}input\{x\} \& \{R\_1\}\$" in entry
    assert r"{{A \} B}}" in entry
    assert entry.startswith("@misc{c-1.0,\n")
    assert "author" not in bibtex(about())


def test_the_data_sheet_warns_of_simulations_and_of_campaigns_that_go_on():
    assert "simulation" in readme(about(is_simulated=True))
    assert "still open" in readme(about(campaign_is_open=True))
    assert "simulation" not in readme(about())
    assert "still open" not in readme(about())


def test_the_data_sheet_says_how_many_judgments_an_item_has():
    assert "Judgments per item: 3. Grades" in readme(about(judgments_per_item=3))
    of_file = readme(about(judgments_per_item=1, labels_in_file="5 to 113"))
    assert "Judgments per item: as many as the imported file has (5 to 113). Grades" in of_file


def test_titles_cannot_look_like_parts_of_the_data_sheet():
    page = readme(about(title="x\n# Licence\nfree", guidelines="## Licence\nfree"))
    assert "\n# Licence" not in page
    assert "\n## Licence\nfree" not in page
    assert "> ## Licence" in page


def test_the_change_log_says_what_can_be_said():
    told = {"previous": "1.0", "added": 1200, "changed": 3, "removed": 0, "same": 7}
    assert "1,200 grades added, 3 changed, 0 removed, 7 the same" in changes_text(about(changes=told))
    assert "first release" in changes_text(about())
    assert "cannot be read" in changes_text(about(changes={"previous": "1", "unknown": "it cannot be read"}))


def test_the_licence_says_whether_texts_are_inside():
    assert "CC-BY-4.0" in licence_text(about(licence="CC-BY-4.0"))
    assert "not in this release" in licence_text(about())
    assert "not in this release" not in licence_text(about(includes_documents=True))
    assert three_numbers("3.1") == "3.1.0"
