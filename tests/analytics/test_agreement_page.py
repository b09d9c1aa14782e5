"""How far the tiers agree: tables and orders of the small campaign against enumeration, and the page."""

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from small_campaign import (
    TOPICS,
    doc_id,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    true_grade,
    truth_of,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.services.analyses import AnalysisSubject, analyse, ask
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import User

pytestmark = pytest.mark.django_db
ALL = AnalysisSubject("agreement", "")


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


def given(slot, place):
    """Two judges: the first is right but for every fifth document, the second a grade lower."""
    true, number = truth_of(slot), int(slot.item.document.doc_id[-2:])
    return (3 - true if number % 5 == 0 else true) if place == 0 else max(0, true - 1)


def lower_of_two(topic_id, document_id):
    """Return the lower median of two grades: the smaller."""
    true, number = true_grade(topic_id, document_id), int(document_id[-2:])
    return min(3 - true if number % 5 == 0 else true, max(0, true - 1))


def judged_campaign(tmp_path, *, n_assessors=2, grade=given):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, f"bronze{n}") for n in range(n_assessors)], grade)
    return campaign


@pytest.fixture
def judged(tmp_path):
    return judged_campaign(tmp_path)


@pytest.fixture
def audited(judged):
    gold = make_assessor(judged, "gold", "gold")
    audit(campaign=judged, items_each_time=42, items_in_total=42)
    judge_audit(judged, gold)
    return judged


def made(campaign):
    return analyse(campaign=campaign, wanted=ALL, progress=lambda *_: None)


def pair_of(result, *of):
    return next(pair for pair in result["pairs"] if pair["of"] == list(of))


def ranking_of(result, score, *of):
    return next(row for row in result["rankings"] if row["of"] == list(of) and row["score"] == score)


def test_tables_of_gold_and_bronze_count_every_document_once_both_ways(audited):
    counts = np.zeros((4, 4))
    for n, topic_id in enumerate(TOPICS):
        for d in range(14):
            pair = topic_id, doc_id(n, d)
            counts[true_grade(*pair), lower_of_two(*pair)] += 1
    result = made(audited)
    found = pair_of(result, "gold", "bronze")
    assert np.array_equal(found["counts"], counts)
    for grade in range(4):
        row = counts[grade] / counts[grade].sum()
        assert found["b_given_a"][grade]["shares"] == pytest.approx(row.tolist())
        column = counts[:, grade]
        if column.sum():
            assert found["a_given_b"][grade]["shares"] == pytest.approx((column / column.sum()).tolist())
        else:
            assert found["a_given_b"][grade]["refusal"]
    assert found["overall_b"] == pytest.approx((counts.sum(axis=0) / 42).tolist())
    expected = (((counts.sum(axis=0) + counts.sum(axis=1)) / 84) ** 2).sum()
    pi = (np.trace(counts) / 42 - expected) / (1 - expected)
    assert found["kappas"][0]["value"] == pytest.approx(pi)
    assert found["kappas"][1]["value"] == pytest.approx(pi)  # every chance is 1: weighted is the same
    assert sum(found["histogram"]["counts"]) + found["histogram"]["refused"] == 3
    assert result["tiers"] == [
        {"name": "gold", "n": 42},
        {"name": "silver", "n": 0},
        {"name": "bronze", "n": 42},
    ]


def test_a_tier_without_members_is_a_named_refusal(audited, judged):
    result = made(audited)
    for of in (("gold", "silver"), ("silver", "bronze")):
        assert pair_of(result, *of)["refusal"] == "no judgment of the silver tier counts here yet"
        assert "silver tier" in ranking_of(result, "infAP", *of)["refusal"]


def test_before_an_audit_bronze_alone_has_an_alpha_and_nothing_to_compare_with(judged):
    result = made(judged)
    assert "no judgment of the gold tier counts here" in pair_of(result, "gold", "bronze")["refusal"]
    alone = result["alphas"][0]
    assert alone["n_labels"] == 84
    assert alone["value"] < 1


def test_one_assessor_has_no_alpha(tmp_path):
    campaign = make_campaign(tmp_path)
    one = make_assessor(campaign, "alone")
    judge_all(campaign, [one], number=1)
    assert "2 assessors" in made(campaign)["alphas"][0]["refusal"]


def test_judges_who_always_disagree_have_an_alpha_below_0(tmp_path):
    campaign = judged_campaign(tmp_path, grade=lambda slot, place: 3 * ((truth_of(slot) // 2 + place) % 2))
    found = made(campaign)["alphas"][0]
    assert found["value"] < 0
    assert found["high"] < 0


def test_right_judges_order_the_runs_as_gold_does(tmp_path):
    campaign = judged_campaign(tmp_path, grade=lambda slot, _: truth_of(slot))
    gold = make_assessor(campaign, "gold", "gold")
    audit(campaign=campaign, items_each_time=42, items_in_total=42)
    judge_audit(campaign, gold)
    result = made(campaign)
    for score in ("infNDCG", "infAP"):
        row = ranking_of(result, score, "gold", "bronze")
        # Two runs may tie in both orders; no pair is the other way round.
        assert (row["tau_b"], row["n_flipped"], row["n_topics"]) == (pytest.approx(1.0), 0, 3)
        assert row["tau"] == pytest.approx(1 - row["tied_pairs"] / 3)
        for one in row["runs"]:
            assert one["reference"] == pytest.approx(one["other"])
            assert "same score from both tiers" in one["refusal"]


def test_reversed_judges_turn_pairs_round(tmp_path):
    campaign = judged_campaign(tmp_path, grade=lambda slot, _: 3 - truth_of(slot))
    gold = make_assessor(campaign, "gold", "gold")
    audit(campaign=campaign, items_each_time=42, items_in_total=42)
    judge_audit(campaign, gold)
    row = ranking_of(made(campaign), "infNDCG", "gold", "bronze")
    assert row["n_flipped"] > 0
    assert row["tau"] < 1
    better, worse = row["flipped"][0]
    means = {one["run"]: one for one in row["runs"]}
    assert means[better]["reference"] > means[worse]["reference"]
    assert means[better]["other"] < means[worse]["other"]


def client_of(role):
    client = Client()
    client.force_login(User.objects.get_or_create(username=role, defaults={"role": role})[0])
    return client


def page_of(campaign, **asked):
    answered = client_of("researcher").get(reverse("console:agreement", args=[campaign.pk]), asked)
    assert answered.status_code == 200, answered.content.decode()[:2000]
    return " ".join(answered.content.decode().split())


def test_the_page_shows_tables_kappas_orders_and_refusals(audited):
    assert "Not computed yet" in page_of(audited)
    sent = client_of("researcher").post(reverse("console:analyse", args=[audited.pk, "agreement"]))
    assert sent.status_code == 302
    job = ask(campaign=audited, wanted=ALL, user=None)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")
    text = page_of(audited)
    assert "Gold and bronze: the same documents" in text
    assert "Grades of the bronze tier by grade of the gold tier" in text
    assert "Not comparable: no judgment of the silver tier counts here" in text
    assert "Scott&#x27;s pi, weighted to the pool" in text
    assert "infNDCG of every run: gold and bronze" in text
    assert text.count("<svg") == 3
    assert "Overlap of the relevant ones" in text
    assert "infAP of every run, by tier" in text
    assert "Pairs of assessors" in text


def test_overlap_counts_what_both_call_relevant(audited):
    pairs = [
        (true_grade(t, doc_id(n, d)), lower_of_two(t, doc_id(n, d)))
        for n, t in enumerate(TOPICS)
        for d in range(14)
    ]
    both = sum(gold > 0 and bronze > 0 for gold, bronze in pairs)
    either = sum(gold > 0 or bronze > 0 for gold, bronze in pairs)
    found = pair_of(made(audited), "gold", "bronze")["overlap"]
    assert [one["value"] for one in found] == pytest.approx([both / either] * 2)  # every chance is 1


def test_the_picture_has_every_run_by_every_tier_that_can_score(audited):
    result = made(audited)
    for one in result["scored"]:
        row = ranking_of(result, one["score"], "gold", "bronze")
        assert list(one["means"]) == ["gold", "bronze"]
        assert one["n_topics"] == row["n_topics"]
        assert one["means"]["gold"] == sorted(one["means"]["gold"])
        for place, run in enumerate(one["runs"]):
            means = next(each for each in row["runs"] if each["run"] == run)
            assert one["means"]["gold"][place] == pytest.approx(means["reference"])
            assert one["means"]["bronze"][place] == pytest.approx(means["other"])
    job = ask(campaign=audited, wanted=ALL, user=None)
    jobs.run(job.pk)
    address = reverse("console:agreement", args=[audited.pk])
    csv = client_of("researcher").get(address, {"plot": "infAP", "format": "csv"}).content.decode()
    assert csv.splitlines()[0] == "name,gold,bronze"
    assert client_of("researcher").get(address, {"plot": "nothing"}).status_code == 404


def test_the_picture_has_the_tiers_in_their_order_and_not_in_that_of_the_database(audited):
    job = ask(campaign=audited, wanted=ALL, user=None)
    jobs.run(job.pk)
    job.refresh_from_db()
    for one in job.result["scored"]:
        one["means"] = {"silver": one["means"]["gold"], **one["means"]}
    job.save()
    job.refresh_from_db()
    assert list(job.result["scored"][0]["means"]) == [
        "gold",
        "bronze",
        "silver",
    ]  # as JSON in PostgreSQL has it
    address = reverse("console:agreement", args=[audited.pk])
    csv = client_of("researcher").get(address, {"plot": "infAP", "format": "csv"}).content.decode()
    assert csv.splitlines()[0] == "name,gold,silver,bronze"


def test_one_tier_alone_has_no_picture(judged):
    for one in made(judged)["scored"]:
        assert one["refusal"] == "no two tiers can score the runs over the same topics"


def test_pairs_of_assessors_are_named_to_managers_and_by_their_files_names_to_others(audited):
    found = made(audited)["assessors"]
    assert found["n"] == 1
    (pair,) = found["pairs"]
    assert pair["n"] == 42
    assert not set(pair["of"]) & {"bronze0", "bronze1"}
    disagree = sum(
        (first > 0) != (second > 0)
        for first, second in (
            (3 - t if int(d[-2:]) % 5 == 0 else t, max(0, t - 1))
            for t, d in (
                (true_grade(topic, doc_id(n, d)), doc_id(n, d))
                for n, topic in enumerate(TOPICS)
                for d in range(14)
            )
        )
    )
    assert pair["first_alone"] + pair["second_alone"] == disagree
    assert pair["agreement"] == pytest.approx(1 - disagree / 42)
    job = ask(campaign=audited, wanted=ALL, user=None)
    jobs.run(job.pk)
    told = page_of(audited)
    assert pair["of"][0] in told
    assert "bronze0" not in told
    manager = client_of("manager").get(reverse("console:agreement", args=[audited.pk])).content.decode()
    assert "bronze0" in manager
    assert pair["of"][0] not in manager


def test_two_with_few_documents_in_common_are_not_compared(tmp_path):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, "alone")], number=1)
    assert made(campaign)["assessors"]["refusal"] == "no two assessors have judged 10 documents in common"


def test_a_result_made_before_these_were_shown_still_has_its_page(audited):
    job = ask(campaign=audited, wanted=ALL, user=None)
    jobs.run(job.pk)
    job.refresh_from_db()
    for name in ("scored", "assessors"):
        del job.result[name]
    for pair in job.result["pairs"]:
        pair.pop("overlap", None)
    job.save()
    text = page_of(audited)
    assert "Gold and bronze: the same documents" in text
    assert "Pairs of assessors" not in text
