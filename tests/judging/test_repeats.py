"""A worker who graded a document twice in one file: by default the file is refused, else the user says what counts."""

import io

import pytest
from django.core.management import CommandError, call_command

from judging.models import Campaign, Collection, Document, GoldAnswer, Grade, Judgment, Scale, Topic
from judging.services.errors import ImportRefused
from judging.services.files import import_judgments
from touchstone.models import Event

pytestmark = pytest.mark.django_db
CROWD = "task,worker,label\n1 d1,Zoe,2\n1 d1,Adam,0\n1 d1,Zoe,1\n1 d2,Zoe,1\n1 d1,Zoe,0\n"


def make_campaign():
    collection = Collection.objects.create(name="repeats")
    Topic.objects.create(collection=collection, topic_id="1", title="1")
    Document.objects.bulk_create(Document(collection=collection, doc_id=d, text=d) for d in ("d1", "d2"))
    scale = Scale.objects.create(name="repeats")
    Grade.objects.bulk_create(Grade(scale=scale, value=v, label=str(v), gain=v) for v in range(3))
    return Campaign.objects.create(collection=collection, scale=scale, name="repeats", judgments_per_item=2)


def stored():
    rows = Judgment.objects.order_by("item__document__doc_id", "grade")
    return [(doc, grade) for doc, grade in rows.values_list("item__document__doc_id", "grade")]


def add(campaign, data=CROWD, **options):
    source = io.BytesIO(data.encode())
    return import_judgments(campaign=campaign, source=source, name="c", file_format="crowd", **options)


def test_by_default_a_repeated_grade_refuses_the_file_and_names_both_lines():
    campaign = make_campaign()
    with pytest.raises(ImportRefused) as refusal:
        add(campaign)
    assert str(refusal.value).splitlines() == [
        "c:4:1: document d1 of topic 1 and worker Zoe occurs twice (first on line 2) (and one more like it, at 6:1)",
        "2 faults",
    ]
    assert not Judgment.objects.exists()


@pytest.mark.parametrize(
    ("repeats", "zoe"),
    [("first", 2), ("last", 0)],
)
def test_the_first_or_the_last_is_kept_when_asked_and_the_log_counts_the_rest(repeats, zoe):
    campaign = make_campaign()
    assert add(campaign, repeats=repeats) == 3
    assert stored() == sorted([("d1", zoe), ("d1", 0), ("d2", 1)])
    detail = Event.objects.get(verb="imported judgments").detail
    assert (detail["repeats"], detail["n_repeats"]) == (repeats, 2)


def test_a_file_without_repeats_is_the_same_whatever_is_asked():
    campaign = make_campaign()
    assert add(campaign, "task,worker,label\n1 d1,Zoe,2\n", repeats="last") == 1
    assert "n_repeats" not in Event.objects.get(verb="imported judgments").detail


def test_a_fault_after_a_repeat_is_still_found_at_its_own_line():
    campaign = make_campaign()
    with pytest.raises(ImportRefused) as refusal:
        add(campaign, CROWD + "1 d9,Zoe,1\n", repeats="first")
    assert str(refusal.value).startswith("c:7:1: the collection has no document d9")
    assert not Judgment.objects.exists()


def test_an_unknown_wish_is_refused_by_name():
    with pytest.raises(ImportRefused, match="repeats must be one of reject, first, last, not 'both'"):
        add(make_campaign(), repeats="both")


def test_the_command_keeps_the_last_gold_answer_when_asked(tmp_path):
    campaign = make_campaign()
    path = tmp_path / "q"
    path.write_text("1 0 d1 1\n1 0 d1 2\n")
    options = {"campaign": campaign.name, "gold": True, "stdout": io.StringIO()}
    with pytest.raises(CommandError, match="occurs twice"):
        call_command("import_judgments", str(path), **options)
    call_command("import_judgments", str(path), repeats="last", **options)
    assert GoldAnswer.objects.get().grade == 2
