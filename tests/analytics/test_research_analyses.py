"""Sensitivity and topics: against enumeration of the small campaign, and against a campaign that judged otherwise."""

import math
import re
from copy import deepcopy
from itertools import combinations
from urllib.parse import parse_qs, parse_qsl, urlsplit

import numpy as np
import pytest
from django.urls import reverse
from scipy.stats import ttest_1samp
from small_campaign import (
    DEPTH,
    RUNS,
    TOPICS,
    doc_id,
    give,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    slots,
    true_grade,
    truth_of,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.estimation.claims import CLAIMS, LIKE_THESE, THESE, other_claim
from analytics.frames import campaign_arrays
from analytics.releases.pseudonyms import pseudonym
from analytics.services.analyses import AnalysisRefused, AnalysisSubject, analyse, ask, under_claim
from analytics.services.analyses.variants import halves, with_labels, with_one_grade, without_assessor
from analytics.services.comparisons import Comparisons
from analytics.services.exports import pseudonym_key
from analytics.services.families import asked_family
from analytics.services.recomputation import recompute
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import User

pytestmark = pytest.mark.django_db
EXACT = {"abs": 1e-9}


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture(autouse=True)
def no_heartbeat(monkeypatch):
    """Jobs of these tests are in a transaction that the heartbeat's own connection cannot see."""
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)


def quiet(*_):
    return None


def made_of(campaign, what, measure="DCG@10", run="", against="", *, claim=THESE, family="all"):
    subject = AnalysisSubject(what, measure, run, against, family if what == "sensitivity" else "")
    return under_claim(analyse(campaign=campaign, wanted=subject, progress=quiet), claim)


def variant_of(result, label):
    [found] = [variant for variant in result["variants"] if variant["label"] == label]
    return found


def dcg(run, topic, grade=true_grade):
    """Return DCG@10 of a run in a topic; the gain is the grade."""
    documents = [doc_id(topic, 2 * run + place) for place in range(DEPTH)]
    gains = [grade(TOPICS[topic], document) for document in documents]
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def mean_dcg(run):
    return sum(dcg(run, topic) for topic in range(3)) / 3


def all_audited(campaign):
    audit(campaign=campaign, items_each_time=42, items_in_total=42, seed=5)
    judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))


@pytest.fixture(scope="module")
def reversed_judges_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("reversed_judges"))
    judge_all(
        made, [make_assessor(made, "ann"), make_assessor(made, "ben")], lambda slot, _: 3 - truth_of(slot)
    )
    all_audited(made)
    return made


@pytest.fixture
def reversed_judges(reversed_judges_once, db):
    """Everything drawn, judged by two who see all the wrong way round, and audited."""
    return deepcopy(reversed_judges_once)


# -- sensitivity --------------------------------------------------------------------------------------------


def test_judges_who_see_all_the_wrong_way_round_turn_every_verdict_of_the_naive_numbers(reversed_judges):
    """The runs return ten documents each, so grades of 3 - g turn every difference round."""
    result = made_of(reversed_judges, "sensitivity")
    different = sum(abs(mean_dcg(a) - mean_dcg(b)) > 1e-9 for a, b in combinations(range(3), 2))
    assert different == 2  # run0 and run2 return the same grades at the same ranks
    assert result["method"] == "corrected"
    assert result["n_apart"] == different
    naive = variant_of(result, "all grades as given")
    assert naive["n_reversed"] == different
    assert naive["n_changed"] == different
    for change in naive["changes"]:
        assert {change["before"], change["after"]} == {f"{change[side]} is higher" for side in "ab"}
    for rule in ("Lower median, naive", "Majority, naive"):
        assert variant_of(result, rule)["n_reversed"] == different


@pytest.mark.parametrize("family", ["all", "runs:run0,run1"])
def test_verdicts_are_those_of_the_claim_in_the_family_and_the_other_claim_stands_beside(
    reversed_judges, family
):
    computed = recompute(campaign=reversed_judges)
    known = {
        claim: Comparisons(computed, "DCG@10", asked_family(reversed_judges, family), claim)
        for claim in CLAIMS
    }
    for claim, among in known.items():
        result = made_of(reversed_judges, "sensitivity", claim=claim, family=family)
        assert (result["claim"], result["family"]) == (claim.key, family)
        assert (result["n_pairs"], result["n_apart"]) == (among.n_family, among.n_significant)
        beside = known[other_claim(claim)]
        assert result["other"] == {
            "claim": beside.claim.key, "n_pairs": beside.n_family, "n_apart": beside.n_significant,
        }  # fmt: skip
    # all is known of three topics, which say little of others: the claim decides
    assert known[THESE].n_significant > known[LIKE_THESE].n_significant


def test_the_difference_that_is_looked_at_has_the_stored_interval_of_the_claim(reversed_judges):
    computed = recompute(campaign=reversed_judges)
    for claim, names in ((THESE, ("low", "high")), (LIKE_THESE, ("topics_low", "topics_high"))):
        result = made_of(reversed_judges, "sensitivity", claim=claim)
        a, b = result["pair"]
        stored = computed.estimates.get(measure="DCG@10", method="corrected", run__run_id=a, run_b__run_id=b)
        base = result["base"]["difference"]
        assert [base["low"], base["high"]] == pytest.approx(
            [getattr(stored, name) for name in names], abs=1e-9
        )


def test_of_a_tier_topics_like_these_are_known_by_the_paired_t_over_its_topics(reversed_judges):
    result = made_of(reversed_judges, "sensitivity", claim=LIKE_THESE)
    a, b = (RUNS.index(run) for run in result["pair"])
    apart = [dcg(a, topic) - dcg(b, topic) for topic in range(3)]
    expected = ttest_1samp(apart, 0).confidence_interval(0.95)
    found = variant_of(result, "gold tier alone")["difference"]
    largest = 3 * sum(1 / math.log2(rank + 1) for rank in range(1, DEPTH + 1))
    assert [found["low"], found["high"]] == pytest.approx(
        [max(expected.low, -largest), min(expected.high, largest)], **EXACT
    )


def test_the_gold_tier_alone_knows_the_true_values_where_it_graded_everything(reversed_judges):
    result = made_of(reversed_judges, "sensitivity")
    gold = variant_of(result, "gold tier alone")
    assert dict(zip(result["runs"], gold["values"], strict=True)) == pytest.approx(
        {run: mean_dcg(place) for place, run in enumerate(RUNS)}, **EXACT
    )
    assert gold["n_changed"] == 0
    assert "no judgment of" in variant_of(result, "silver tier alone")["refusal"]


def test_every_assessor_is_left_out_once_under_the_pseudonym_of_the_exports(reversed_judges):
    result = made_of(reversed_judges, "sensitivity")
    names = {
        pseudonym(pseudonym_key(reversed_judges.pk), person.pk)
        for person in reversed_judges.assessors.filter(tier="bronze")
    }
    left_out = [variant for variant in result["variants"] if variant["group"] == "assessor"]
    assert {variant["label"] for variant in left_out} == {f"without {name}" for name in names}
    assert {variant["note"] for variant in left_out} == {"42 labels, bronze tier"}
    assert "ann" not in str(result)
    # two who judge alike: without either everything is as before
    assert [variant["n_changed"] for variant in left_out] == [0, 0]
    assert [variant["tau"] for variant in left_out] == [
        1 / 3 + 1 / 3
    ] * 2  # the equal pair counts neither way


def partly(folder, *, with_ben):
    """ann judges thirty documents; ben, if present, judges them all."""
    folder.mkdir()
    made = make_campaign(folder, budget=36)
    ann, ben = make_assessor(made, "ann"), make_assessor(made, "ben")
    for slot in [slot for slot in slots(made) if slot.number == 1][:30]:
        give(ann, slot, truth_of(slot))
    if with_ben:
        for slot in [slot for slot in slots(made) if slot.number == 2]:
            give(ben, slot, (truth_of(slot) + 1) % 4)
    return made, ben


def test_without_an_assessor_is_as_if_he_had_never_judged(tmp_path):
    both, ben = partly(tmp_path / "both", with_ben=True)
    alone, _ = partly(tmp_path / "alone", with_ben=False)
    arrays, expected = campaign_arrays(both), campaign_arrays(alone)
    place = [person.pk for person in arrays.assessors].index(ben.pk)
    found = without_assessor(arrays, place)
    assert found.judged.size == expected.judged.size < arrays.judged.size
    for name in ("judged", "batch", "label_item", "label_grade", "audited", "audit_probability", "n_drawn"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    everything = np.ones(expected.judged.size, dtype=bool)
    assert np.array_equal(found.draw_probability(everything), expected.draw_probability(everything))
    assert found.n_judgments == expected.n_judgments
    assert found.not_covered(everything, "judgment") == expected.not_covered(everything, "judgment")


def test_leaving_an_assessor_out_gives_the_numbers_of_the_campaign_without_him(tmp_path):
    both, ben = partly(tmp_path / "both", with_ben=True)
    alone, _ = partly(tmp_path / "alone", with_ben=False)
    found = variant_of(made_of(both, "sensitivity"), f"without {pseudonym(pseudonym_key(both.pk), ben.pk)}")
    expected = made_of(alone, "sensitivity")
    assert expected["method"] == "naive"
    runs = made_of(both, "sensitivity")["runs"]
    assert dict(zip(runs, found["values"], strict=True)) == pytest.approx(
        dict(zip(expected["runs"], expected["base"]["values"], strict=True)), **EXACT
    )


def test_halves_part_each_topics_labels_by_when_they_were_given(reversed_judges):
    arrays = campaign_arrays(reversed_judges)
    early, late = halves(arrays)
    assert not (early & late).any()
    assert (early | late).all()
    topic = arrays.topic_index[arrays.judged[arrays.label_item]]
    for place in range(3):
        here = topic == place
        assert early[here].sum() == late[here].sum() == 14
        assert arrays.label_judgment[here & early].max() < arrays.label_judgment[here & late].min()
    half = with_labels(arrays, early)
    assert half.label_item.max() < half.judged.size
    assert set(half.judged.tolist()) == set(arrays.judged[arrays.label_item[early]].tolist())


def test_one_grade_an_item_stands_for_all_its_labels(reversed_judges):
    arrays = campaign_arrays(reversed_judges)
    joined = with_one_grade(arrays, np.full(arrays.judged.size, 2))
    assert np.array_equal(joined.label_item, np.arange(42))
    assert set(joined.label_grade.tolist()) == {2}
    assert np.array_equal(joined.judged, arrays.judged)


def test_a_campaign_that_nobody_judged_a_ratio_and_an_unknown_run_are_refused(tmp_path, reversed_judges):
    (tmp_path / "empty").mkdir()
    empty = make_campaign(tmp_path / "empty")
    for what, run, against in (("sensitivity", "", ""), ("topics", "run0", "run1")):
        with pytest.raises(AnalysisRefused, match="nobody has judged yet"):
            made_of(empty, what, run=run, against=against)
    with pytest.raises(AnalysisRefused, match="is a ratio"):
        made_of(reversed_judges, "topics", "nDCG@10", "run0", "run1")
    with pytest.raises(AnalysisRefused, match="no run 'nobody'"):
        made_of(reversed_judges, "topics", "DCG@10", "nobody", "run1")


# -- topics -------------------------------------------------------------------------------------------------


def test_every_topics_difference_and_mean_are_those_counted_by_hand_where_all_is_known(reversed_judges):
    result = made_of(reversed_judges, "topics", run="run0", against="run1")
    assert [row["topic_id"] for row in result["topics"]] == TOPICS
    for topic, row in enumerate(result["topics"]):
        assert row["title"] == f"Need {TOPICS[topic]}"
        assert row["difference"]["value"] == pytest.approx(dcg(0, topic) - dcg(1, topic), **EXACT)
        assert row["naive"]["value"] == pytest.approx(dcg(1, topic) - dcg(0, topic), **EXACT)
        assert row["mean"]["value"] == pytest.approx(sum(dcg(run, topic) for run in range(3)) / 3, **EXACT)
        assert (
            row["difference"]["low"] == row["difference"]["high"] == pytest.approx(row["difference"]["value"])
        )
        assert (row["n_judged"], row["n_audited"]) == (14, 14)
    assert result["n_with_interval"] == 3


def test_a_topic_with_too_few_audited_documents_has_a_value_and_no_interval(tmp_path):
    made = make_campaign(tmp_path)
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")])
    audit(campaign=made, items_each_time=20, items_in_total=20, seed=5)
    judge_audit(made, make_assessor(made, "greta", tier="gold"))
    result = made_of(made, "topics", run="run0", against="run1")
    few = [row["difference"] for row in result["topics"] if row["difference"]["n"] < 10]
    assert few
    for part in few:
        assert part["low"] is part["high"] is None
        assert "at least 10 are needed" in part["refusal"]
        assert math.isfinite(part["value"])


def test_without_an_audit_the_topics_are_as_judged_and_the_result_says_so(tmp_path):
    made = make_campaign(tmp_path)
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")])
    result = made_of(made, "topics", run="run0", against="run1")
    assert result["method"] == "naive"
    for topic, row in enumerate(result["topics"]):
        assert row["difference"]["value"] == pytest.approx(dcg(0, topic) - dcg(1, topic), **EXACT)


# -- pages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["sensitivity", "topics"])
def test_the_form_that_computes_keeps_what_the_page_was_asked_for(what, client, reversed_judges):
    client.force_login(User.objects.create(username="rita", role="researcher"))
    address = reverse(f"console:{what}", args=[reversed_judges.pk])
    asked = {"measure": "DCG@10", "claim": "these-topics", "family": "all"}
    if what == "topics":
        asked |= {"run": "run0", "against": "run1"}
    computing = reverse("console:analyse", args=[reversed_judges.pk, what])
    form = client.get(address, asked).content.decode().split(f'action="{computing}"')[1].split("</form>")[0]
    inputs = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
    inputs.pop("csrfmiddlewaretoken", "")
    assert inputs == asked
    back = parse_qs(urlsplit(client.post(computing, inputs)["Location"]).query)["back"][0]
    assert dict(parse_qsl(urlsplit(back).query)) == asked


def test_the_pages_offer_to_compute_and_then_show_what_came_of_it(client, reversed_judges):
    client.force_login(User.objects.create(username="rita", role="researcher"))
    for what, run in (("sensitivity", {}), ("topics", {"run": "run0", "against": "run1"})):
        address = reverse(f"console:{what}", args=[reversed_judges.pk])
        asked = {"measure": "DCG@10", **run}
        assert "Not computed yet" in client.get(address, asked).content.decode()
        sent = client.post(reverse("console:analyse", args=[reversed_judges.pk, what]), asked)
        assert sent.status_code == 302
        job = ask(campaign=reversed_judges, wanted=AnalysisSubject(what, **asked), user=None)
        assert "Being computed" in client.get(address, asked).content.decode()
        jobs.run(job.pk)
        text = client.get(address, asked).content.decode()
        assert "<svg" in text
        assert "Recompute" in text
        file = client.get(
            address,
            {**asked, "plot": "variants" if what == "sensitivity" else "differences", "format": "csv"},
        )
        assert file.status_code == 200
        assert len(file.content.decode().splitlines()) > 3
    address = reverse("console:sensitivity", args=[reversed_judges.pk])
    text = client.get(address, {"claim": "these-topics"}).content.decode()
    assert "reversed" in text
    assert "run1 is higher" in text
    ratio = client.get(reverse("console:topics", args=[reversed_judges.pk]), {"measure": "nDCG@10"})
    assert "Not topic by topic" in ratio.content.decode()
