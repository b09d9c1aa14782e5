"""Audits for API clients and from a terminal: permissions, named refusals, and a sample to draw again."""

import csv
import io
import json
import uuid

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from small_campaign import give, judge_all, make_assessor, make_campaign, slots, truth_of

import sampling.tasks  # noqa: F401 (registers the jobs)
from sampling.draws import permanent_random_numbers
from sampling.models import Audit, AuditSchedule
from sampling.services import audit_samples
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.authentication import make_token
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def campaign(tmp_path):
    made = make_campaign(tmp_path, kind="pair")
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")])
    return made


class ApiClient:
    def __init__(self, role, campaign):
        person, _ = User.objects.get_or_create(username=role, defaults={"role": role})
        _, key = make_token(user=person, name=str(uuid.uuid4()), days=1)
        self.base = f"/api/v1/campaigns/{campaign.pk}"
        self.client = Client(headers={"Authorization": f"Bearer {key}"})

    def get(self, path):
        return self.client.get(self.base + path)

    def send(self, method, path, body):
        return getattr(self.client, method)(
            self.base + path, json.dumps(body), content_type="application/json"
        )


@pytest.fixture
def manager(campaign):
    return ApiClient("manager", campaign)


def text_of(response):
    return b"".join(response.streaming_content).decode()


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_an_audit_is_queued_made_and_listed(manager, campaign):
    asked = {"items": 9, "strategy": "effort", "tier": "silver", "seed": 77}
    answer = manager.send("post", "/audits", asked)
    assert answer.status_code == 202
    assert manager.send("post", "/audits", asked).status_code == 409  # one at a time
    jobs.run(answer.json()["job"])
    assert manager.get(f"/draws/jobs/{answer.json()['job']}").json()["result"]["sequence"] == 1
    (found,) = manager.get("/audits").json()["audits"]
    assert (found["strategy"], found["tier"], found["seed"], found["expected_in_total"]) == (
        "effort",
        "silver",
        77,
        9,
    )
    assert found["n_eligible"] == 42
    assert found["n_selected"] == campaign.slots.filter(purpose="silver").count()


def test_the_sample_can_be_drawn_again_by_whoever_has_the_file(manager, campaign, monkeypatch):
    monkeypatch.setattr(audit_samples, "AT_ONCE", 10)  # more parts than one
    made = audit(campaign=campaign, items_each_time=15, items_in_total=42, strategy="topic", seed=5)
    answer = manager.get("/audits/1/sample.csv")
    assert answer["Content-Disposition"] == 'attachment; filename="audit-1-gold-topic.csv"'
    rows = rows_of(text_of(answer))
    assert len(rows) == 42
    numbers = permanent_random_numbers(
        [row["topic"] for row in rows], [row["document"] for row in rows], made.seed
    )
    assert [float(row["random_number"]) for row in rows] == numbers.tolist()
    assert {row["seed"] for row in rows} == {"5"}
    for row, number in zip(rows, numbers, strict=True):
        assert (row["selected"] == "1") == (number < float(row["inclusion_probability"]))
        assert int(row["bronze_grade"]) == (int(row["document"][-2:]) + int(row["topic"][1:])) % 4
    assert sum(row["selected"] == "1" for row in rows) == made.n_selected
    assert sum(float(row["inclusion_probability"]) for row in rows) == pytest.approx(15)


def test_a_sample_says_nothing_of_the_audit_s_own_grades(manager, campaign):
    audit(campaign=campaign, items_each_time=15, items_in_total=42, seed=5)
    before = text_of(manager.get("/audits/1/sample.csv"))
    gold = make_assessor(campaign, "greta", tier="gold")
    for slot in slots(campaign, "audit"):
        give(gold, slot, 3 - truth_of(slot))
    assert text_of(manager.get("/audits/1/sample.csv")) == before


def test_the_number_of_queries_does_not_grow_with_the_audit_but_by_part(
    manager, campaign, django_assert_num_queries
):
    made = audit(campaign=campaign, items_each_time=15, items_in_total=42, seed=5)
    with django_assert_num_queries(2):  # the entries, and the grades of one part
        list(audit_samples.sample_lines(made))


def test_a_census_is_asked_for_without_a_size(manager, campaign):
    asked = {"strategy": "census", "run": "run0", "against": "run1", "measure": "DCG@10"}
    for wrong, field in (
        ({"run": ""}, "run"),
        ({"strategy": "simple"}, "items"),
        ({"items": 5}, "leave its size out"),
        ({"against": "nobody"}, "no run"),
    ):
        answer = manager.send("post", "/audits", asked | wrong)
        assert answer.status_code == 400
        assert field in answer.content.decode()
    assert not Job.objects.filter(kind="audit").exists()
    answer = manager.send("post", "/audits", asked)
    assert answer.status_code == 202
    jobs.run(answer.json()["job"])
    (found,) = manager.get("/audits").json()["audits"]
    assert [found[name] for name in ("strategy", "run", "against")] == ["census", "run0", "run1"]


def test_the_schedule_is_read_and_changed(manager, campaign):
    assert manager.get("/audits/schedule").json() == {"schedule": None}
    answer = manager.send("patch", "/audits/schedule", {"crontab": "30 2 * * mon,thu", "strategy": "neyman"})
    found = answer.json()["schedule"]
    assert found["words"] == "every Monday and Thursday at 02:30 UTC"
    assert found["next_due"].endswith("T02:30:00+00:00")
    answer = manager.send("patch", "/audits/schedule", {"is_active": False})
    found = answer.json()["schedule"]
    assert (found["crontab"], found["strategy"], found["next_due"]) == ("30 2 * * mon,thu", "neyman", None)
    assert AuditSchedule.objects.get(campaign=campaign).is_active is False


def test_looks_are_declared_recorded_and_then_fixed(manager, campaign):
    answer = manager.send("patch", "/audits/schedule", {"n_looks": 5, "items_in_total": 40})
    assert answer.json()["schedule"]["n_looks"] == 5
    audit(campaign=campaign, items_each_time=15, items_in_total=15, seed=5)
    (found,) = manager.get("/audits").json()["audits"]
    assert [found[name] for name in ("look", "n_looks", "n_planned")] == [1, 5, 40]
    refused = manager.send("patch", "/audits/schedule", {"n_looks": None})
    assert refused.status_code == 409
    assert refused.json()["title"] == "The declared looks can no longer be changed"
    unfit = manager.send("patch", "/audits/schedule", {"tier": "silver"})
    assert (unfit.status_code, unfit.json()["title"]) == (400, "Declared looks are audits of the gold tier")
    assert AuditSchedule.objects.get(campaign=campaign).n_looks == 5


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("post", "/audits", {}, "items"),
        ("post", "/audits", {"items": 0}, "items"),
        ("post", "/audits", {"items": "all"}, "items"),
        ("post", "/audits", {"items": 5, "strategy": "best"}, "strategy"),
        ("post", "/audits", {"items": 5, "tier": "bronze"}, "tier"),
        ("post", "/audits", {"items": 5, "seed": -1}, "seed"),
        ("post", "/audits", {"items": 5, "seed": 2**63}, "seed"),
        ("post", "/audits", {"items": 5, "iterms": 6}, "iterms"),
        ("patch", "/audits/schedule", {"crontab": "61 * * * *"}, "crontab"),
        ("patch", "/audits/schedule", {"crontab": "* " * 60}, "crontab"),
        ("patch", "/audits/schedule", {"crontab": "0 0 1 * mon"}, "crontab"),
        ("patch", "/audits/schedule", {"every_seconds": 0}, "every_seconds"),
        ("patch", "/audits/schedule", {"every_seconds": 10**12}, "every_seconds"),
        ("patch", "/audits/schedule", {"starts_at": "2020-01-01"}, "starts_at"),
        ("patch", "/audits/schedule", {"n_looks": 1}, "n_looks"),
        ("patch", "/audits/schedule", {"n_looks": 51}, "n_looks"),
        ("patch", "/audits/schedule", {"n_looks": 2.5}, "n_looks"),
    ],
)
def test_what_cannot_be_is_refused_beside_its_field(manager, campaign, method, path, body, field):
    answer = manager.send(method, path, body)
    assert answer.status_code == 400
    assert field in json.dumps(answer.json())
    assert not Job.objects.filter(kind="audit").exists()
    assert not AuditSchedule.objects.filter(campaign=campaign).exists()


def test_only_managers_have_audits_and_strangers_are_told_nothing(campaign):
    audit(campaign=campaign, items_each_time=5, items_in_total=42, seed=5)
    paths = ("/audits", "/audits/schedule", "/audits/1/sample.csv")
    for role in ("assessor", "researcher"):
        api_client = ApiClient(role, campaign)
        assert {api_client.get(path).status_code for path in paths} == {404}
        assert api_client.send("post", "/audits", {"items": 3}).status_code == 404
        assert api_client.send("patch", "/audits/schedule", {"is_active": False}).status_code == 404
    stranger = Client()
    assert {stranger.get(f"/api/v1/campaigns/{campaign.pk}{path}").status_code for path in paths} <= {
        401,
        403,
    }
    assert ApiClient("manager", campaign).get("/audits/2/sample.csv").status_code == 404


# -- in a terminal --------------------------------------------------------------------------------------------


@pytest.fixture
def said(capsys):
    def run(*arguments):
        call_command("audit", *map(str, arguments))
        return capsys.readouterr().out

    return run


def test_the_command_audits_by_name_or_id_and_says_what_it_did(said, campaign):
    words = said(campaign.name, "--items", 9, "--strategy", "rare", "--seed", 77)
    made = Audit.objects.get(campaign=campaign)
    assert f"audit 1 of {campaign.name}: {made.n_selected} of 42 judged items are with the gold tier" in words
    assert "strategy rare for DCG@10, 9.0 expected in all its audits, seed 77" in words
    found = json.loads(said(campaign.pk, "--items", 4, "--tier", "silver", "--output", "json"))["audit"]
    assert (found["sequence"], found["tier"], found["expected_in_total"]) == (2, "silver", 4)
    assert json.loads(said(campaign.pk, "--items", 4, "--total", 9, "--output", "json")) == {"audit": None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--items", 0], "--items must be at least 1, got 0"),
        (["--items", -3], "--items must be at least 1"),
        (["--items", 5, "--total", 0], "--total must be at least 1"),
        (["--items", 5, "--seed", 20], "must differ from the draw's, got 20"),
        (["--items", 5, "--strategy", "best"], "invalid choice: 'best'"),
        (["--items", 5, "--tier", "bronze"], "invalid choice: 'bronze'"),
        (["--items", "many"], "invalid int value"),
        ([], "--items"),
    ],
)
def test_the_command_has_one_clear_error(said, campaign, arguments, message):
    with pytest.raises(CommandError, match=message):
        said(campaign.pk, *arguments)
    assert not campaign.audits.exists()


def test_the_command_refuses_a_campaign_that_is_not_there_or_has_no_draw(said, campaign):
    with pytest.raises(CommandError, match="there is no campaign 'nothing'"):
        said("nothing", "--items", 5)
    campaign.name = "undrawn"
    campaign.pk = uuid.uuid4()
    campaign.entry_key = uuid.uuid4()
    campaign.save(force_insert=True)
    with pytest.raises(CommandError, match="has no draw: nothing can be audited"):
        said("undrawn", "--items", 5)
