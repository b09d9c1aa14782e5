"""Samples in: every pair has its probability and its judgment, or nothing is changed and the line is named."""

import io
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from file_campaign import everything
from foreign_sample import collection_of, empty_campaign, import_text, sample_files
from small_campaign import make_undrawn

from judging.models import Assessor, ImportedName, Judgment, Slot
from judging.samples import read_prel_sample
from judging.services.errors import ImportRefused
from judging.services.judgment_files import import_judgments
from sampling.frames import load_frame
from sampling.models import Draw, DrawEntry
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.models import Event

pytestmark = pytest.mark.django_db
GOOD = "7 7-d00 1 1 0.5\n7 7-d01 0 0 1\n10 10-d03 2 0 .25\n"
GOOD_STRATA = "7 0 7-d00 1 1\n7 0 7-d01 1 -1\n7 0 7-d02 2 0\n"


@pytest.fixture
def campaign(tmp_path: Path):
    return empty_campaign(collection_of(sample_files(tmp_path), runs=False))


def refusal(campaign, text: str, **options) -> str:
    """Return why the import is refused, after which nothing has changed."""
    before = (*everything(), Draw.objects.count(), DrawEntry.objects.count())
    with pytest.raises(ImportRefused) as caught, transaction.atomic():
        import_text(campaign, text, **options)
    after = (*everything(), Draw.objects.count(), DrawEntry.objects.count())
    assert after == before
    return str(caught.value)


def test_prels_become_the_draw_and_its_judgments(campaign) -> None:
    assert import_text(campaign, GOOD, source_name="MQ") == 3
    made = campaign.draws.get()
    words = (made.question, made.method, made.selection, made.batch, made.n_frame, made.n_drawn)
    assert words == ("foreign", "foreign", "foreign", 1, 3, 3)
    assert made.get_selection_display() == "Imported with its probabilities"
    assert made.parameters["topics"] == ["10", "7"]
    frame = load_frame(made)
    assert frame.select("topic_id", "doc_id", "batch_1", "inclusion_probability", "drawn_in").rows() == [
        ("10", "10-d03", 0.25, 0.25, 1),
        ("7", "7-d00", 0.5, 0.5, 1),
        ("7", "7-d01", 1.0, 1.0, 1),
    ]
    entries = DrawEntry.objects.values_list("item__document__doc_id", "inclusion_probability", "times")
    assert set(entries) == {("10-d03", 0.25, 1), ("7-d00", 0.5, 1), ("7-d01", 1.0, 1)}
    grades = dict(Judgment.objects.values_list("item__document__doc_id", "grade"))
    assert grades == {"7-d00": 1, "7-d01": 0, "10-d03": 2}
    assert set(Slot.objects.values_list("purpose", "state", "number")) == {("judge", "done", 1)}
    event = Event.objects.get(verb="imported judgments")
    (name,) = ImportedName.objects.all()
    assert (event.detail["assessors"], name.name) == ([name.assessor.user_id], "MQ")
    assert (event.detail["file_format"], event.detail["method_codes"]) == ("prels", "recorded")
    assert Assessor.objects.get(campaign=campaign).n_judged == 3


def test_the_tracks_codes_make_certain_and_leave_out(campaign) -> None:
    lines = "7 7-d00 1 2 0.5\n7 7-d01 0 1 0.125\n10 10-d03 2 0 .25\n"
    assert import_text(campaign, lines, method_codes="track") == 2
    assert load_frame(campaign.draws.get()).select("topic_id", "doc_id", "batch_1").rows() == [
        ("7", "7-d00", 1.0),
        ("7", "7-d01", 0.125),
    ]


def test_a_grade_map_and_gz_and_the_command(campaign, tmp_path: Path) -> None:
    path = tmp_path / "s.prels"
    path.write_text("7 7-d00 -1 1 0.5\n7 7-d01 4 1 0.5\n")
    out = StringIO()
    options = {"campaign": campaign.name, "format": "prels", "stdout": out}
    with pytest.raises(CommandError, match=r"s\.prels:1:9: grade -1 is not on the scale 0, 1, 2"):
        call_command("import_judgments", str(path), **options)
    call_command("import_judgments", str(path), grade_map="-1=0,4=2", method_codes="track", **options)
    assert out.getvalue() == f"2 judgments added to {campaign.name}\n"
    assert sorted(Judgment.objects.values_list("grade", flat=True)) == [0, 2]
    assert campaign.draws.get().parameters["method_codes"] == "track"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("7 7-d05 1 1 0", "s:4:13: inclusion probability must be in (0, 1], not 0"),
        ("7 7-d05 1 1 1.5", "s:4:13: inclusion probability must be in (0, 1], not 1.5"),
        ("7 7-d05 1 1 -.5", "s:4:13: inclusion probability must be in (0, 1], not -.5"),
        ("7 7-d05 1 1 NA", "s:4:13: inclusion probability must be a finite number, not 'NA'"),
        ("7 7-d05 1 1 nan", "s:4:13: inclusion probability must be a finite number, not 'nan'"),
        ("7 7-d05 NA 1 0.5", "s:4:9: grade must be an integer in -127..127, not 'NA'"),
        ("7 7-d05 3 1 0.5", "s:4:9: grade 3 is not on the scale 0, 1, 2"),
        ("7 7-d05 1 x 0.5", "s:4:11: method must be an integer, not 'x'"),
        ("7 7-d00 1 1 0.5", "s:4:3: document 7-d00 of topic 7 occurs twice (first on line 1)"),
        ("7 7-d05 1 1", "s:4:12: expected 5 columns (topic document grade method probability), found 4"),
        ("99 7-d05 1 1 0.5", "s:4:1: the collection has no topic 99"),
        ("7 nothing 1 1 0.5", "s:4:3: the collection has no document nothing"),
    ],
)
def test_a_wrong_line_of_prels_is_named_and_changes_nothing(campaign, line: str, reason: str) -> None:
    assert refusal(campaign, f"{GOOD}{line}\n") == reason
    assert import_text(campaign, f"{GOOD}7 7-d05 1 1 0.5\n") == 4  # the control: a right line in its place


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("7 0 7-d05 1 -2", "s:4:13: grade must be at least 0, or -1 where not sampled, not -2"),
        ("7 0 7-d05 x 1", "s:4:11: stratum must be an integer, not 'x'"),
        ("7 0 7-d00 1 0", "s:4:5: document 7-d00 of topic 7 occurs twice (first on line 1)"),
        ("7 0 7-d05 1 3", "s:4:13: grade 3 is not on the scale 0, 1, 2"),
        ("7 0 7-d05 1 NA", "s:4:13: grade must be an integer in -127..127, not 'NA'"),
        (
            "10 0 10-d05 1 -1",
            "s:4:13: stratum 1 of topic 10 has no sampled document: its probability would be 0",
        ),
        ("7 0 nothing 1 -1", "s:4:5: the collection has no document nothing"),
        ("7 7-d05 1 1 0.5", "s:4:13: grade must be an integer in -127..127, not '0.5'"),
    ],
)
def test_a_wrong_line_of_strata_is_named_and_changes_nothing(campaign, line: str, reason: str) -> None:
    assert refusal(campaign, f"{GOOD_STRATA}{line}\n", file_format="stratified") == reason
    assert import_text(campaign, f"{GOOD_STRATA}7 0 7-d05 1 1\n", file_format="stratified") == 3


def test_what_is_no_sample_is_refused(campaign) -> None:
    gold = {"collection": campaign.collection, "source": io.BytesIO(GOOD.encode()), "name": "s"}
    with pytest.raises(ImportRefused, match="prels holds a sample: import it as the judgments of a campaign"):
        import_judgments(**gold, as_gold=True, file_format="prels")
    with pytest.raises(ImportRefused, match="need a campaign"):
        import_judgments(**gold, file_format="prels")
    assert refusal(campaign, GOOD, repeats="last").startswith("a sample names every document once")
    assert refusal(campaign, GOOD, method_codes="mine").startswith(
        "method_codes must be one of recorded, track"
    )
    strata = {"file_format": "stratified", "method_codes": "track"}
    assert refusal(campaign, GOOD_STRATA, **strata) == "method_codes are for prels: stratified has none"
    assert refusal(campaign, "") == "s: no judgments in the file"
    lines = "7 7-d00 1 0 0.5\n"
    assert refusal(campaign, lines, method_codes="track") == "s: no judgments in the file"
    assert refusal(campaign, GOOD_STRATA.replace(" 1\n", " -1\n"), file_format="stratified").startswith(
        "s:1:11:"
    )


def test_a_campaign_that_has_anything_takes_no_sample(campaign, tmp_path: Path) -> None:
    import_text(campaign, GOOD)
    assert "has items already" in refusal(campaign, "7 7-d07 1 1 0.5\n")
    judged = empty_campaign(campaign.collection)
    import_judgments(campaign=judged, source=io.BytesIO(b"7 ann 7-d00 1\n"), name="j", file_format="qrels_jg")
    assert "has items already" in refusal(judged, GOOD)
    drawn = make_undrawn(tmp_path)
    draw(campaign=drawn, design=Design("pool", (), "DCG@10", 10, 30), seed=1)
    assert "has items already" in refusal(drawn, "t0 t0d00 1 1 0.5\n")


def test_a_campaign_that_judges_by_what_it_tells_takes_no_sample(tmp_path: Path) -> None:
    sample = sample_files(tmp_path)
    ordered = empty_campaign(collection_of(sample), judging_order="informative")
    assert "choose the random order" in refusal(ordered, sample.prels.read_text())


def test_a_draw_that_is_not_laid_out_is_in_the_way_too(campaign) -> None:
    made = {
        "question": "pool",
        "method": "default",
        "selection": "poisson",
        "seed": 1,
        "n_frame": 1,
        "n_drawn": 1,
    }
    Draw.objects.create(campaign=campaign, batch=1, frame="frames/x", frame_sha256="0" * 64, **made)
    assert "this campaign has a draw" in refusal(campaign, GOOD)


@pytest.mark.parametrize(
    "change", [{"batch": 2}, {"question": "pool"}, {"method": "naive"}, {"selection": "poisson"}]
)
def test_the_database_keeps_a_foreign_draw_alone_and_whole(campaign, change: dict[str, object]) -> None:
    row = {"question": "foreign", "method": "foreign", "selection": "foreign", "batch": 1}
    rest = {"seed": 0, "frame": "frames/x", "frame_sha256": "0" * 64, "n_frame": 1, "n_drawn": 1}
    with pytest.raises(IntegrityError, match="sampling_draw_foreign"), transaction.atomic():
        Draw.objects.create(campaign=campaign, **row | change, **rest)
    Draw.objects.create(campaign=campaign, **row, **rest)
    with pytest.raises(IntegrityError, match="sampling_draw_unique"), transaction.atomic():
        Draw.objects.create(campaign=campaign, **row, **rest)


def test_what_was_imported_stays(campaign) -> None:
    import_text(campaign, GOOD)
    for change in (lambda: Draw.objects.update(n_drawn=9), lambda: DrawEntry.objects.all().delete()):
        with pytest.raises(Exception, match=r"append-only|never changed|refuse"), transaction.atomic():
            change()
    assert Draw.objects.get().n_drawn == DrawEntry.objects.count() == 3


def test_the_reader_keeps_the_place_of_what_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("1 a 1 0 1\n2 b 1 1 .5\n")
    pairs = list(read_prel_sample(path, "s", "track"))
    assert [(pair.index, pair.topic_id) for pair in pairs] == [(1, "2")]
