"""No stored number lies outside the range of its measure: rows, topics, releases; and the database refuses one."""

import json
from copy import deepcopy

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse
from scipy.stats import ttest_rel
from small_release import judged_campaign, release_of, unpacked

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.models import Computation, Estimate
from analytics.releases.verify import verify
from analytics.services.analyses import AnalysisSubject, analyse, ask
from analytics.services.persistence import NUMBERS
from analytics.services.recomputation import recompute
from analytics.services.verdicts import reverse_difference
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db
ENDS = ("value", "low", "high", "topics_low", "topics_high", "always_low", "always_high")


@pytest.fixture(scope="module")
def computed_once(module_world, tmp_path_factory):
    campaign = judged_campaign(tmp_path_factory.mktemp("computed"), budget=24, audited=14, checks=0.0)
    return campaign, recompute(campaign=campaign)


@pytest.fixture
def computed(computed_once, db):
    """A campaign of which little was drawn and audited, so that sums reach beyond what is possible."""
    return deepcopy(computed_once)


def refuses(constraint, **fields):
    """Return whether the database refuses an estimate with these fields, by that rule, and takes it without them."""
    computation = Computation.objects.get()
    given = Estimate.objects.filter(measure="P@10", method="corrected", run_b=None, value__isnull=False)[0]
    plain = {name: getattr(given, name) for name in (*NUMBERS, "n_positive")}
    row = {"run": given.run, "measure": "P@9", "n": given.n, "method": "corrected", **plain}
    with transaction.atomic():
        Estimate.objects.create(computation=computation, **row)
        transaction.set_rollback(True)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Estimate.objects.create(computation=computation, **row | fields)
    return True


def test_every_number_lies_in_its_range_and_some_did_not_before(computed):
    _, computation = computed
    rows = list(computation.estimates.filter(value__isnull=False))
    outside = 0
    for row in rows:
        largest = {"DCG@10": 3 * 4.543559338088345}.get(row.measure, 1.0)
        if row.measure == "ERR@10":
            largest = row.range_high
            assert 7 / 8 < largest < 1
        assert row.range_high == pytest.approx(largest, abs=1e-12)
        assert row.range_low == (0 if row.run_b is None else -row.range_high)
        for name in ENDS:
            end = getattr(row, name)
            assert end is None or row.range_low <= end <= row.range_high, (row.measure, name)
        whole = [row.unbounded_value, row.unbounded_low, row.unbounded_high]
        outside += any(end is not None and not row.range_low <= end <= row.range_high for end in whole)
        if row.topics_low is not None:
            assert row.topics_low <= row.low <= row.high <= row.topics_high
    assert outside > 0
    refused = computation.estimates.filter(value=None)
    assert not refused.exclude(range_high=None).exists()


def test_the_database_refuses_numbers_outside_their_range_and_a_narrower_interval_over_topics(computed):
    for name in ENDS:
        assert refuses("analytics_estimate_range", **{name: 1.01})
    assert refuses("analytics_estimate_range", low=-0.01)
    assert refuses("analytics_estimate_range", unbounded_value=None)
    assert refuses("analytics_estimate_range", range_high=None)
    assert refuses("analytics_estimate_range", unbounded_low=None)
    assert refuses("analytics_estimate_range", value=None, refusal="too few")
    assert refuses("analytics_estimate_topics_wider", low=0.4, high=0.6, topics_low=0.41, topics_high=0.7)
    assert refuses("analytics_estimate_positive", n_positive=10_000)
    assert refuses("analytics_estimate_shares", judged_share=0.5, gold_share=0.6)
    assert refuses("analytics_estimate_shares", gold_share=None)
    assert refuses("analytics_estimate_shares", judged_share=1.1, gold_share=0.6)


def test_the_database_refuses_a_test_over_topics_that_no_rule_gives(computed):
    assert refuses("analytics_estimate_topics_p", topics_p_value=0.5)  # of a run: a value is not tested
    assert refuses("analytics_estimate_topics_freedom", topics_degrees_of_freedom=0)
    assert refuses("analytics_estimate_topics_freedom", topics_low=None, topics_degrees_of_freedom=4)
    tested = Estimate.objects.filter(run_b__isnull=False, p_value__isnull=False)[0]
    pair = {"run_b": tested.run_b, "range_low": None, "range_high": None, "unbounded_value": None}
    pair |= {"unbounded_low": None, "unbounded_high": None, "judged_share": None, "gold_share": None}
    assert refuses("analytics_estimate_topics_p", **pair, p_value=0.5, topics_p_value=0.4)
    assert refuses("analytics_estimate_topics_p", **pair, p_value=0.5, topics_p_value=1.1)
    assert refuses("analytics_estimate_topic_values", **pair, topic_values=[0.1, 0.2])


def test_every_tested_difference_has_both_tests_and_every_run_its_values_by_topic(computed):
    _, computation = computed
    rows = list(computation.estimates.filter(method="corrected", value__isnull=False))
    values = {(row.measure, row.run_id): row.topic_values for row in rows if row.run_b is None}
    checked = 0
    for row in rows:
        if row.run_b is None:
            assert sum(row.topic_values) / len(row.topic_values) == pytest.approx(
                row.whole("value"), abs=1e-9
            )
        elif row.topics_low is not None:
            a, b = (values.get((row.measure, run)) for run in (row.run_id, row.run_b_id))
            if a is None or b is None:  # a run alone may be refused where the difference is not
                continue
            paired = ttest_rel(a, b)
            assert row.topics_p_value == pytest.approx(max(paired.pvalue, row.p_value), rel=1e-6)
            checked += 1
    assert checked > 0


def test_a_row_from_before_there_were_ranges_stays_as_it_is(computed):
    given = Estimate.objects.filter(run_b__isnull=False, value__isnull=False)[0]
    old = Estimate.objects.create(
        computation=given.computation, run=given.run, run_b=given.run_b, measure="P@9", method="corrected",
        n=12, value=1.48, low=0.9, high=2.1,
    )  # fmt: skip
    assert (old.whole("value"), old.judged_words) == (1.48, "")
    assert reverse_difference(old).unbounded_value is None


def test_numbers_stored_under_an_older_spelling_are_found_by_todays_and_the_other_way_round(computed):
    given = Estimate.objects.filter(measure="P@10", method="naive", run_b=None)[0]
    for stored in ("RBP@20", "RBP(p=0.8,rel=2)@20"):
        Estimate.objects.create(
            computation=given.computation, run=given.run, measure=stored, method="naive", n=12, value=0.5
        )
    assert Estimate.objects.get(measure="RBP(p=0.8)@20").measure == "RBP@20"
    assert Estimate.objects.get(measure="RBP@20").measure == "RBP@20"
    assert Estimate.objects.get(measure="RBP(rel=2)@20").measure == "RBP(p=0.8,rel=2)@20"
    assert not Estimate.objects.filter(measure="RBP(p=0.5)@20").exists()
    assert not Estimate.objects.filter(measure="RBP").exists()


def test_a_reversed_difference_turns_what_it_was_before_too(computed):
    given = Estimate.objects.filter(run_b__isnull=False, value__isnull=False, low__isnull=False)[0]
    whole = given.unbounded_value, given.unbounded_low, given.unbounded_high
    turned = reverse_difference(given)
    assert (turned.unbounded_value, turned.unbounded_low, turned.unbounded_high) == pytest.approx(
        (-whole[0], -whole[2], -whole[1])
    )


def test_the_values_of_topics_end_at_their_range_and_the_database_refuses_others(computed):
    campaign, _ = computed
    wanted = AnalysisSubject("topics", "P@10", "run0", "run1")
    made = analyse(campaign=campaign, wanted=wanted, progress=lambda *_: None)
    assert made["range"] == 1.0
    for row in made["topics"]:
        for name, least in (("difference", -1.0), ("naive", -1.0), ("mean", 0.0)):
            for end in ("value", "low", "high"):
                assert row[name][end] is None or least <= row[name][end] <= 1.0
                assert row[name][f"unbounded_{end}"] is None or isinstance(
                    row[name][f"unbounded_{end}"], float
                )
    job = ask(campaign=campaign, wanted=wanted, user=None)
    jobs.run(job.pk)
    stored = Job.objects.get(pk=job.pk)
    assert stored.result["range"] == 1.0
    for part, wrong in (
        ("difference", -1.2),
        ("difference", 1.2),
        ("naive", 1.2),
        ("mean", -0.1),
        ("mean", 1.1),
    ):
        stored.result["topics"][0][part]["value"] = wrong
        with pytest.raises(IntegrityError, match="analytics_topics_within_range"), transaction.atomic():
            stored.save()
        stored.result["topics"][0][part]["value"] = 0.5
    del stored.result["range"]  # one from before
    stored.result["topics"][0]["mean"]["value"] = 1.48
    stored.save()


def test_pages_and_api_say_where_numbers_end_how_much_was_judged_and_what_few_documents_carry(
    client, computed
):
    campaign, computation = computed
    client.force_login(User.objects.create(username="rita", role="researcher"))
    runs = client.get(
        reverse("console:campaign-results", args=[campaign.pk]), {"measure": "P@10"}
    ).content.decode()
    assert "Judged@10" in runs
    row = computation.estimates.filter(measure="P@10", run_b=None, judged_share__isnull=False)[0]
    for share in (row.judged_share, row.gold_share):
        assert f'">{100 * share:.0f} %</td>' in runs
    assert 0 < row.gold_share < row.judged_share < 1
    assert "end at the range of the measure" in runs
    asked = {"measure": "P@10", "a": "run0", "b": "run1"}
    pair = client.get(reverse("console:pair", args=[campaign.pk]), asked).content.decode()
    assert row.judged_words in pair
    few = computation.estimates.filter(
        measure="P@10", method="corrected", run_b__isnull=False, n_positive__lt=10
    )
    assert few.exists()
    assert "a gain above 0 carry this number" in few[0].warning
    pages = {name: reverse(f"console:{name}", args=[campaign.pk]) for name in ("pairs", "ranking")}
    assert "few relevant" in client.get(pages["pairs"], {"measure": "P@10"}).content.decode()
    assert "Few relevant documents" in client.get(pages["ranking"], {"measure": "P@10"}).content.decode()
    api = f"/api/v1/campaigns/{campaign.pk}/"
    listed = client.get(api + "estimates", {"measure": "P@10", "method": "corrected"}).json()["results"]
    by_id = {one["id"]: one for one in listed}
    stored = by_id[few[0].pk]
    for name in (
        "unbounded_value",
        "unbounded_low",
        "unbounded_high",
        "range_low",
        "range_high",
        "n_positive",
    ):
        assert stored[name] == getattr(few[0], name)
    ranked = client.get(api + "ranking", {"measure": "P@10"}).json()
    assert ranked["n_few"] == few.filter(standard_error__gt=0).count()
    assert ranked["runs"][0]["judged_share"] is not None


def test_a_release_says_the_same_and_its_verifier_finds_each_of_them_changed(computed, tmp_path):
    campaign, _ = computed
    folder = unpacked(release_of(campaign), tmp_path / "release")
    assert verify(folder).different == []
    file = folder / "estimates.json"
    whole = json.loads(file.read_text())
    place = next(
        place
        for place, row in enumerate(whole["estimates"])
        if row["measure"] == "P@10" and row["method"] == "corrected" and row["run_b"] is None and row["value"]
    )
    changes = {
        "n_positive": 12,
        "judged_share": 0.99,
        "gold_share": 0.01,
        "range_high": 1.5,
        "unbounded_value": 0.123,
    }
    for name, wrong in changes.items():
        changed = json.loads(json.dumps(whole))
        changed["estimates"][place][name] = wrong
        file.write_text(json.dumps(changed))
        assert any(f" {name}: recorded" in words for words in verify(folder).different), name


def test_a_naive_number_without_any_sampling_has_no_error_bar_on_runs(client, tmp_path):
    campaign = judged_campaign(tmp_path, budget=42, audited=0, checks=0.0)
    computed = recompute(campaign=campaign)
    row = computed.estimates.filter(measure="P@10", method="naive", run_b=None)[0]
    assert row.has_no_error_bar
    client.force_login(User.objects.create(username="rita", role="researcher"))
    text = client.get(
        reverse("console:campaign-results", args=[campaign.pk]), {"measure": "P@10"}
    ).content.decode()
    assert "no error bar" in text
    assert f"{row.value:.3f} to {row.value:.3f}" not in text
