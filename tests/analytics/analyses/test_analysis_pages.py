"""Analyses that are made when asked: every state of their pages, and the API."""

import json
import uuid

import pytest
from asked_analyses import PAIR, client_of, lines, made, page_of, run_job
from django.test import Client
from django.urls import reverse
from small_campaign import (
    RUNS,
    TOPICS,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    returned,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics import shards
from analytics.services.analyses import ANALYSES, AnalysisSubject, ask, find, job_title
from analytics.services.recomputation import recompute
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Job

pytestmark = pytest.mark.django_db


# -- the pair's page ----------------------------------------------------------------------------------------


def test_the_pair_says_what_looking_often_does_where_its_variance_comes_from_and_how_judges_err(audited):
    newest = audited.computations.latest("id")
    rows = list(newest.estimates.filter(measure="P@10", method__in=["corrected", "matrix-inverse"]))
    newest.pk, newest.assumption = None, {"words": "All. Of it.", "sentences": ["All."], "contradicted": True}
    newest.save(force_insert=True)
    for row in rows:
        row.pk, row.computation = None, newest
        if row.run_b_id and row.method == "corrected":
            row.value, row.low, row.high, row.refusal, row.standard_error = 0.2, 0.1, 0.3, "", 0.05
            row.topics_low, row.topics_high = 0.0, 0.4
            row.always_low, row.always_high, row.components = -0.02, 0.42, {"drawing": 0.3, "gold": 0.7}
        if row.method == "matrix-inverse" and row.value is None:
            row.value, row.low, row.high, row.refusal = 0.2, 0.1, 0.3, ""
            row.topics_low, row.topics_high = 0.0, 0.4
        row.save(force_insert=True)
    turned = page_of(audited, "pair", measure="P@10", a="run2", b="run0")
    assert (
        "Confidence sequence for these topics, valid at every look while judging goes on: -0.420 to +0.020."
        in turned
    )
    text = page_of(audited, "pair", measure="P@10", a="run0", b="run2")
    assert "while judging goes on: -0.020 to +0.420. It contains 0" in text
    assert "About 70 % of this variance comes from the gold audit: more gold labels narrow it." in text
    assert "unlike real assessors. All." in text
    results = page_of(audited, "campaign-results", measure="P@10")
    assert "confidence sequence" in results
    assert "unlike real assessors. All." in results
    audited.state = "closed"
    audited.save()
    assert "Confidence sequence" not in page_of(audited, "pair", measure="P@10", a="run0", b="run2")


def test_every_analysis_has_a_page_of_its_key_and_a_title_for_its_jobs():
    fields = {"what": "what", "measure": "P@10", "run": "run0", "against": "run2"}
    for one in ANALYSES:
        assert reverse(f"console:{one.key}", args=[uuid.uuid4()])
        title = job_title(Job(kind="analysis", payload={"what": one.key, "asked": fields}))
        assert title
        assert "{" not in title
    assert job_title(Job(kind="estimate", payload={})) == ""


# -- pages and states ---------------------------------------------------------------------------------------


def test_the_page_goes_from_a_button_to_a_job_to_the_result_and_asks_anew(audited):
    assert "Not computed yet" in page_of(audited)
    url = reverse("console:analyse", args=[audited.pk, "papers"])
    asked = {"measure": "P@10", "run": "run0", "against": "run2"}
    sent = client_of("researcher").post(url, asked)
    job = Job.objects.get(kind="analysis")
    assert str(job.pk) in sent["Location"]
    page = client_of("researcher").get(sent["Location"]).content.decode()
    assert "The papers&#x27; methods on run0 and run2, in P@10." in page
    waiting = page_of(audited)
    assert "Being computed." in waiting
    assert 'http-equiv="refresh"' in waiting
    assert (
        client_of("researcher").post(url, asked)["Location"] == sent["Location"]
    )  # one job for one question
    assert run_job(job).state == "done"
    text = page_of(audited)
    assert "Recompute" in text
    assert "One audit for both runs, Fieller" in text
    assert "More judgments have arrived since" not in text
    newest = audited.computations.latest("id")
    newest.pk, newest.last_judgment_id = None, newest.last_judgment_id + 5
    newest.save(force_insert=True)
    assert "More judgments have arrived since" in page_of(audited)
    again = ask(campaign=audited, wanted=PAIR, user=None)
    assert again.pk != job.pk
    assert "Being recomputed." in page_of(audited)
    assert "One audit for both runs, Fieller" in page_of(audited)  # the older result stays meanwhile


def test_an_analysis_of_all_judgments_at_once_is_refused_by_name_where_there_are_too_many(
    audited, monkeypatch
):
    monkeypatch.setattr(shards, "MOST_WHOLE", 83)
    job = run_job(ask(campaign=audited, wanted=PAIR, user=None))
    words = (
        "The papers&#x27; methods on run0 and run2, in P@10 takes all judgments at once, up to 83 of them; "
        "this campaign has 126"
    )
    assert (job.state, words in page_of(audited)) == ("failed", True)
    topics = AnalysisSubject("topics", "P@10", "run0", "run2")
    assert run_job(ask(campaign=audited, wanted=topics, user=None)).state == "done"  # it sums over topics
    monkeypatch.setattr(shards, "MOST_WHOLE", 126)
    assert run_job(ask(campaign=audited, wanted=PAIR, user=None)).state == "done"


def test_a_refused_analysis_and_a_cancelled_one_say_so_and_can_be_asked_again(judged):
    wanted = AnalysisSubject("papers", "nDCG@10", "run0", "run2")
    job = run_job(ask(campaign=judged, wanted=wanted, user=None))
    assert job.state == "failed"
    assert "is a ratio" in find(campaign=judged, wanted=wanted).failed.error
    text = page_of(judged, measure="nDCG@10", run="run0", against="run2")
    assert "The latest attempt failed:" in text
    assert ">Compute</button>" in text
    cancelled = ask(campaign=judged, wanted=PAIR, user=None)
    jobs.cancel(cancelled)
    assert "Not computed yet" in page_of(judged)
    assert ask(campaign=judged, wanted=PAIR, user=None).pk != cancelled.pk


def test_a_researcher_can_stop_an_analysis_but_sees_no_other_job(judged):
    job = ask(campaign=judged, wanted=PAIR, user=None)
    client = client_of("researcher")
    assert client.get(reverse("job", args=[job.pk])).status_code == 200
    client.post(reverse("cancel-job", args=[job.pk]))
    job.refresh_from_db()
    assert job.state == "cancelled"
    other = Job.objects.create(kind="import")
    assert client.get(reverse("job", args=[other.pk])).status_code == 404
    assert client.post(reverse("cancel-job", args=[other.pk])).status_code == 404


def test_nothing_is_read_but_a_few_rows_before_somebody_asks(
    audited, django_assert_max_num_queries, monkeypatch
):
    def must_not(*_, **__):
        raise AssertionError("a page read the campaign")

    monkeypatch.setattr("analytics.services.analyses.campaign_arrays", must_not)
    page_of(audited)  # whoever reads is made
    with django_assert_max_num_queries(30):
        page_of(audited)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"measure": "P@10", "run": "run0"}, "choose a run"),
        ({"measure": "P@10", "run": "run0", "against": "run0"}, "both runs are the same"),
        ({"measure": "P@10", "run": "run0", "against": "nobody"}, "the collection has no run"),
        ({"measure": "P@77", "run": "run0", "against": "run1"}, "this campaign has numbers in"),
    ],
)
def test_a_wrong_question_is_named(judged, asked, words):
    assert words in page_of(judged, status=400, **asked)


@pytest.mark.parametrize("name", ["papers", "agreement", "planner", "api-analyses", "api-planner"])
def test_others_see_no_such_page(judged, name):
    assert client_of("assessor").get(reverse(f"console:{name}", args=[judged.pk])).status_code == 404
    assert Client().get(reverse(f"console:{name}", args=[judged.pk])).status_code in (302, 401, 403)


def test_a_request_that_its_job_could_not_read_names_the_missing_fields_and_queues_nothing(api, audited):
    address, before = f"/api/v1/campaigns/{audited.pk}/analyses", Job.objects.count()
    runs = {"run": "run0", "against": "run2"}
    for sent, missing in [
        ({}, {"measure", "run", "against"}),
        (runs, {"measure"}),
        ({"measure": "P@10", "against": "run2"}, {"run"}),
    ]:
        answer = api.post(address, {"what": "papers", **sent}, content_type="application/json")
        assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
        assert set(answer.json()["errors"]) == missing
    assert Job.objects.count() == before


def test_the_api_asks_waits_and_gives_the_result(api, audited):
    address = f"/api/v1/campaigns/{audited.pk}/analyses"
    asked = {"what": "papers", "measure": "P@10", "run": "run0", "against": "run2"}
    first = api.get(address, asked).json()
    assert (first["result"], first["is_being_computed"]) == (None, False)
    sent = api.post(address, json.dumps(asked), content_type="application/json")
    assert sent.status_code == 202
    assert sent["Retry-After"] == "2"
    run_job(Job.objects.get(kind="analysis"))
    found = api.get(address, asked).json()
    assert found["is_current"]
    assert found["result"]["as_of"] == audited.computations.latest("id").last_judgment_id
    assert {line["of"] for line in found["result"]["lines"]} == {"difference", "run", "against"}
    for wrong in ({"what": "tea"}, {"what": "papers", "color": "red"}, {"what": "agreement", "run": "run0"}):
        assert api.get(address, wrong).status_code == 400


def test_runs_of_the_small_campaign_are_as_the_numbers_by_hand_take_them():
    assert RUNS == ["run0", "run1", "run2"]
    assert [len(returned(run)) for run in range(3)] == [30, 30, 30]


def test_a_judge_who_says_relevant_by_chance_corrects_no_difference_but_the_score_test_stays(tmp_path):
    """D/SE(D) < 1.96: the product refuses by name where the paper's formula would go on."""
    campaign = make_campaign(tmp_path)
    assessors = [make_assessor(campaign, f"bronze{n}") for n in range(2)]

    def by_chance(slot, _):
        number = int(slot.item.document.doc_id[-2:])
        return 3 * (number // (2 + TOPICS.index(slot.item.topic.topic_id)) % 2)

    judge_all(campaign, assessors, by_chance)
    gold = make_assessor(campaign, "gold", "gold")
    audit(campaign=campaign, items_each_time=42, items_in_total=42)
    judge_audit(campaign, gold)
    recompute(campaign=campaign)
    found = lines(made(campaign))
    for name in ("One audit for both runs, Wald", "One audit for both runs, Fieller"):
        assert found[name]["refusal"], name
        assert found[name]["value"] is None
    assert found["One audit for both runs, score test"]["p_value"] is not None
