"""Files of judgments out: what is in each format of EXPORTS, and that it comes back the same."""

import pytest
from file_campaign import file, judged_campaign, make_campaign, make_collection, make_item
from made_releases import audited

from analytics.aggregation.qrels import qrels_rule
from analytics.releases.pseudonyms import pseudonym
from analytics.services import judgment_rows
from analytics.services.exports import (
    NothingDrawn,
    crowd_lines,
    export_format,
    prels_lines,
    pseudonym_key,
    qrels_jg_lines,
    qrels_lines,
)
from judging.judgment_tables import read_crowd_labels
from judging.models import Adjudication, GoldAnswer, Judgment
from judging.services.errors import NotFound
from judging.services.judgment_files import import_judgments
from judging.trec import JudgmentRecord, read_qrels_jg
from sampling.models import DrawEntry
from touchstone.event_details import details_with_names
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db


def test_qrels_are_the_lower_median_of_latest_grades_and_gold_goes_first():
    campaign = judged_campaign()
    # 9 d1: 0 1 2 2, between 1 and 2 the lower; 10 d2: revised from 0 to 2; 10 d1: 2, the audit says 1.
    assert list(qrels_lines(campaign, True)) == ["10 0 d1 1\n", "10 0 d2 2\n", "9 0 d1 1\n"]
    assert list(qrels_lines(campaign, False)) == [
        "10 0 d1 2\n",
        "10 0 d2 2\n",
        "9 0 d1 1\n",
    ]
    assert "audit" in qrels_rule()
    assert "audit" not in qrels_rule(prefers_gold=False)


def test_qrels_jg_hold_every_counted_judgment_under_pseudonyms():
    campaign = judged_campaign()
    key = pseudonym_key(campaign.pk)
    lines = [line.split() for line in qrels_jg_lines(campaign, True)]
    names = {
        assessor.user.username.split()[0]: pseudonym(key, assessor.pk)
        for assessor in campaign.assessors.all()
    }
    expected = [
        *sorted([["10", names["a"], "d1", "2"], ["10", names["gold"], "d1", "1"]]),
        ["10", names["a"], "d2", "2"],
        *sorted(["9", names[name], "d1", grade] for name, grade in zip("abcd", "0122", strict=True)),
    ]
    assert lines == expected
    assert all(len(name) == 12 and int(name, 16) >= 0 for name in names.values())
    other = pseudonym_key(make_campaign().pk)
    assert pseudonym(other, campaign.assessors.first().pk) not in names.values()


def test_prels_hold_drawn_items_with_their_probability(tmp_path):
    campaign = audited(tmp_path)
    entries = DrawEntry.objects.select_related("item__topic", "item__document")
    drawn = {
        (entry.item.topic.topic_id, entry.item.document.doc_id): entry.inclusion_probability
        for entry in entries
    }
    rows = [line.split() for line in prels_lines(campaign, True)]
    qrels = {tuple(line.split()[::2]): int(line.split()[3]) for line in qrels_lines(campaign, True)}
    assert {(row[0], row[1]) for row in rows} == drawn.keys()
    assert len(rows) > 20
    for topic, document, grade, method, probability in rows:
        assert float(probability) == drawn[topic, document]
        assert int(grade) == qrels[topic, document]
        assert method == "1"
    assert rows == sorted(rows, key=lambda row: (row[0].encode(), row[1].encode()))


def test_a_campaign_that_was_never_drawn_has_no_prels():
    with pytest.raises(NothingDrawn):
        prels_lines(judged_campaign(), True)


def test_a_format_that_there_is_not_is_refused():
    with pytest.raises(NotFound):
        export_format("nonsense")


@pytest.mark.parametrize("at_once", [1, 2, 3, 5000])
def test_judgments_that_come_in_parts_make_the_same_lines(at_once, monkeypatch):
    """Also where a manager decided items before, between and after those that are judged, in whichever part."""
    campaign = judged_campaign()
    manager = User.objects.create(username="boss", role="manager")
    for topic, document, grade in (("10", "d2", 1), ("10", "d3", 0), ("9", "d2", 2), ("9", "d3", 0)):
        Adjudication.objects.create(
            item=make_item_once(campaign, topic, document), grade=grade, decided_by=manager
        )
    monkeypatch.setattr(judgment_rows, "ROWS_AT_ONCE", at_once)
    assert list(qrels_lines(campaign, True)) == [
        "10 0 d1 1\n",
        "10 0 d2 1\n",
        "10 0 d3 0\n",
        "9 0 d1 1\n",
        "9 0 d2 2\n",
        "9 0 d3 0\n",
    ]
    assert list(qrels_lines(campaign, False)) == ["10 0 d1 2\n", "10 0 d2 2\n", "9 0 d1 1\n"]
    assert len(list(qrels_jg_lines(campaign, True))) == 7


def make_item_once(campaign, topic, document):
    known = campaign.items.filter(topic__topic_id=topic, document__doc_id=document).first()
    return known or make_item(campaign, topic, document)


HOSTILE = ["=1+1", "comma,x", 'q"uote', "@cmd", "-2", "+3", "'=4", "a;b", "ünïcödé"]


def test_crowd_labels_out_and_in_are_the_records_of_qrels_jg():
    """Also where a spreadsheet would run an id, or CSV must quote it."""
    collection = make_collection(topics=HOSTILE, documents=HOSTILE)
    first = make_campaign(collection, k=2)
    given = "".join(f"{one} {who} {one} {number % 3}\n" for number, one in enumerate(HOSTILE) for who in "ab")
    import_judgments(campaign=first, source=file(given), name="j", file_format="qrels_jg")
    crowd = "".join(crowd_lines(first, True))
    records = list(read_qrels_jg(file("".join(qrels_jg_lines(first, True))), "j"))
    assert list(read_crowd_labels(file(crowd), "c")) == records
    assert {record.doc_id for record in records} == set(HOSTILE)
    assert crowd.splitlines()[0] == "task,worker,label"

    second = make_campaign(collection, k=2)
    import_judgments(campaign=second, source=file(crowd), name="c", file_format="crowd")
    names = {username: name for name, username in _names(second).items()}
    rows = Judgment.objects.filter(item__campaign=second).values_list(
        "item__topic__topic_id", "item__document__doc_id", "assessor__user__username", "grade"
    )
    back = {JudgmentRecord(topic, document, names[user], grade) for topic, document, user, grade in rows}
    assert back == set(records)
    assert len(rows) == len(records) == 2 * len(HOSTILE)


def test_crowd_labels_of_a_judged_campaign_hold_the_audits_too():
    campaign = judged_campaign()
    records = list(read_qrels_jg(file("".join(qrels_jg_lines(campaign, True))), "j"))
    assert list(read_crowd_labels(file("".join(crowd_lines(campaign, True))), "c")) == records
    assert len(records) == 7


def test_what_is_exported_comes_back_the_same():
    first = make_campaign(k=2)
    data = "1 a d1 2\n1 b d1 0\n2 a d3 1\n2 c d3 1\n"
    import_judgments(campaign=first, source=file(data), name="j", file_format="qrels_jg")
    out = "".join(qrels_jg_lines(first, True))
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
    qrels = list(qrels_lines(second, True))
    assert qrels == list(qrels_lines(first, True)) == ["1 0 d1 0\n", "2 0 d3 1\n"]
    import_judgments(campaign=second, source=file("".join(qrels)), name="gold", as_gold=True)
    assert GoldAnswer.objects.count() == 2


def _names(campaign):
    event = Event.objects.get(verb="imported judgments", subject=f"campaign:{campaign.pk}")
    [detail] = details_with_names([event])
    return {name: username for username, name in detail["assessors"].items()}
