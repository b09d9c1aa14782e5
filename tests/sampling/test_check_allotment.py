"""Which grades the checks of a campaign have: recorded with each draw, followed by whoever lays it out."""

from collections import Counter

import pytest
from quick_flush import unguarded
from small_campaign import DEPTH, give, make_assessor, make_undrawn, slots

from judging.models import Campaign, GoldAnswer
from judging.services.campaigns import open_campaign
from sampling.questions import Design
from sampling.services.drawing import draw, record_draw
from sampling.services.layout import lay_out

pytestmark = pytest.mark.django_db


def design(budget):
    return Design("pool", (), measure="DCG@10", depth=DEPTH, budget=budget)


def make_rare(folder, **fields):
    """Return a campaign whose gold is 4 in 5 of grade 0, else of grade 3; documents 4, 9 and 13 of each topic are."""
    campaign = make_undrawn(folder, gold_check_rate=0.5, decoys_per_check=0, **fields)
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.update(grade=0)
        GoldAnswer.objects.filter(document__doc_id__regex="(04|09|13)$").update(grade=3)
    return campaign


def grades_of_checks(campaign):
    """Return by topic how many checks are of which grade."""
    items = {slot.item for slot in slots(campaign, "check")}
    rows = GoldAnswer.objects.values_list("topic_id", "document_id", "grade")
    gold = {(topic, document): grade for topic, document, grade in rows}
    found = {}
    for item in items:
        found.setdefault(item.topic.topic_id, Counter())[gold[item.topic_id, item.document_id]] += 1
    return found


def in_all(campaign):
    return sum(grades_of_checks(campaign).values(), Counter())


def test_a_new_campaign_takes_as_much_in_turn_as_tells_little_and_checks_follow_what_is_recorded(tmp_path):
    campaign = make_rare(tmp_path)
    made = draw(campaign=campaign, design=design(12), seed=20)
    said = made.parameters["check_grades"]
    p = 33 / 42  # 14 documents a topic, 3 of grade 3
    assert said["choice"] == "at-most"
    assert said["ordinary_of"] == "gold"
    assert said["ordinary"] == pytest.approx([p, 0, 0, 1 - p])
    # Two grades: told by even shares p - .5/2 more than chance, so w = .05 / (p/2 - .25).
    w = 0.05 / (p / 2 - 0.25)
    assert said["shares"] == pytest.approx([(1 - w) * p + w / 2, 0, 0, (1 - w) * (1 - p) + w / 2])
    assert said["auc"] == pytest.approx(0.55)
    found = grades_of_checks(campaign)
    assert {name: [n[grade] for grade in range(4)] for name, n in found.items()} == said["numbers"]
    total = in_all(campaign)
    assert said["checks"] == [total[grade] for grade in range(4)]
    assert abs(total[3] - said["shares"][3] * total.total()) < 1


@pytest.mark.parametrize(("way", "is_even"), [("as-drawn", False), ("in-turn", True)])
def test_the_other_ways(tmp_path, way, is_even):
    """Two batches where grades are few: in turn every grade is taken while it lasts, as drawn the rare one is rare."""
    campaign = make_rare(tmp_path, check_grades=way)
    made = draw(campaign=campaign, design=design(12), seed=20)
    total = in_all(campaign)
    n = total.total()
    assert n >= 9
    assert ("check_grades" in made.parameters) is not is_even
    if is_even:
        by_topic = grades_of_checks(campaign)
        left = {name: 3 - drawn_rare(campaign, name) for name in by_topic}
        for name, counts in by_topic.items():
            assert counts[3] >= min(left[name], counts.total() // 2)
        assert total[3] / n > 0.3
    else:
        assert abs(total[3] - n * 9 / 42) < 1


def drawn_rare(campaign, topic_id):
    judged = campaign.slots.filter(purpose="judge", number=1, topic__topic_id=topic_id)
    return judged.filter(item__document__doc_id__regex="(04|09|13)$").count()


def test_a_top_up_follows_the_labels_so_far_with_all_checks_together(tmp_path):
    campaign = make_rare(tmp_path)
    draw(campaign=campaign, design=design(8), seed=20)
    open_campaign(campaign=campaign, actor=None)
    ann, ben = make_assessor(campaign, "ann"), make_assessor(campaign, "ben")
    for slot in slots(campaign):  # the lower median of 0 and 3 is 0; of some both say 1
        both_say = 1 if slot.item.document.doc_id.endswith(("1", "3")) else None
        give([ann, ben][slot.number - 1], slot, both_say if both_say is not None else [0, 3][slot.number - 1])
    labels = Counter(
        1 if slot.item.document.doc_id.endswith(("1", "3")) else 0 for slot in slots(campaign, number=1)
    )
    before = in_all(campaign)
    made = draw(campaign=campaign, design=design(16))
    said = made.parameters["check_grades"]
    assert said["ordinary_of"] == "labels"
    share = labels[1] / labels.total()
    assert said["ordinary"] == pytest.approx([1 - share, share, 0, 0])
    more = Counter({grade: sum(own[grade] for own in said["numbers"].values()) for grade in range(4)})
    assert more.total() > 0
    assert said["checks"] == [before[grade] + more[grade] for grade in range(4)]
    after = in_all(campaign)
    # What the batch has drawn is a check no more.
    assert after.total() <= before.total() + more.total()
    assert after[3] >= more[3]


def test_the_same_seed_gives_the_same_checks_in_whatever_order_topics_are_laid_out(tmp_path):
    orders = (["t0", "t1", "t2"], ["t2"], ["t1", "t0"])
    results = []
    for order in (orders[:1], orders[1:]):
        campaign = make_rare(tmp_path)
        made = record_draw(campaign=campaign, design=design(12), seed=20)
        for topic_ids in order:
            lay_out(draw=made, topic_ids=topic_ids)
        results.append(sorted(slot.item.document.doc_id for slot in slots(campaign, "check", number=1)))
    assert results[0] == results[1]
    assert len(results[0]) >= 9


def test_a_draw_from_before_the_choice_is_laid_out_in_turn(tmp_path):
    straight, other = (make_rare(tmp_path, check_grades="in-turn") for _ in range(2))
    draw(campaign=straight, design=design(12), seed=20)
    made = record_draw(campaign=other, design=design(12), seed=20)
    Campaign.objects.filter(pk=other.pk).update(check_grades="at-most")
    made.refresh_from_db()
    lay_out(draw=made, topic_ids=["t0", "t1", "t2"])
    assert grades_of_checks(other) == grades_of_checks(straight)


def test_without_gold_or_without_checks_nothing_is_recorded(tmp_path):
    for fields in ({"gold": False, "gold_check_rate": 0.5}, {"gold_check_rate": 0.0}):
        campaign = make_undrawn(tmp_path, **fields)
        made = draw(campaign=campaign, design=design(12), seed=20)
        assert "check_grades" not in made.parameters
        assert not campaign.slots.filter(purpose="check").exists()
