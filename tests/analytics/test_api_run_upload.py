"""A run that somebody brings: imported and estimated by one job, with the numbers that all computations give."""

from copy import deepcopy

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from small_campaign import (
    DEPTH,
    DOCUMENTS,
    TOPICS,
    doc_id,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    make_undrawn,
    true_grade,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.estimation.comparison import holm
from analytics.models import Estimate
from analytics.services.comparisons import Comparisons
from analytics.services.families import asked_family, declare_family
from analytics.services.recomputation import recompute
from analytics.services.run_upload import FOLDER, UploadRefused, find_estimates, queue_upload
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Event, Job, User

pytestmark = pytest.mark.django_db

MINE = [13, 2, 5, 6, 9, 10, 1, 0, 3, 7]  # places of documents, the same for every topic
ROUNDING = 1e-9


def run_file(places=MINE, tag="mine", topics=TOPICS):
    lines = [
        f"{topic_id} Q0 {doc_id(topic, place)} {rank} {50 - rank} {tag}\n"
        for topic, topic_id in enumerate(topics)
        for rank, place in enumerate(places, start=1)
    ]
    return ContentFile("".join(lines).encode(), name="mine.run")


@pytest.fixture(autouse=True)
def no_heartbeat(monkeypatch):
    """Jobs of these tests are in a transaction that the heartbeat's own connection cannot see."""
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    """Judged with some errors, and audited in part."""
    made = make_campaign(tmp_path_factory.mktemp("world"))
    people = [make_assessor(made, "ann"), make_assessor(made, "ben")]
    wrong = lambda slot, place: (hash_of(slot) + place) % 4  # noqa: E731
    judge_all(made, people, grade=wrong)
    audit(campaign=made, items_each_time=25, items_in_total=25, seed=5)
    judge_audit(made, make_assessor(made, "greta", tier="gold"))
    return made


@pytest.fixture
def campaign(made_once, db):
    return deepcopy(made_once)


def hash_of(slot):
    """Right, but for every fourth document."""
    true = true_grade(slot.item.topic.topic_id, slot.item.document.doc_id)
    return true + (int(slot.item.document.doc_id[-2:]) % 4 == 1)


def done(job):
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def numbers(row):
    return (row.value, row.standard_error, row.low, row.high, row.p_value, row.n, row.refusal)


def test_the_immediate_numbers_are_those_that_the_next_computation_stores(campaign):
    job = done(queue_upload(campaign=campaign, file=run_file(), against="run1"))
    assert job.state == Job.State.DONE, job.error
    assert job.result["run"] == "mine"
    assert job.result["n_lines"] == 30
    computed = recompute(campaign=campaign)
    stored = {
        (e.run.run_id, e.run_b.run_id if e.run_b else None, e.measure, e.method): e
        for e in computed.estimates.select_related("run", "run_b")
    }
    compared = 0
    for one in job.result["estimates"]:
        key = (one["run"], one["run_b"], one["measure"], one["method"])
        row = stored[key] if key in stored else stored[(key[1], key[0], *key[2:])]
        sign = 1 if key in stored else -1
        if one["method"] == "matrix-inverse":
            continue  # by a bootstrap, whose draws are others
        assert one["refusal"] == row.refusal, key
        if row.value is not None and one["measure"] not in ("nDCG@10", "AP@10", "R@10"):
            assert one["value"] == pytest.approx(sign * row.value, abs=ROUNDING), key
            assert one["standard_error"] == pytest.approx(row.standard_error, abs=ROUNDING), key
            compared += 1
    assert compared >= 3 * 2 * 2  # three sums, naive and corrected, the run and its difference


def test_true_values_of_the_upload_are_those_counted_by_hand(campaign):
    job = done(queue_upload(campaign=campaign, file=run_file(), against="run0"))
    [true] = [
        one["value"]
        for one in job.result["estimates"]
        if (one["run_b"], one["measure"], one["method"]) == (None, "P@10", "true")
    ]
    relevant = [true_grade(t, doc_id(n, place)) > 0 for n, t in enumerate(TOPICS) for place in MINE]
    assert true == pytest.approx(sum(relevant) / len(relevant))


def of_all(campaign, known):
    return Comparisons(known.computation, "DCG@10", asked_family(campaign, "runs:mine,run0"))


def test_what_is_known_comes_from_the_upload_and_later_from_the_computation(campaign):
    recompute(campaign=campaign)
    done(queue_upload(campaign=campaign, file=run_file(), against="run0"))
    run, rival = campaign.collection.runs.get(run_id="mine"), campaign.collection.runs.get(run_id="run0")
    at_once = find_estimates(campaign=campaign, run=run, measure="DCG@10", against=rival)
    assert at_once.is_from_upload
    assert "mine" in at_once.verdict(of_all(campaign, at_once))
    recompute(campaign=campaign)
    later = find_estimates(campaign=campaign, run=run, measure="DCG@10", against=rival)
    assert not later.is_from_upload
    known = {e.method: numbers(e) for e in later.differences}
    for row in at_once.differences:
        if row.method in ("naive", "corrected"):
            assert numbers(row)[:4] == pytest.approx(known[row.method][:4])
    before, after = at_once.verdict(of_all(campaign, at_once)), later.verdict(of_all(campaign, later))
    # In a family that names this pair alone nothing is to be waited for.
    assert "is not significant at .05" in after
    assert before.partition("), is ")[0] == after.partition("), is ")[0]
    assert before.partition(" at .05")[0] == after.partition(" at .05")[0]
    assert Estimate.objects.filter(run=run).exists()


def test_an_uploader_sees_p_alone_and_adjusted_in_a_family_of_their_own_naming(campaign, client):
    recompute(campaign=campaign)
    done(queue_upload(campaign=campaign, file=run_file(), against="run0"))
    asked = {"run": "mine", "against": "run0", "measure": "DCG@10"}
    alone = estimate_of(client, campaign, **asked)
    assert (alone["family"], alone["p_adjusted"], alone["significant"]) == ("question", None, False)
    assert "is not among the declared comparisons: its p is not adjusted" in alone["verdict"]
    pair = estimate_of(client, campaign, family="runs:mine,run0", **asked)
    assert (pair["n_family"], pair["p_adjusted"]) == (1, alone["p"])
    against = estimate_of(client, campaign, family="baseline:run0", **asked)
    rows = client.get(
        f"/api/v1/campaigns/{campaign.pk}/comparisons", {"measure": "DCG@10", "family": "baseline:run0"}
    ).json()["results"]
    p = [row["p"] for row in rows if "run0" in (row["run"], row["run_b"])]
    assert (len(p), against["n_family"]) == (2, 3)
    assert against["p_adjusted"] == pytest.approx(holm([*p, alone["p"]])[-1], rel=1e-12)
    # of all pairs those with the other runs are not known yet
    every = estimate_of(client, campaign, family="all", **asked)
    assert every["p_adjusted"] is None
    assert "is not adjusted yet: the next computation has all comparisons of the family" in every["verdict"]
    recompute(campaign=campaign)
    for family, before in (("runs:mine,run0", pair), ("baseline:run0", against)):
        after = estimate_of(client, campaign, family=family, **asked)
        assert after["is_from_upload"] is False
        assert after["n_family"] == before["n_family"]
        for name in ("p", "p_adjusted", "interval_low", "interval_high"):
            assert after[name] == pytest.approx(before[name], rel=1e-9), name
        assert (after["t"] is None) == (before["t"] is None)
    assert estimate_of(client, campaign, family="all", **asked)["p_adjusted"] is not None


def test_answers_for_a_declared_family_are_the_same_before_and_after_an_upload_and_its_recomputation(
    campaign, client
):
    declare_family(campaign=campaign, user=None, name="all")
    recompute(campaign=campaign)
    asked = [
        {"measure": measure, "claim": claim, "adjustment": adjustment}
        for measure in ("DCG@10", "P@10", "nDCG@10", "AP@10")
        for claim, adjustment in (
            ("topics-like-these", "holm"),
            ("topics-like-these", "max-t"),
            ("these-topics", "holm"),
        )
    ]

    def answers():
        found = [client.get(f"/api/v1/campaigns/{campaign.pk}/comparisons", query) for query in asked]
        return [
            [row for row in one.json()["results"] if "mine" not in (row["run"], row["run_b"])]
            for one in found
        ]

    before = answers()
    assert [len(rows) for rows in before] == [3] * len(asked)
    done(queue_upload(campaign=campaign, file=run_file(), against="run0"))
    recompute(campaign=campaign)
    assert answers() == before
    # the control: a family that was not declared takes in the runs of now
    now = {"measure": "DCG@10", "family": "baseline:run0"}
    rows = client.get(f"/api/v1/campaigns/{campaign.pk}/comparisons", now).json()["results"]
    assert {row["n_family"] for row in rows} == {3}


def test_the_run_to_compare_with_is_the_best_one_unless_named(campaign):
    recompute(campaign=campaign)
    best = max(
        Estimate.objects.filter(method="corrected", measure="DCG@10", run_b=None), key=lambda e: e.value
    )
    job = done(queue_upload(campaign=campaign, file=run_file()))
    assert job.result["against"] == best.run.run_id


def test_a_broken_file_is_refused_with_its_place_and_leaves_nothing(campaign):
    bad = ContentFile(b"t0 Q0 t0d00 1 1.0 mine\nt0 Q0 t0d01 2 nan mine\n", name="bad.run")
    job = done(queue_upload(campaign=campaign, file=bad))
    assert job.state == Job.State.FAILED
    assert job.error.startswith("bad.run:2:")
    assert not campaign.collection.runs.filter(run_id="mine").exists()
    assert not default_storage.exists(job.payload["upload"]["path"])
    assert not Event.objects.filter(verb="imported runs", detail__files__contains=[{"run": "mine"}]).exists()


def test_the_same_run_twice_is_refused_the_second_time(campaign):
    assert done(queue_upload(campaign=campaign, file=run_file())).state == Job.State.DONE
    second = done(queue_upload(campaign=campaign, file=run_file()))
    assert "already has run mine" in second.error


def test_documents_that_could_not_be_drawn_give_a_reason_and_no_number(campaign):
    job = done(queue_upload(campaign=campaign, file=run_file(places=[0, 1, 77, 2, 3]), against="run0"))
    assert job.state == Job.State.DONE, job.error
    mine = [e for e in job.result["estimates"] if e["run_b"] is None and e["measure"] == "P@10"]
    assert {e["value"] for e in mine} == {None}
    (naive,) = (e for e in mine if e["method"] == "naive")
    assert "mine returns documents that could not be drawn, inside the cutoff of P@10" in naive["refusal"]
    assert job.result["reuse"]["answer"]["outside"]["standing"] == "not_yet"
    assert job.result["reuse"]["answer"]["n_outside"] == len(TOPICS)


def test_before_anybody_judged_the_run_is_there_and_the_reason_too(tmp_path):
    campaign = make_campaign(tmp_path)
    job = done(queue_upload(campaign=campaign, file=run_file()))
    assert job.state == Job.State.DONE, job.error
    assert job.result["refusal"] == "nobody has judged yet"
    assert campaign.collection.runs.filter(run_id="mine").exists()
    nothing = find_estimates(
        campaign=campaign, run=campaign.collection.runs.get(run_id="mine"), measure="P@10"
    )
    assert nothing.values == []


def test_what_cannot_be_taken_is_refused_before_a_byte_is_kept(tmp_path, campaign):
    folder = tmp_path / "other"
    folder.mkdir()
    undrawn = make_undrawn(folder)
    with pytest.raises(UploadRefused, match="nothing is drawn"):
        queue_upload(campaign=undrawn, file=run_file())
    with pytest.raises(UploadRefused, match="no run 'nobody'"):
        queue_upload(campaign=campaign, file=run_file(), against="nobody")
    assert not Job.objects.filter(kind="run-upload").exists()


def test_the_upload_is_gone_when_the_run_is_there(campaign, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        job = queue_upload(campaign=campaign, file=run_file(), description="BM25", may_publish=True)
    path = job.payload["upload"]["path"]
    assert path.startswith(f"{FOLDER}/")
    with django_capture_on_commit_callbacks(execute=True):
        done(job)
    assert not default_storage.exists(path)
    run = campaign.collection.runs.get(run_id="mine")
    assert (run.description, run.may_publish, run.is_manual) == ("BM25", True, False)
    assert DEPTH * len(TOPICS) == run.n_lines
    assert DOCUMENTS == 14


# -- over HTTP ------------------------------------------------------------------------------------------------


@pytest.fixture
def client(db):
    made = Client()
    made.force_login(User.objects.create(username="rhea", role="researcher"))
    return made


def send(client, campaign, **fields):
    return client.post(f"/api/v1/campaigns/{campaign.pk}/runs", fields)


def estimate_of(client, campaign, status=200, **query):
    answer = client.get(f"/api/v1/campaigns/{campaign.pk}/run-estimate", query)
    assert answer.status_code == status, answer.content
    return answer.json()


def test_a_researcher_sends_a_run_and_reads_its_numbers(campaign, client):
    recompute(campaign=campaign)
    answer = send(client, campaign, file=run_file(), description="BM25", may_publish="true", against="run1")
    assert answer.status_code == 202
    job = done(Job.objects.get(pk=answer.json()["id"]))
    assert (job.state, answer["Location"]) == (Job.State.DONE, f"/api/v1/jobs/{job.pk}")
    assert job.requested_by.username == "rhea"
    told = estimate_of(client, campaign, run="mine", against="run1", measure="DCG@10")
    assert told["is_from_upload"] is True
    assert told["as_of"] == job.result["as_of"]
    assert {row["method"] for row in told["values"]} >= {"naive", "corrected", "true"}
    assert {row["run_b"] for row in told["differences"]} == {"run1"}
    assert campaign.collection.runs.get(run_id="mine").may_publish
    recompute(campaign=campaign)
    assert estimate_of(client, campaign, run="mine", measure="DCG@10")["is_from_upload"] is False


def test_what_is_no_run_upload_is_refused_with_the_fields_name(campaign, client):
    cases = [
        ({}, 400, "file"),
        ({"file": run_file(), "colour": "red"}, 400, "colour"),
        ({"file": run_file(), "may_publish": "perhaps"}, 400, "may_publish"),
        ({"file": ContentFile(b"", name="empty.run")}, 400, "file"),
    ]
    for fields, status, name in cases:
        answer = send(client, campaign, **fields)
        assert answer.status_code == status, answer.content
        assert name in answer.json()["errors"]
    unknown = send(client, campaign, file=run_file(), against="nobody")
    assert (unknown.status_code, unknown.json()["type"]) == (409, "/problems/UploadRefused")
    assert client.post(f"/api/v1/campaigns/{campaign.pk}/runs", "{}", "application/json").status_code == 415
    assert not Job.objects.filter(kind="run-upload").exists()


def test_an_upload_sent_twice_with_one_key_is_one_job(campaign, client):
    headers = {"HTTP_IDEMPOTENCY_KEY": "run-of-today"}
    path = f"/api/v1/campaigns/{campaign.pk}/runs"
    first = client.post(path, {"file": run_file()}, **headers)
    again = client.post(path, {"file": run_file()}, **headers)
    assert first.json()["id"] == again.json()["id"]
    other = client.post(path, {"file": run_file(tag="other")}, **headers)
    assert other.status_code == 409
    assert Job.objects.filter(kind="run-upload").count() == 1


def test_a_long_run_passes_and_its_sender_must_research(campaign, client):
    long = ContentFile(
        b"".join(b"t0 Q0 d%d %d %d long\n" % (n, n + 1, 5000 - n) for n in range(1000)), name="l.run"
    )
    assert long.size > 10_000
    assert send(client, campaign, file=long).status_code == 202
    long.seek(0)
    stranger = Client()
    stranger.force_login(User.objects.get(username="ann"))
    assert send(stranger, campaign, file=long).status_code == 404


def test_estimates_of_runs_that_there_are_not(campaign, client):
    estimate_of(client, campaign, status=404, run="nobody")
    estimate_of(client, campaign, status=404, run="run0", against="nobody")
    estimate_of(client, campaign, status=400)
    nothing = estimate_of(client, campaign, run="run0", measure="P@10")
    assert (nothing["as_of"], nothing["values"], nothing["verdict"]) == (None, [], "")


def test_a_run_that_a_person_took_part_in_making_is_marked(campaign):
    job = queue_upload(campaign=campaign, file=run_file(), is_manual=True)
    assert done(job).state == Job.State.DONE, job.error
    assert campaign.collection.runs.get(run_id="mine").is_manual
    assert not campaign.collection.runs.exclude(run_id="mine").filter(is_manual=True).exists()


def test_a_job_queued_before_runs_could_be_marked_still_imports(campaign):
    job = queue_upload(campaign=campaign, file=run_file())
    del job.payload["is_manual"]
    job.save()
    assert done(job).state == Job.State.DONE, job.error
    assert not campaign.collection.runs.get(run_id="mine").is_manual


def test_over_the_api_too(campaign):
    client = Client()
    client.force_login(User.objects.create(username="rita", role="researcher"))
    sent = {"file": run_file(), "is_manual": "true"}
    answer = client.post(f"/api/v1/campaigns/{campaign.pk}/runs", sent)
    assert answer.status_code == 202, answer.content
    done(Job.objects.get(kind="run-upload"))
    assert campaign.collection.runs.get(run_id="mine").is_manual
