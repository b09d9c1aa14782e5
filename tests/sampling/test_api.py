"""Designs and draws for API clients: who may ask, what is refused by name, and a draw from request to frame."""

import hashlib
import io
import json
import uuid
from pathlib import Path

import polars as pl
import pytest
from django.test import Client
from quick_flush import unguarded
from small_campaign import DEPTH, N_FRAME, RUNS, make_collection, make_undrawn, without
from small_campaign import make_campaign as make_drawn_campaign

import sampling.tasks  # noqa: F401 (registers the jobs)
from judging.models import Campaign, Collection
from judging.services.campaigns import DEFAULT_GRADES, create_campaign
from judging.services.scores import import_scores
from sampling.models import Draw
from sampling.questions import Design
from sampling.services.forecasting import preview
from touchstone import jobs
from touchstone.authentication import make_token
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db(transaction=True)

PAIR = {"question": "pair", "runs": ["run0", "run2"], "measure": "DCG@10", "depth": DEPTH, "budget": 20}


@pytest.fixture
def campaign(tmp_path):
    return create_campaign(
        collection=make_collection(tmp_path, gold=False),
        name=f"campaign {uuid.uuid4()}",
        user=None,
        grades=DEFAULT_GRADES,
        gold_check_rate=0.0,
    )


def user(role):
    return User.objects.get_or_create(username=role, defaults={"role": role})[0]


class ApiClient:
    """An API client with this person's key and no cookies."""

    def __init__(self, person, campaign):
        _, key = make_token(user=person, name=str(uuid.uuid4()), days=1)
        self.base = f"/api/v1/campaigns/{campaign.pk}"
        self.client = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})

    def get(self, path, **headers):
        return self.client.get(self.base + path, headers=headers)

    def post(self, path, body):
        text = body if isinstance(body, str) else json.dumps(body)
        return self.client.post(self.base + path, text, content_type="application/json")


@pytest.fixture
def api_client(campaign):
    return ApiClient(user("manager"), campaign)


def problem(answer):
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    return body["type"].rpartition("/")[2]


def faults(answer):
    """Return field -> first fault of a request that was not valid."""
    assert (answer.status_code, problem(answer)) == (400, "Invalid")
    return {name: first_of(found) for name, found in json.loads(answer.json()["detail"]).items()}


def first_of(found):
    while not isinstance(found, str):
        found = next(iter(found.values())) if isinstance(found, dict) else found[0]
    return found


# -- who ------------------------------------------------------------------------------------------------------

REQUESTS = [
    ("post", "/forecast"),
    ("get", "/draws"),
    ("post", "/draws"),
    ("get", "/draws/1/frame"),
    ("get", "/draws/jobs/00000000-0000-4000-8000-000000000000"),
]


def ask(api_client, method, path):
    return api_client.get(path) if method == "get" else api_client.post(path, PAIR)


@pytest.mark.parametrize(("method", "path"), REQUESTS)
@pytest.mark.parametrize("role", ["assessor", "researcher"])
def test_to_anybody_but_a_manager_nothing_of_it_exists(campaign, method, path, role):
    answer = ask(ApiClient(user(role), campaign), method, path)
    assert (answer.status_code, problem(answer)) == (404, "NotFound")
    assert not Job.objects.exists()


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_nobody_without_a_valid_key_gets_in(campaign, method, path):
    stranger = ApiClient(user("manager"), campaign)
    stranger.client = Client(headers={"Authorization": "Bearer touchstone_wrong"})
    assert ask(stranger, method, path).status_code == 401
    stranger.client = Client()
    assert ask(stranger, method, path).status_code in (401, 403)
    assert not Job.objects.exists()


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_a_campaign_that_is_not_there_is_a_404_to_managers_too(api_client, method, path):
    api_client.base = f"/api/v1/campaigns/{uuid.uuid4()}"
    answer = ask(api_client, method, path)
    assert (answer.status_code, problem(answer)) == (404, "NotFound")


def test_a_session_needs_the_csrf_token_of_its_page(campaign):
    client = Client(enforce_csrf_checks=True)
    client.force_login(user("manager"))
    url = f"/api/v1/campaigns/{campaign.pk}/draws"
    assert client.post(url, PAIR, content_type="application/json").status_code == 403
    assert client.get(url).status_code == 200
    lenient = Client()
    lenient.force_login(user("manager"))
    assert lenient.post(url, PAIR, content_type="application/json").status_code == 202


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"question": "best"}, "question", "not a valid choice"),
        ({"question": None}, "question", "may not be null"),
        ({"runs": ["run0", "nobody"]}, "runs", "no run 'nobody'"),
        ({"runs": ["run0", "run0"]}, "runs", "named twice"),
        ({"runs": ["run0"]}, "runs", "takes 2 run(s), got 1"),
        ({"runs": "run0"}, "runs", "Expected a list"),
        ({"runs": [["run0"]]}, "runs", "must be text"),
        ({"runs": [str(n) for n in range(1001)]}, "runs", "no more than 1000"),
        ({"runs": ["\ud800", "run0"]}, "runs", "half a character"),
        ({"scores": "\udc00"}, "scores", "half a character"),
        ({"scores": "a\0b"}, "scores", "Null characters"),
        ({"scores": "llama"}, "scores", "no scores named 'llama'"),
        ({"measure": "ERR@10"}, "measure", "or draw a sample of whole topics"),
        ({"measure": "P@10" + "0" * 50}, "measure", "no more than 40"),
        ({"measure": "P(rel=9)@5"}, "measure", "relevant grade must be within"),
        ({"measure": "DCG@20"}, "depth", "must be at least 20, the cutoff of DCG@20"),
        ({"depth": 0}, "depth", "greater than or equal to 1"),
        ({"depth": True}, "depth", "valid integer"),
        ({"budget": -5}, "budget", "greater than or equal to 1"),
        ({"budget": 1.5}, "budget", "valid integer"),
        ({"budget": 10**9}, "budget", "less than or equal to"),
        ({"budget": "many"}, "budget", "valid integer"),
        ({"method": "best"}, "method", "not a valid choice"),
        ({"selection": "random"}, "selection", "not a valid choice"),
        ({"selection": "replacement"}, "design", "without replacement"),
        ({"prior": "oracle"}, "prior", "not a valid choice"),
        ({"learning": "never"}, "learning", "not a valid choice"),
        ({"prior": "scores"}, "design", "name the imported scores"),
        ({"uniform_share": "nan"}, "uniform_share", "must be a number"),
        ({"uniform_share": True}, "uniform_share", "must be a number"),
        ({"uniform_share": -0.1}, "uniform_share", "greater than or equal to 0"),
        ({"uniform_share": 0.5, "other_runs_share": 0.5}, "design", "sum to less than 1"),
        ({"sensitivity": 0.2, "specificity": 0.3}, "design", "above 1"),
        ({"budgets": 5}, "budgets", "there is no such field"),
        ({"seed": -1}, "seed", "greater than or equal to 0"),
        ({"seed": 2**63}, "seed", "less than or equal to"),
    ],
)
def test_every_field_is_checked_and_its_fault_named(api_client, change, field, words):
    assert words in faults(api_client.post("/draws", {**PAIR, **change}))[field]
    assert not Job.objects.exists()


@pytest.mark.parametrize("name", ["question", "measure", "depth", "budget"])
def test_what_is_missing_is_named(api_client, name):
    body = {key: value for key, value in PAIR.items() if key != name}
    assert faults(api_client.post("/forecast", body)) == {name: "This field is required."}


@pytest.mark.parametrize(
    "text",
    ["", "[]", '"pair"', "{", json.dumps(PAIR)[:-1] + ', "uniform_share": NaN}', "[" * 9000, "\xff"],
)
def test_a_body_that_is_no_object_is_refused(api_client, text):
    answer = api_client.post("/draws", text)
    assert answer.status_code == 400
    assert problem(answer) in ("Invalid", "ParseError")


def test_infinity_written_as_a_number_is_refused(api_client):
    text = json.dumps(PAIR)[:-1] + ', "uniform_share": 1e999}'
    assert "valid number" in faults(api_client.post("/draws", text))["uniform_share"]


def test_the_seed_belongs_to_draws_alone(api_client):
    assert faults(api_client.post("/forecast", {**PAIR, "seed": 1})) == {"seed": "there is no such field"}


def test_a_design_that_cannot_be_carried_out_says_why(api_client, campaign):
    without(campaign.collection.runs.all())
    answer = api_client.post("/forecast", {**PAIR, "question": "pool", "runs": []})
    assert faults(answer) == {"runs": "the question 'pool' takes at least 1 run(s), got 0"}
    empty = create_campaign(
        collection=Collection.objects.create(name="empty"), name="e", user=None, grades=DEFAULT_GRADES
    )
    assert "no run 'run0'" in faults(ApiClient(user("manager"), empty).post("/forecast", PAIR))["runs"]


def test_documents_that_are_missing_refuse_a_forecast_as_a_conflict(api_client, campaign):
    with unguarded(["judging_document"]):
        campaign.collection.documents.filter(doc_id="t0d00").delete()
    answer = api_client.post("/forecast", PAIR)
    assert (answer.status_code, problem(answer)) == (409, "DesignRefused")
    assert "not in the collection, for example 't0d00'" in answer.json()["detail"]


# -- forecast -------------------------------------------------------------------------------------------------


def test_a_forecast_says_what_the_page_says_and_changes_nothing(api_client, campaign):
    answer = api_client.post("/forecast", PAIR)
    assert answer.status_code == 200
    said = answer.json()
    expected = preview(campaign=campaign, design=Design(**{**PAIR, "runs": ("run0", "run2")}))
    assert said["n_frame"] == N_FRAME == expected.n_frame
    assert said["budgets"] == expected.budgets
    assert said["widths"] == expected.widths
    assert said["mixture"] == expected.mixture
    assert said["mixture"]["n_runs"] == 3
    assert said["design"] == Design(**{**PAIR, "runs": ("run0", "run2")}).parameters()
    assert not Job.objects.exists()
    assert not Draw.objects.exists()


# -- a draw ---------------------------------------------------------------------------------------------------


def run(answer):
    jobs.run(answer.json()["job"])
    return Job.objects.get(pk=answer.json()["job"])


def test_a_draw_goes_from_the_request_to_the_frame(api_client, campaign):
    queued = api_client.post("/draws", {**PAIR, "seed": 20})
    assert queued.status_code == 202
    assert queued["Location"] == queued.json()["url"]
    assert queued.json()["state"] == "queued"
    job = run(queued)
    assert (job.state, job.error, job.requested_by) == ("done", "", user("manager"))
    polled = api_client.client.get(queued.json()["url"]).json()
    assert (polled["state"], polled["percent"], polled["result"]["batch"]) == ("done", 100, 1)

    listed = api_client.get("/draws").json()
    assert listed["campaign"] == str(campaign.pk)
    (batch,) = listed["draws"]
    made = campaign.draws.get()
    assert batch["design"] == Design(**{**PAIR, "runs": ("run0", "run2")}).parameters()
    assert (batch["batch"], batch["seed"], batch["n_frame"], batch["drawn_by"]) == (1, 20, N_FRAME, "manager")
    assert (batch["topics"], batch["pooled"]) == (["t0", "t1", "t2"], RUNS)
    assert (batch["is_laid_out"], batch["n_topics_missing"]) == (True, 0)
    assert campaign.items.count() == batch["n_drawn"] == made.n_drawn

    answer = api_client.client.get(batch["frame"])
    content = b"".join(answer.streaming_content)
    answer.close()
    assert hashlib.sha256(content).hexdigest() == batch["frame_sha256"]
    assert answer["ETag"] == f'"{batch["frame_sha256"]}"'
    assert answer["Content-Type"] == "application/vnd.apache.parquet"
    frame = pl.read_parquet(io.BytesIO(content))
    assert frame.height == N_FRAME
    assert frame.filter(pl.col("drawn_in") == 1).height == batch["n_drawn"]


def test_the_design_of_a_draw_with_checks_can_be_posted_again(tmp_path):
    campaign = make_undrawn(tmp_path, gold_check_rate=0.25)
    api_client = ApiClient(user("manager"), campaign)
    assert run(api_client.post("/draws", PAIR)).state == "done"
    (batch,) = api_client.get("/draws").json()["draws"]
    assert batch["check_grades"] == campaign.draws.get().parameters["check_grades"]
    assert set(batch["design"]) == set(Design(**{**PAIR, "runs": ("run0", "run2")}).parameters())
    again = batch["design"] | {"budget": 30}
    forecast = api_client.post("/forecast", again)
    assert forecast.status_code == 200, forecast.content
    assert run(api_client.post("/draws", again)).state == "done"
    assert campaign.draws.count() == 2


def test_a_frame_that_is_known_already_is_not_sent_again(tmp_path):
    campaign = make_drawn_campaign(tmp_path, budget=20)
    api_client = ApiClient(user("manager"), campaign)
    etag = f'"{campaign.draws.get().frame_sha256}"'
    again = api_client.get("/draws/1/frame", **{"If-None-Match": f'"other", {etag}'})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
    changed = api_client.get("/draws/1/frame", **{"If-None-Match": '"other"'})
    assert changed.status_code == 200
    changed.close()
    head = api_client.client.head(f"{api_client.base}/draws/1/frame")
    assert (head.status_code, head["ETag"]) == (200, etag)
    head.close()


@pytest.mark.parametrize("batch", ["0", "2", "99999999999999999999"])
def test_a_batch_that_was_not_drawn_has_no_frame(tmp_path, batch):
    api_client = ApiClient(user("manager"), make_drawn_campaign(tmp_path, budget=20))
    assert api_client.get(f"/draws/{batch}/frame").status_code == 404


@pytest.mark.parametrize("harm", ["changed", "gone"])
def test_a_damaged_frame_is_not_sent_as_if_it_were_the_one(tmp_path, harm):
    campaign = make_drawn_campaign(tmp_path, budget=20)
    path = Path(campaign.draws.get().frame.path)
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b" ")
    api_client = ApiClient(user("manager"), campaign)
    for asked in ("/draws/1/frame", "/draws"):
        answer = api_client.get(asked)
        assert (answer.status_code, problem(answer)) == (409, "FrameDamaged")


# -- twice ----------------------------------------------------------------------------------------------------


def test_a_repeated_request_finds_the_job_that_waits_and_the_one_that_is_done(api_client, campaign):
    first, second = api_client.post("/draws", PAIR), api_client.post("/draws", PAIR)
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["job"] == second.json()["job"]
    run(first)
    third = api_client.post("/draws", PAIR)
    assert third.status_code == 200
    assert (third.json()["job"], third.json()["state"]) == (first.json()["job"], "done")
    assert (Job.objects.count(), campaign.draws.count()) == (1, 1)


@pytest.mark.parametrize("change", [{"budget": 21}, {"seed": 3}, {"uniform_share": 0.06}])
def test_another_draw_beside_a_running_one_is_refused_with_its_job(api_client, change):
    first = api_client.post("/draws", PAIR)
    answer = api_client.post("/draws", {**PAIR, **change})
    assert (answer.status_code, problem(answer)) == (409, "DrawRunning")
    assert first.json()["job"] in answer.json()["detail"]
    assert Job.objects.count() == 1


def test_a_failed_draw_can_be_asked_for_again(api_client, campaign):
    document = campaign.collection.documents.get(doc_id="t0d00")
    with unguarded(["judging_document"]):
        document.delete()
    first = api_client.post("/draws", PAIR)
    job = run(first)
    assert job.state == "failed"
    polled = api_client.client.get(first.json()["url"]).json()
    assert "not in the collection" in polled["error"]
    document.save()
    second = api_client.post("/draws", PAIR)
    assert (second.status_code, second.json()["job"] != first.json()["job"]) == (202, True)
    assert run(second).state == "done"


def test_a_top_up_is_another_design_and_keeps_what_was_drawn(api_client, campaign):
    run(api_client.post("/draws", {**PAIR, "seed": 5}))
    job = run(api_client.post("/draws", {**PAIR, "budget": 36}))
    assert (job.state, job.result["batch"]) == ("done", 2)
    first, second = api_client.get("/draws").json()["draws"]
    assert (first["seed"], second["seed"], second["batch"]) == (5, 5, 2)
    assert campaign.items.count() == first["n_drawn"] + second["n_drawn"]
    assert first["is_laid_out"]
    assert second["is_laid_out"]


def test_the_job_of_another_campaign_or_another_kind_is_not_there(api_client, tmp_path):
    (tmp_path / "other").mkdir()
    other = make_drawn_campaign(tmp_path / "other", budget=20)
    theirs = jobs.enqueue(kind="draw", payload={"campaign": str(other.pk), "design": {}})
    import_job = jobs.enqueue(kind="import", payload={"campaign": api_client.base.rpartition("/")[2]})
    for job in (theirs, import_job):
        assert api_client.get(f"/draws/jobs/{job.pk}").status_code == 404


def test_imported_scores_can_be_drawn_by(api_client, campaign):
    lines = "".join(f"t{t}\tt{t}d{d:02d}\t{d / 20}\n" for t in range(3) for d in range(14))
    import_scores(
        collection=campaign.collection, source=io.BytesIO(lines.encode()), name="f", list_name="llama"
    )
    job = run(api_client.post("/draws", {**PAIR, "prior": "scores", "scores": "llama"}))
    assert (job.state, job.error) == ("done", "")
    assert Campaign.objects.get(pk=campaign.pk).draws.get().parameters["scores"] == "llama"
