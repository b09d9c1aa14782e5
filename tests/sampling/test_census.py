"""A census: gold makes one pair exact, every other number keeps its probabilities, and nobody's promise falls."""

import json
from collections import OrderedDict
from copy import deepcopy
from io import StringIO
from itertools import product

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from small_campaign import (
    TOPICS,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    returned,
    slots,
    true_grade,
)

from analytics.estimation.two_phase import two_phase
from analytics.services.recomputation import recompute
from judging.models import Run
from sampling.audit_plan import Auditable
from sampling.frames import newest_draw
from sampling.judged import Judged
from sampling.measures.registry import parse_linear
from sampling.models import AuditEntry
from sampling.questions import Design
from sampling.services import census_documents as service
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import audit, queue_audit
from sampling.services.census_documents import census_documents
from sampling.services.drawing import record_draw
from sampling.services.layout import lay_out

# Four judged items of three runs: A and B differ at the first two, A and C at the last three.
WEIGHTS = {"A": [0.6, 0.3, 0.2, 0.0], "B": [0.1, 0.5, 0.2, 0.0], "C": [0.6, 0.0, 0.5, 0.4]}
GAIN, AFTER, EVEN = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.4, 0.7, 0.2, 0.5]), 0.5


def difference(first, second):
    return np.array(WEIGHTS[first]) - np.array(WEIGHTS[second])


def items_open(influence, earlier, **given):
    n = len(influence)
    judged = Judged(
        np.array(influence), np.ones(n), np.zeros(n, int), np.zeros(n, int), np.ones(n), n_grades=2, **given
    )
    return Auditable(judged, np.array(earlier), has_learned="fold" in given)


def means_over_audits(first, second, recorded):
    """Return the mean and the variance over all even audits, after each a census of A against B, of a difference.

    `recorded` is what the estimator takes for the probabilities.
    """
    weight, values, chances = difference(first, second), [], []
    taken = difference("A", "B") != 0
    for even in product([False, True], repeat=4):
        audited = np.array(even) | taken
        made = two_phase(
            weight,
            draw_probability=np.ones(4),
            audited=audited,
            gold=GAIN,
            audit_probability=np.where(audited, np.maximum(recorded, 1e-12), recorded),
            before=np.zeros(4),
            after=AFTER,
            spread=np.full(4, 0.2),
            before_total=[0.0],
            fewest=0,
        )
        values.append(made.estimates.value[0])
        chances.append(np.prod(np.where(even, EVEN, 1 - EVEN)))
    values, chances = np.array(values), np.array(chances)
    mean = chances @ values
    return mean, chances @ (values - mean) ** 2


@pytest.mark.parametrize("pair", [("A", "B"), ("A", "C"), ("B", "C")])
def test_after_an_even_audit_and_a_census_every_pair_is_unbiased(pair):
    """Enumerated over all 16 even audits of four items; the pair of the census has no error at all."""
    recorded = items_open(abs(difference("A", "B")), np.full(4, EVEN)).census()
    assert recorded.tolist() == [1.0, 1.0, EVEN, EVEN]
    mean, variance = means_over_audits(*pair, recorded)
    assert mean == pytest.approx(difference(*pair) @ GAIN, abs=1e-12)
    # By hand: (1/a - 1) sum of (w (v - h))^2 over what the census left alone
    left = (difference(*pair) * (GAIN - AFTER))[2:]
    assert variance == pytest.approx((1 / EVEN - 1) * (left**2).sum(), abs=1e-12)
    assert (variance < 1e-20) == (pair == ("A", "B"))


@pytest.mark.parametrize(
    "recorded", [np.full(4, EVEN), np.array([1.0, 1.0, 1.0, 1.0])], ids=["not raised", "raised for all"]
)
def test_other_probabilities_than_those_of_the_census_are_biased(recorded):
    """The control: gold that was certain counted as if by chance, or gold by chance counted as if certain."""
    mean, _ = means_over_audits("A", "C", recorded)
    assert abs(mean - difference("A", "C") @ GAIN) > 0.05


def test_items_that_no_audit_could_take_get_the_mean_chance_of_their_like():
    found = items_open([0.0, 0.0, 0.0, 1.0], [0.2, 0.6, 0.0, 0.9]).census()
    assert found == pytest.approx([0.2, 0.6, 0.4, 1.0])
    # After an audit that learned only those of the item's own fold: their chances know nothing of its gold.
    by_fold = items_open([0.0, 0.0, 0.0, 0.0, 1.0], [0.2, 0.0, 0.6, 0.0, 0.0], fold=np.array([0, 0, 1, 1, 1]))
    assert by_fold.census() == pytest.approx([0.2, 0.2, 0.6, 0.6, 1.0])


def test_a_census_that_is_the_first_audit_leaves_everybody_a_chance():
    """A fifth of the whole count is spread evenly: 3 certain ones and .75 over the others."""
    found = items_open([1.0, 2.0, 0.0, 0.0, 0.0, 0.5], np.zeros(6)).census()
    assert found == pytest.approx([1, 1, 0.25, 0.25, 0.25, 1])
    crowded = items_open([1.0, 1.0, 1.0, 1.0, 1.0, 0.0], np.zeros(6)).census()
    assert crowded.tolist() == [1.0] * 6


# -- a campaign -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def campaign_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("campaign"), kind="pool")
    people = [make_assessor(made, "ann"), make_assessor(made, "ben")]
    judge_all(made, people, lambda slot, place: (int(slot.item.document.doc_id[-2:]) * 7 + place) % 4)
    return made


@pytest.fixture
def campaign(campaign_once, db):
    """The whole pool is judged, by assessors who err."""
    return deepcopy(campaign_once)


def chances(made):
    rows = AuditEntry.objects.filter(audit=made).values_list(
        "item__topic__topic_id", "item__document__doc_id", "inclusion_probability"
    )
    return {(topic, document): chance for topic, document, chance in rows}


def reported(computation, first, second, measure="DCG@10"):
    return computation.estimates.get(
        measure=measure, method="corrected", run__run_id=first, run_b__run_id=second
    )


def counting_for(first, second):
    """Return the documents whose DCG@10 weight in the two runs differs: returned by one alone, or at another rank."""
    return {
        pair
        for pair in returned(first) | returned(second)
        if returned(first).get(pair) != returned(second).get(pair)
    }


@pytest.fixture
def counted(campaign):
    """The campaign after an even audit and a census of run0 against run1, all judged by gold; both audits."""
    gold = make_assessor(campaign, "greta", "gold")
    even = audit(campaign=campaign, items_each_time=18, items_in_total=18, strategy="simple", seed=5)
    judge_audit(campaign, gold)
    census = audit(campaign=campaign, strategy="census", run="run0", against="run1", measure="DCG@10")
    assert len(slots(campaign, "audit", state="open")) == census.n_selected - even.n_selected
    judge_audit(campaign, gold)
    return campaign, even, census


def test_after_a_census_of_a_whole_pool_the_pair_is_exact_for_these_topics(counted):
    campaign, _, _ = counted
    row = reported(recompute(campaign=campaign), "run0", "run1")
    gains = campaign.scale.gains()
    truth = sum(
        sign * gains[true_grade(*pair)] / np.log2(rank + 1) / len(TOPICS)
        for run, sign in ((0, 1), (1, -1))
        for pair, rank in returned(run).items()
    )
    assert row.value == pytest.approx(truth, abs=1e-12)
    assert (row.low, row.high) == (row.value, row.value)
    assert row.components == {"drawing": 0.0, "gold": 0.0}
    # The control: another pair is not.
    other = reported(row.computation, "run0", "run2")
    assert other.high - other.low > 0.1


def test_the_census_raises_what_counts_and_leaves_every_other_probability_as_it_was(counted):
    _, even, census = counted
    before, after = chances(even), chances(census)
    certain = counting_for(0, 1)
    assert 0 < len(certain) < len(after) == 42
    assert {pair for pair, chance in after.items() if chance == 1.0} == certain
    assert all(after[pair] == before[pair] for pair in after if pair not in certain)
    assert (census.run, census.against, census.measure, census.strategy) == (
        "run0",
        "run1",
        "DCG@10",
        "census",
    )
    assert census.expected_in_total == pytest.approx(18 + sum(1 - before[pair] for pair in certain))
    assert census.look is None
    # Whatever comes after falls nowhere, and the same census has nothing left to take.
    assert (
        audit(campaign=census.campaign, strategy="census", run="run0", against="run1", measure="DCG@10")
        is None
    )
    more = audit(campaign=census.campaign, items_each_time=3, items_in_total=42, strategy="simple")
    assert all(chance >= after[pair] for pair, chance in chances(more).items())


def test_the_documents_of_a_census_are_those_that_count_and_lack_gold(campaign):
    runs = {run.run_id: run for run in Run.objects.filter(collection=campaign.collection)}
    asked = (newest_draw(campaign), parse_linear("DCG@10"), runs["run0"], runs["run1"])
    everything = census_documents(campaign, *asked)
    assert set(everything.lacking) == counting_for(0, 1)
    assert (everything.n_weighed, everything.is_whole) == (len(counting_for(0, 1)), True)
    gold = make_assessor(campaign, "greta", "gold")
    even = audit(campaign=campaign, items_each_time=18, items_in_total=18, strategy="simple", seed=5)
    judge_audit(campaign, gold)
    known = {
        (entry.item.topic.topic_id, entry.item.document.doc_id)
        for entry in AuditEntry.objects.filter(audit=even, selected=True)
    }
    assert known & counting_for(0, 1)
    assert set(census_documents(campaign, *asked).lacking) == counting_for(0, 1) - known
    alone = census_documents(campaign, *asked[:3], None)
    assert set(alone.lacking) == set(returned(0)) - known
    # P@10 weighs all ranks alike: what both runs return counts for neither.
    same = census_documents(campaign, asked[0], parse_linear("P@10"), *asked[2:])
    assert set(same.lacking) == (set(returned(0)) ^ set(returned(1))) - known


def test_what_is_remembered_of_a_question_is_nothing_that_can_change(tmp_path, transactional_db, monkeypatch):
    campaign = make_campaign(tmp_path, kind="pool", budget=14)
    people = [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]
    runs = {run.run_id: run for run in Run.objects.filter(collection=campaign.collection)}

    def found():
        asked = (newest_draw(campaign), parse_linear("DCG@10"), runs["run0"], runs["run2"])
        remembered = census_documents(campaign, *asked)
        with monkeypatch.context() as patch:
            patch.setattr(service, "_kept", OrderedDict())
            assert census_documents(campaign, *asked) == remembered
        return remembered

    nothing = found()
    assert nothing.n_unjudged == nothing.n_weighed
    judge_all(campaign, people)
    judged = found()
    assert judged.n_unjudged < nothing.n_unjudged
    gold = make_assessor(campaign, "greta", "gold")
    audit(campaign=campaign, items_each_time=6, items_in_total=6, strategy="simple", seed=5)
    assert 0 < found().n_awaited <= 6
    judge_audit(campaign, gold)
    assert len(found().lacking) < len(judged.lacking)
    # A second batch, laid out topic by topic: each brings items, and makes older ones certain.
    design = Design("pool", (), measure="DCG@10", depth=10, budget=42)
    made = record_draw(campaign=campaign, design=design)
    assert found().n_unjudged == judged.n_unjudged
    for topic in TOPICS:
        lay_out(draw=made, topic_ids=[topic])
        judge_all(campaign, people)
        found()
    assert found().is_whole
    assert not judged.is_whole


def test_what_was_not_certain_to_be_drawn_or_is_not_judged_is_told(tmp_path, db):
    campaign = make_campaign(tmp_path, kind="pool", budget=24)
    people = [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]
    runs = {run.run_id: run for run in Run.objects.filter(collection=campaign.collection)}
    asked = (newest_draw(campaign), parse_linear("DCG@10"), runs["run0"], runs["run2"])
    nothing = census_documents(campaign, *asked)
    assert (nothing.lacking, nothing.n_unjudged) == ((), nothing.n_weighed)
    judge_all(campaign, people)
    found = census_documents(campaign, *asked)
    assert len(found.lacking) == found.n_weighed - found.n_unjudged > 0
    assert found.n_uncertain > 0
    assert not found.is_whole


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"strategy": "census"}, "“Census” is of a run or a pair: name it"),
        ({"strategy": "census", "run": "run0", "against": "run0"}, "differs from itself by nothing"),
        ({"strategy": "census", "run": "run0", "against": "nobody"}, "the collection has no run 'nobody'"),
        (
            {"strategy": "census", "run": "run0", "items_each_time": 5, "items_in_total": 9},
            "leave its size out",
        ),
        ({"strategy": "census", "run": "run0", "measure": "nDCG@10"}, "nDCG@10 is a ratio"),
        ({"strategy": "simple"}, "say how many items to audit"),
        ({"strategy": "simple", "run": "run0", "items_each_time": 5, "items_in_total": 9}, "only a census"),
    ],
)
def test_a_census_that_cannot_be_is_refused_and_nothing_is_stored(campaign, asked, reason):
    with pytest.raises(AuditRefused, match=reason):
        audit(campaign=campaign, **asked)
    assert not campaign.audits.exists()


def test_a_census_is_no_schedule_and_a_wrong_one_is_not_queued(campaign):
    with pytest.raises(AuditRefused, match="not on a schedule"):
        save_schedule(campaign=campaign, actor=None, strategy="census", items_each_time=5, items_in_total=9)
    with pytest.raises(AuditRefused, match="no run 'nobody'"):
        queue_audit(campaign=campaign, user=None, strategy="census", run="nobody")
    assert queue_audit(campaign=campaign, user=None, strategy="census", run="run0") is not None


def test_the_command_draws_a_census_without_a_size(campaign):
    said = StringIO()
    words = ["--strategy", "census", "--run", "run0", "--against", "run1", "--measure", "DCG@10"]
    call_command("audit", str(campaign.pk), *words, "--output", "json", stdout=said)
    made = json.loads(said.getvalue())["audit"]
    assert (made["run"], made["against"], made["strategy"]) == ("run0", "run1", "census")
    again = StringIO()
    call_command("audit", str(campaign.pk), *words, stdout=again)
    assert "nothing to audit" in again.getvalue()
    with pytest.raises(CommandError, match="leave its size out"):
        call_command("audit", str(campaign.pk), *words, "--items", "5")


def test_in_a_campaign_with_declared_looks_a_census_is_none(campaign):
    save_schedule(campaign=campaign, actor=None, items_each_time=9, items_in_total=42, n_looks=3)
    first = audit(campaign=campaign, items_each_time=9, items_in_total=42, seed=5)
    census = audit(campaign=campaign, strategy="census", run="run0", against="run1", measure="DCG@10")
    assert (first.look, census.look) == (1, None)
