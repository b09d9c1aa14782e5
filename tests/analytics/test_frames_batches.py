"""Arrays of a campaign with several batches: the chance that an item is among those judged so far."""

import numpy as np
import pytest
from small_campaign import DEPTH, give, judge_all, make_assessor, make_undrawn, slots, truth_of

from analytics.frames import campaign_arrays
from judging.services.campaigns import open_campaign
from sampling.frames import item_probabilities
from sampling.questions import Design
from sampling.services.drawing import draw

pytestmark = pytest.mark.django_db


def design(budget, **fields):
    return Design("pool", (), **{"measure": "DCG@10", "depth": DEPTH, "budget": budget, **fields})


def start(folder, budget, seed=20, **fields):
    campaign = make_undrawn(folder, **fields)
    draw(campaign=campaign, design=design(budget), seed=seed)
    open_campaign(campaign=campaign, actor=None)
    return campaign, [make_assessor(campaign, name) for name in ("ann", "ben")]


def everything(arrays):
    return np.ones(arrays.judged.size, dtype=bool)


def by_pair(arrays, values):
    pairs = arrays.frame[arrays.judged].select("topic_id", "doc_id").iter_rows()
    return dict(zip(pairs, values, strict=True))


def test_with_all_judged_it_is_the_chance_of_any_batch_also_where_a_batch_drew_nothing(tmp_path):
    campaign, people = start(tmp_path, 8)
    for budget in (10, 13, 20):
        draw(campaign=campaign, design=design(budget))
    judge_all(campaign, people)
    arrays = campaign_arrays(campaign)
    assert np.any(arrays.n_drawn.sum(axis=0)[None, :] * (arrays.n_drawn == 0))
    chance = arrays.draw_probability(everything(arrays))
    np.testing.assert_allclose(chance, arrays.inclusion_probability, rtol=1e-12)
    known = item_probabilities(campaign)
    for item in campaign.items.select_related("topic", "document"):
        pair = item.topic.topic_id, item.document.doc_id
        assert by_pair(arrays, chance)[pair] == pytest.approx(known[item.pk])


def test_a_batch_of_which_nothing_is_judged_yet_adds_nothing(tmp_path):
    campaign, people = start(tmp_path, 15)
    judge_all(campaign, people)
    before = campaign_arrays(campaign)
    draw(campaign=campaign, design=design(30))
    after = campaign_arrays(campaign)
    np.testing.assert_allclose(
        after.draw_probability(everything(after)), before.draw_probability(everything(before)), rtol=1e-12
    )


def test_a_batch_adds_the_share_that_is_judged_of_it_and_elsewhere_what_is_judged_of_it_in_all(tmp_path):
    campaign, people = start(tmp_path, 15)
    judge_all(campaign, people)
    first = by_pair(campaign_arrays(campaign), campaign_arrays(campaign).inclusion_probability)
    draw(campaign=campaign, design=design(18))
    new = [slot for slot in slots(campaign, state="open") if slot.number == 1]
    by_topic = {topic: [s for s in new if s.item.topic.topic_id == topic] for topic in ("t0", "t1", "t2")}
    assert not all(by_topic.values())  # nothing new in some topic: otherwise choose another seed
    for some in by_topic.values():
        for slot in some[: (len(some) + 1) // 2]:
            give(people[0], slot, truth_of(slot))
    arrays = campaign_arrays(campaign)
    n_given = sum((len(some) + 1) // 2 for some in by_topic.values())
    chance = by_pair(arrays, arrays.draw_probability(everything(arrays)))
    for (topic, doc), pi in by_pair(arrays, arrays.inclusion_probability).items():
        some = by_topic[topic]
        share = (len(some) + 1) // 2 / len(some) if some else n_given / len(new)
        before = first.get((topic, doc), 15 / 42)
        assert chance[topic, doc] == pytest.approx(before + (pi - before) * share)


def test_a_topic_nobody_has_reached_is_missing_also_where_the_next_batch_drew_nothing_of_it(tmp_path):
    campaign, people = start(tmp_path, 15)
    draw(campaign=campaign, design=design(18))
    frame = campaign_arrays(campaign)
    left = [f"t{t}" for t in range(3) if frame.n_drawn[1, t] == 0 < frame.n_drawn[0, t]]
    assert left
    new = [s for s in slots(campaign) if s.item.draw_entries.filter(draw__batch=1, times=0).exists()]
    unjudged = new[0].item_id  # so that the second batch is not complete
    for slot in slots(campaign, state="open"):
        if slot.item.topic.topic_id not in left and slot.item_id != unjudged:
            give(people[slot.number - 1], slot, truth_of(slot))
    arrays = campaign_arrays(campaign)
    assert 0 < np.count_nonzero(arrays.batch == 1) < arrays.n_drawn[1].sum()
    assert arrays.topics_without(everything(arrays)) == len(left)


def start_with_checks(folder):
    """Return a campaign whose first batch is judged, with the checks judged as well, of which the next draws some."""
    campaign, people = start(folder, 12, gold_check_rate=0.4)
    judge_all(campaign, people)
    for slot in slots(campaign, "check"):
        give(people[slot.number - 1], slot, truth_of(slot))
    given = {slot.item_id: truth_of(slot) for slot in slots(campaign, "check", number=1)}
    draw(campaign=campaign, design=design(36))
    drawn = set(campaign.slots.filter(purpose="judge", item__in=given).values_list("item_id", flat=True))
    assert len(drawn) > 2
    return campaign, people, given, drawn


def test_what_was_judged_as_a_check_counts_when_its_turn_comes(tmp_path):
    campaign, people, _, drawn = start_with_checks(tmp_path)
    first = campaign.draws.get(batch=1).n_drawn
    rest = campaign.items.count()
    seen = []
    for share in (0.0, 0.3, 0.6, 1.0):
        for topic in ("t0", "t1", "t2"):
            new = [s for s in slots(campaign, item__topic__topic_id=topic) if s.item_id not in drawn]
            new = [s for s in new if s.item.draw_entries.filter(draw__batch=1, times=0).exists()]
            for slot in [s for s in new if s.number == 1][: round(share * len(new) / 2)]:
                if slot.state == "open":
                    give(people[0], slot, truth_of(slot))
        arrays = campaign_arrays(campaign)
        seen.append(int((arrays.batch == 1).sum()))
    # Nothing of the second batch at first, though checks that it drew are judged; all of it in the end.
    assert seen[0] == 0
    assert seen == sorted(seen)
    everyone = campaign.items.filter(draw_entries__draw__batch=2, draw_entries__times__gt=0).count()
    assert seen[-1] == everyone - first <= rest - first


def test_what_was_said_of_checks_that_were_drawn_since_still_tells_how_their_judge_judges(tmp_path):
    campaign, people, given, _ = start_with_checks(tmp_path)
    arrays = campaign_arrays(campaign)
    assert arrays.check_true.size == 2 * len(given)
    assert sorted(arrays.check_true.tolist()) == sorted(2 * list(given.values()))
    assert arrays.check_given.tolist() == arrays.check_true.tolist()
    assert {arrays.assessors[place].pk for place in arrays.check_assessor} == {p.pk for p in people}
