"""Files of judgments in: every judgment fills a slot, or nothing is changed."""

import pytest
from file_campaign import file, make_campaign, make_item, make_judgment, refusal

import judging.tasks  # noqa: F401 (registers the job)
from judging.models import (
    Assessor,
    Judgment,
    Lease,
    Slot,
)
from judging.services.files import (
    import_judgments,
)
from touchstone.event_details import details_with_names
from touchstone.models import Event, User

# -- judgments of a campaign ----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_crowd_judgments_fill_slots_and_names_stand_in_the_log_alone():
    campaign = make_campaign(k=2)
    item = make_item(campaign, "1", "d1")
    for number in (1, 2):
        Slot.objects.create(
            item=item, purpose="judge", number=number, campaign=campaign, topic=item.topic, position=9
        )
    data = "task,worker,label\n1 d1,Zoe,2\n1 d1,Adam,0\n2 d3,Zoe,1\n"
    arguments = {"campaign": campaign, "name": "c.csv", "file_format": "crowd", "source_name": "mturk"}
    assert import_judgments(source=file(data), **arguments) == 3
    prefix = f"imported-{str(campaign.pk)[:8]}-"
    rows = Judgment.objects.order_by("id").values_list(
        "item__topic__topic_id", "item__document__doc_id", "assessor__user__username", "grade", "slot__number"
    )
    assert list(rows) == [
        ("1", "d1", f"{prefix}1", 2, 1),
        ("1", "d1", f"{prefix}2", 0, 2),
        ("2", "d3", f"{prefix}1", 1, 1),
    ]
    assert set(Slot.objects.values_list("purpose", "state")) == {("judge", "done")}
    assert Slot.objects.count() == Lease.objects.count() == 3
    for judgment in Judgment.objects.select_related("slot"):
        assert judgment.lease_token == judgment.slot.token == judgment.slot.leases.get().token
    assert dict(Assessor.objects.values_list("user__username", "n_judged")) == {
        f"{prefix}1": 2,
        f"{prefix}2": 1,
    }
    assert not User.objects.get(username=f"{prefix}1").has_usable_password()
    assert not User.objects.filter(username__in=["Zoe", "Adam"]).exists()
    event = Event.objects.get(verb="imported judgments")
    [named] = details_with_names([event])
    assert named["assessors"] == {f"{prefix}1": "Zoe", f"{prefix}2": "Adam"}

    assert import_judgments(source=file("task,worker,label\n2 d1,Adam,1\n2 d1,Eve,1\n"), **arguments) == 2
    assert dict(Assessor.objects.values_list("user__username", "n_judged")) == {
        f"{prefix}1": 2,
        f"{prefix}2": 2,
        f"{prefix}3": 1,
    }


@pytest.mark.django_db
def test_an_import_takes_only_slots_that_nobody_holds():
    campaign = make_campaign(k=3)
    item = make_item(campaign, "1", "d1")
    make_judgment(item, "bob", 1, number=2)
    import_judgments(campaign=campaign, source=file("1 x d1 0\n1 y d1 2\n"), name="j", file_format="qrels_jg")
    numbers = Judgment.objects.order_by("id").values_list("slot__number", "grade")
    assert list(numbers) == [(2, 1), (1, 0), (3, 2)]


ASKED = (
    "j:2:8: grade -2 is not on the scale 0, 1, 2; 2 lines have -2, 1 line has -1: say with a grade map what becomes of "
    "them, -2=0,-1=0 (not relevant) or -2=,-1= (left out)"
)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            "1 a d1 1\n1 b d1 1\n1 c d1 1\n",
            "j:3:5: document d1 of topic 1 already has all its judgments; the campaign needs 2 per item",
        ),
        (
            "1 a d1 1\n1 a d1 2\n",
            "j:2:5: document d1 of topic 1 and assessor a occurs twice (first on line 1)",
        ),
        ("1 a d1 1\n1 b d1 3\n", "j:2:8: grade 3 is not on the scale 0, 1, 2"),
        ("1 a d1 1\n1 b d1 -2\n1 b d2 -2\n1 a d2 -1\n", ASKED),
        ("1 a d1 1\n1 b d9 1\n", "j:2:5: the collection has no document d9"),
        ("1 a d1 1\n1 old d2 1\n", "j:2:3: this assessor has already judged document d2 of topic 1"),
    ],
)
def test_a_file_with_one_bad_judgment_changes_nothing(data, message):
    campaign = make_campaign(k=2)
    arguments = {"campaign": campaign, "file_format": "qrels_jg", "source_name": "lab", "name": "j"}
    import_judgments(source=file("1 old d2 1\n"), **arguments)
    assert refusal(import_judgments, source=file(data), **arguments) == message


@pytest.mark.django_db
def test_a_bad_line_of_crowd_judgments_is_named_with_its_cell():
    campaign = make_campaign()
    data = "worker,topic_id,doc_id,grade\na,1,d1,1\nb,1,d7,1\n"
    found = refusal(import_judgments, campaign=campaign, source=file(data), name="c", file_format="crowd")
    assert found == "c:3:5: the collection has no document d7"
    found = refusal(
        import_judgments,
        campaign=campaign,
        source=file("task,label,worker\n1 d1,5,a\n"),
        name="c",
        file_format="crowd",
    )
    assert found == "c:2:6: grade 5 is not on the scale 0, 1, 2"


@pytest.mark.django_db
def test_qrels_name_no_assessor_and_are_refused_as_judgments():
    found = refusal(import_judgments, campaign=make_campaign(), source=file("1 0 d1 1\n"), name="q")
    assert found == "q:1:1: qrels names no assessors: import it as gold answers"
