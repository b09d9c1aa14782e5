"""Files of judgments in and out: every counted judgment, under pseudonyms, and back the same."""

import pytest
from file_campaign import file, judged_campaign, make_campaign, make_item, make_judgment, refusal

import judging.tasks  # noqa: F401 (registers the job)
from judging.models import (
    Assessor,
    GoldAnswer,
    Judgment,
    Lease,
    Slot,
)
from judging.services.exports import export_prels, export_qrels, export_qrels_jg, pseudonym, qrels_rule
from judging.services.files import (
    import_judgments,
)
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
    assert event.detail["assessors"] == {f"{prefix}1": "Zoe", f"{prefix}2": "Adam"}

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


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            "1 a d1 1\n1 b d1 1\n1 c d1 1\n",
            "j:3:5: document d1 of topic 1 has its judgments already; the campaign wants 2 an item",
        ),
        (
            "1 a d1 1\n1 a d1 2\n",
            "j:2:5: document d1 of topic 1 and assessor a is there twice (first on line 1)",
        ),
        ("1 a d1 1\n1 b d1 3\n", "j:2:8: grade 3 is not on the scale 0, 1, 2"),
        ("1 a d1 1\n1 b d1 -2\n", "j:2:8: grade -2 is not on the scale 0, 1, 2"),
        ("1 a d1 1\n1 b d9 1\n", "j:2:5: the collection has no document d9"),
        ("1 a d1 1\n1 old d2 1\n", "j:2:3: this assessor judged document d2 of topic 1 before"),
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


# -- out ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_qrels_are_the_lower_median_of_latest_grades_and_gold_goes_first():
    campaign = judged_campaign()
    # 9 d1: 0 1 2 2, between 1 and 2 the lower; 10 d2: revised from 0 to 2; 10 d1: 2, the audit says 1.
    assert list(export_qrels(campaign=campaign)) == ["10 0 d1 1\n", "10 0 d2 2\n", "9 0 d1 1\n"]
    assert list(export_qrels(campaign=campaign, prefer_gold=False)) == [
        "10 0 d1 2\n",
        "10 0 d2 2\n",
        "9 0 d1 1\n",
    ]
    assert "audit" in qrels_rule()
    assert "audit" not in qrels_rule(prefer_gold=False)


@pytest.mark.django_db
def test_qrels_jg_hold_every_counted_judgment_under_pseudonyms():
    campaign = judged_campaign()
    lines = [line.split() for line in export_qrels_jg(campaign=campaign)]
    names = {
        assessor.user.username.split()[0]: pseudonym(campaign, assessor.pk)
        for assessor in campaign.assessors.all()
    }
    expected = [
        *sorted([["10", names["a"], "d1", "2"], ["10", names["gold"], "d1", "1"]]),
        ["10", names["a"], "d2", "2"],
        *sorted(["9", names[name], "d1", grade] for name, grade in zip("abcd", "0122", strict=True)),
    ]
    assert lines == expected
    assert all(len(name) == 12 and int(name, 16) >= 0 for name in names.values())
    assert pseudonym(make_campaign(), campaign.assessors.first().pk) not in names.values()


@pytest.mark.django_db
def test_prels_hold_drawn_items_with_their_probability():
    campaign = judged_campaign()
    items = {
        (i.topic.topic_id, i.document.doc_id): i.pk
        for i in campaign.items.select_related("topic", "document")
    }
    drawn = {items["10", "d2"]: 0.1, items["9", "d1"]: 1.0}
    expected = ["10 d2 2 1 0.1\n", "9 d1 1 1 1.0\n"]
    assert list(export_prels(campaign=campaign, probabilities=drawn)) == expected
    assert list(export_prels(campaign=campaign, probabilities=iter(drawn.items()))) == expected


@pytest.mark.django_db
def test_what_is_exported_comes_back_the_same():
    first = make_campaign(k=2)
    data = "1 a d1 2\n1 b d1 0\n2 a d3 1\n2 c d3 1\n"
    import_judgments(campaign=first, source=file(data), name="j", file_format="qrels_jg")
    out = "".join(export_qrels_jg(campaign=first))
    second = make_campaign(first.collection, k=2)
    import_judgments(campaign=second, source=file(out), name="again", file_format="qrels_jg")
    names = {username: name for name, username in _names(second).items()}
    back = sorted(
        f"{topic} {names[username]} {document} {grade}\n"
        for topic, username, document, grade in Judgment.objects.filter(item__campaign=second).values_list(
            "item__topic__topic_id", "assessor__user__username", "item__document__doc_id", "grade"
        )
    )
    assert back == sorted(out.splitlines(keepends=True))
    qrels = list(export_qrels(campaign=second))
    assert qrels == list(export_qrels(campaign=first)) == ["1 0 d1 0\n", "2 0 d3 1\n"]
    import_judgments(campaign=second, source=file("".join(qrels)), name="gold", as_gold=True)
    assert GoldAnswer.objects.count() == 2


def _names(campaign):
    event = Event.objects.get(verb="imported judgments", subject=f"campaign:{campaign.pk}")
    return {name: username for username, name in event.detail["assessors"].items()}
