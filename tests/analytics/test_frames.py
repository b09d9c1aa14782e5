"""From the rows of a small real campaign to the arrays that estimates are computed from."""

import uuid
from collections import Counter

import numpy as np
import pytest
from small_campaign import (
    DOCUMENTS,
    N_FRAME,
    RUNS,
    TOPICS,
    doc_id,
    give,
    judge_all,
    judge_audit,
    lease,
    make_assessor,
    make_campaign,
    returned,
    slots,
    true_grade,
    truth_of,
)

from analytics.frames import campaign_arrays
from judging.models import Judgment, Slot
from judging.services.assign import revise, submit
from judging.services.judgment_files import import_judgments
from judging.services.leases import release
from sampling.models import Audit, AuditEntry, AuditSchedule, DrawEntry
from sampling.services.auditing import audit

pytestmark = pytest.mark.django_db

PAIRS = [(topic_id, doc_id(topic, d)) for topic, topic_id in enumerate(TOPICS) for d in range(DOCUMENTS)]


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def people(campaign):
    return [make_assessor(campaign, "ann"), make_assessor(campaign, "ben"), make_assessor(campaign, "cay")]


@pytest.fixture
def gold(campaign):
    return make_assessor(campaign, "greta", tier="gold")


def everything(arrays):
    return np.ones(arrays.judged.size, dtype=bool)


def labels(arrays):
    """Return {(topic, document): {user name: grade}} of the labels."""
    found: dict = {}
    for item, assessor, grade in zip(
        arrays.label_item, arrays.label_assessor, arrays.label_grade, strict=True
    ):
        pair = arrays.frame.row(int(arrays.judged[item]))[:2]
        found.setdefault(pair, {})[arrays.assessors[assessor].user.username] = int(grade)
    return found


def audited(arrays):
    """Return {(topic, document): (probability, audited, grade)} of the items that an audit could select."""
    return {
        arrays.frame.row(int(place))[:2]: (float(pi), bool(selected), int(grade))
        for place, pi, selected, grade in zip(
            arrays.judged, arrays.audit_probability, arrays.audited, arrays.audit_grade, strict=True
        )
        if pi > 0
    }


def recorded(campaign, **conditions):
    """Return {(topic, document): [(probability, selected) of every audit]} from the rows."""
    found: dict = {}
    names = ("item__topic__topic_id", "item__document__doc_id", "inclusion_probability", "selected")
    entries = AuditEntry.objects.filter(audit__campaign=campaign, **conditions)
    for topic, document, pi, selected in entries.values_list(*names):
        found.setdefault((topic, document), []).append((pi, selected))
    return found


def test_the_frame_is_the_pool_in_order_with_every_runs_ranks(campaign):
    arrays = campaign_arrays(campaign)
    assert list(arrays.frame.select("topic_id", "doc_id").iter_rows()) == PAIRS
    assert [run.run_id for run in arrays.runs] == RUNS
    expected = [[returned(run).get(pair, 0) for pair in PAIRS] for run in range(3)]
    assert arrays.ranks.tolist() == expected
    assert arrays.topic_index.tolist() == [TOPICS.index(topic) for topic, _ in PAIRS]
    assert arrays.gold_grade.tolist() == [true_grade(*pair) for pair in PAIRS]
    assert (arrays.n_topics, arrays.n_grades) == (3, 4)


def test_a_pair_without_gold_answer_has_none(tmp_path):
    arrays = campaign_arrays(make_campaign(tmp_path, gold=False))
    assert arrays.gold_grade.tolist() == [-1] * N_FRAME


def test_nothing_judged_gives_empty_arrays(campaign):
    arrays = campaign_arrays(campaign)
    assert arrays.judged.size == arrays.label_item.size == arrays.check_true.size == 0
    assert (arrays.last_judgment_id, arrays.n_judgments, arrays.n_audit_pending) == (0, 0, 0)
    assert arrays.topics_without(everything(arrays)) == 3


def test_in_a_partly_judged_topic_the_chance_is_the_draws_times_the_share_judged(tmp_path):
    campaign = make_campaign(
        tmp_path, budget=N_FRAME // 2
    )  # evenly: every pair is drawn with probability 1/2
    people = [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]
    names = ("item__topic__topic_id", "item__document__doc_id")
    drawn = list(DrawEntry.objects.filter(draw__campaign=campaign).order_by(*names).values_list(*names))
    n_drawn = Counter(topic for topic, _ in drawn)
    assert min(n_drawn.values()) >= 3
    judge_all(campaign, people, topic__topic_id="t0")
    left = [slot for slot in slots(campaign, topic__topic_id="t1") if slot.number == 1]
    for slot in left[:-2]:  # one of the two wanted judgments is enough to be judged
        give(people[0], slot, 1)

    arrays = campaign_arrays(campaign)
    assert arrays.n_drawn.tolist() == [[n_drawn[topic] for topic in TOPICS]]
    judged = [arrays.frame.row(int(place))[:2] for place in arrays.judged]
    assert (
        judged
        == [pair for pair in drawn if pair[0] == "t0"] + [pair for pair in drawn if pair[0] == "t1"][:-2]
    )
    assert arrays.inclusion_probability == pytest.approx([0.5] * len(judged))
    share = {"t0": 1.0, "t1": (n_drawn["t1"] - 2) / n_drawn["t1"]}
    expected = [0.5 * share[topic] for topic, _ in judged]
    assert arrays.draw_probability(everything(arrays)) == pytest.approx(expected)
    assert arrays.topics_without(everything(arrays)) == 1
    # Members of t0 only: its own items keep their chance, and t1 has no member.
    only_first = np.array([topic == "t0" for topic, _ in judged])
    assert arrays.draw_probability(only_first)[only_first] == pytest.approx([0.5] * n_drawn["t0"])
    assert arrays.topics_without(only_first) == 2


def test_an_audit_counts_only_when_the_gold_tier_has_judged_all_of_it(campaign, people, gold):
    judge_all(campaign, people)
    made = audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=5)
    assert made.n_selected >= 3
    judge_audit(campaign, gold, leave=1)
    arrays = campaign_arrays(campaign)
    assert not arrays.audited.any()
    assert not arrays.audit_probability.any()
    assert arrays.n_audit_pending == 1

    judge_audit(campaign, gold)
    arrays = campaign_arrays(campaign)
    expected = {
        pair: (pi, selected, true_grade(*pair) if selected else 0)
        for pair, [(pi, selected)] in recorded(campaign).items()
    }
    assert audited(arrays) == expected
    assert arrays.audited.sum() == made.n_selected
    assert arrays.n_audit_pending == 0


def test_complete_audits_together_have_the_largest_of_their_probabilities(campaign, people, gold):
    judge_all(campaign, people, topic__topic_id__in=["t0", "t1"])
    first = audit(campaign=campaign, items_each_time=10, items_in_total=20, seed=5)
    judge_audit(campaign, gold)
    judge_all(campaign, people, topic__topic_id="t2")
    second = audit(campaign=campaign, items_each_time=10, items_in_total=20)
    assert second.n_selected > first.n_selected
    waiting = len(slots(campaign, "audit", state="open"))
    before = campaign_arrays(campaign)
    assert before.n_audit_pending == waiting > 0
    assert audited(before).keys() == recorded(campaign, audit=first).keys()
    assert {topic for topic, _ in audited(before)} == {"t0", "t1"}

    judge_audit(campaign, gold)
    after = audited(campaign_arrays(campaign))
    for pair, rows in recorded(campaign).items():
        selected = any(chosen for _, chosen in rows)
        assert after[pair] == (max(pi for pi, _ in rows), selected, true_grade(*pair) if selected else 0)
    assert {topic for topic, _ in after} == set(TOPICS)


def test_of_a_revised_judgment_the_newest_grade_counts(campaign, people):
    slot = slots(campaign)[0]
    first = give(people[0], slot, 0)
    pair = (slot.item.topic.topic_id, slot.item.document.doc_id)
    for grade in (3, 2):
        last = revise(assessor=people[0], token=first.lease_token, client_token=uuid.uuid4(), grade=grade)
    arrays = campaign_arrays(campaign)
    assert labels(arrays) == {pair: {"ann": 2}}
    assert (arrays.n_judgments, arrays.last_judgment_id) == (1, last.pk)


def test_a_revised_gold_grade_is_the_audits_grade(campaign, people, gold):
    judge_all(campaign, people)
    audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=5)
    judge_audit(campaign, gold)
    judgment = Judgment.objects.filter(assessor=gold).select_related("item__topic", "item__document").first()
    changed = (judgment.grade + 1) % 4
    revise(assessor=gold, token=judgment.lease_token, client_token=uuid.uuid4(), grade=changed)
    pair = (judgment.item.topic.topic_id, judgment.item.document.doc_id)
    assert audited(campaign_arrays(campaign))[pair][2] == changed


def test_labels_and_checks_say_when_they_were_given_and_by_which_judgment(tmp_path):
    campaign = make_campaign(tmp_path, budget=20, gold_check_rate=0.1)
    ann, ben = make_assessor(campaign, "ann"), make_assessor(campaign, "ben")
    one, two = slots(campaign)[:2]
    given = [give(ben, two, 2), give(ann, one, 1)]
    check = give(ann, slots(campaign, "check")[0], 3)
    arrays = campaign_arrays(campaign)
    assert arrays.label_judgment.tolist() == [judgment.pk for judgment in given]
    times = [judgment.created_at.timestamp() for judgment in given]
    assert arrays.label_time.tolist() == pytest.approx(times, abs=1e-6)
    assert arrays.check_time.tolist() == pytest.approx([check.created_at.timestamp()], abs=1e-6)


def test_the_schedule_says_how_many_items_are_to_be_audited_in_all(campaign, people, gold):
    assert (campaign_arrays(campaign).n_audits, campaign_arrays(campaign).n_audits_planned) == (0, None)
    AuditSchedule.objects.create(campaign=campaign, items_in_total=77)
    judge_all(campaign, people)
    audit(campaign=campaign, items_each_time=12, items_in_total=77, seed=5)
    arrays = campaign_arrays(campaign)
    assert (arrays.n_audits, arrays.n_audits_planned) == (1, 77)


def test_what_the_silver_tier_audits_is_no_gold(campaign, people, gold):
    sue = make_assessor(campaign, "sue", tier="silver")
    judge_all(campaign, people)
    audit(campaign=campaign, items_each_time=10, items_in_total=42, seed=5)
    judge_audit(campaign, gold)
    before = campaign_arrays(campaign)
    silver = Audit.objects.create(
        campaign=campaign, sequence=2, tier="silver", seed=9, expected_in_total=2, n_eligible=2, n_selected=2
    )
    items = [slot.item for slot in slots(campaign, number=1)[:2]]
    for item in items:
        AuditEntry.objects.create(audit=silver, item=item, inclusion_probability=0.5, selected=True)
    given = []
    for item, grade in zip(items, (1, 3), strict=True):
        slot = Slot.objects.create(
            item=item, purpose="silver", number=1, campaign=campaign, topic=item.topic, position=1
        )
        token = lease(sue, slot)
        submit(assessor=sue, token=token, client_token=uuid.uuid4(), grade=grade)
        arrays = campaign_arrays(campaign)
        given.append(arrays.silver_label_item.size)
    assert given == [1, 2]
    for name in ("audited", "audit_grade", "audit_probability", "label_grade", "check_given"):
        assert getattr(arrays, name).tolist() == getattr(before, name).tolist()
    assert arrays.n_audits == 2
    pairs = [arrays.frame.row(int(place))[:2] for place in arrays.judged[arrays.silver_label_item]]
    assert pairs == [(item.topic.topic_id, item.document.doc_id) for item in items]
    assert arrays.silver_label_grade.tolist() == [1, 3]
    assert [arrays.assessors[who].user.username for who in arrays.silver_label_assessor] == ["sue", "sue"]
    assert sorted(arrays.silver_probability[arrays.silver_label_item].tolist()) == [0.5, 0.5]
    assert arrays.silver_probability.sum() == 1.0


def test_surplus_judgments_are_ignored(campaign, people):
    ann, ben, cay = people
    one, two = slots(campaign)[:2]
    assert one.item_id == two.item_id
    token = lease(cay, one)
    one.refresh_from_db()
    assert release(slot=one)
    give(ann, one, 1)
    give(ben, two, 2)
    late = submit(assessor=cay, token=token, client_token=uuid.uuid4(), grade=3)
    assert late.slot_id is None
    arrays = campaign_arrays(campaign)
    assert list(labels(arrays).values()) == [{"ann": 1, "ben": 2}]
    assert (arrays.n_judgments, arrays.last_judgment_id) == (2, late.pk - 1)


def test_gold_tier_judgments_are_not_among_the_labels(campaign, people, gold):
    judge_all(
        campaign, people, grade=lambda slot, place: 1 + place
    )  # never grade 0, never what gold says by chance
    audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=5)
    judge_audit(campaign, gold)
    arrays = campaign_arrays(campaign)
    assert [assessor.user.username for assessor in arrays.assessors] == ["ann", "ben", "cay"]
    assert labels(arrays) == {pair: {"ann": 1, "ben": 2} for pair in PAIRS}
    assert arrays.audited.any()


def test_gold_checks_are_the_answers_on_items_chosen_for_checking_and_no_labels(tmp_path):
    campaign = make_campaign(tmp_path, budget=20, gold_check_rate=0.1)
    ann, ben, cay = (make_assessor(campaign, name) for name in ("ann", "ben", "cay"))
    check, other = slots(campaign, "check", number=1)[:2]
    drawn = slots(campaign)[0]
    assert DrawEntry.objects.filter(item__in=[slot.item_id for slot in slots(campaign, "check")]).count() == 0
    give(ann, check, 3)
    give(ben, other, 2)
    give(cay, drawn, 1)
    arrays = campaign_arrays(campaign)
    rows = zip(arrays.check_assessor, arrays.check_true, arrays.check_given, strict=True)
    names = [assessor.user.username for assessor in arrays.assessors]
    found = [(names[who], int(true), int(given)) for who, true, given in rows]
    assert sorted(found) == [("ann", truth_of(check), 3), ("ben", truth_of(other), 2)]
    assert list(labels(arrays).values()) == [{"cay": 1}]
    assert arrays.n_judgments == 3
    assert arrays.n_drawn.sum() == DrawEntry.objects.filter(draw__campaign=campaign).count()


def test_what_assessors_answer_to_wanted_judgments_of_a_check_item_is_a_gold_check_too(tmp_path):
    campaign = make_campaign(tmp_path, budget=20, gold_check_rate=0.1)
    ann, ben = make_assessor(campaign, "ann"), make_assessor(campaign, "ben")
    check = slots(campaign, "check")[0]
    give(ann, check, 3)
    give(ben, add_wanted(check), 0)
    arrays = campaign_arrays(campaign)
    assert sorted(zip(arrays.check_true, arrays.check_given, strict=True)) == [
        (truth_of(check), 0),
        (truth_of(check), 3),
    ]


def add_wanted(slot):
    """Want a judgment of the slot's item, as an import of judgments does."""
    return Slot.objects.create(
        item=slot.item, purpose="judge", number=1, campaign=slot.campaign, topic=slot.topic, position=1
    )


def test_a_judgment_of_an_item_that_was_never_drawn_is_no_label(tmp_path):
    campaign = make_campaign(tmp_path, budget=20)
    drawn = set(DrawEntry.objects.values_list("item__topic__topic_id", "item__document__doc_id"))
    topic, document = next(pair for pair in PAIRS if pair not in drawn)
    path = tmp_path / "other.qrels"
    path.write_text(f"{topic} somebody {document} 2\n")
    assert import_judgments(source=path, name=path.name, campaign=campaign, file_format="qrels_jg") == 1
    arrays = campaign_arrays(campaign)
    assert arrays.judged.size == arrays.label_item.size == 0
    assert arrays.n_judgments == 1
