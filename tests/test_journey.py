"""The story of the product, on real servers with a real worker: from files to a comparison one can quote.

Mara manages, Rhea researches, Bob and Dora judge, Greta is the expert, Charlie must see nothing.
"""

import random
import signal
import subprocess
import sys
import time
import uuid

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from analytics.models import Estimate, Method
from analytics.services.recomputation import latest_computation, start_due_recomputations
from judging.models import Campaign, Collection, GoldAnswer, Judgment, Slot
from touchstone.models import Job, User

TOPICS, DOCUMENTS = 12, 20
RNG = random.Random(7)


def truth(topic: int, document: int) -> int:
    """Grade 2 for the first three documents of a topic, 1 for the next four, 0 for the rest."""
    return 2 if document < 3 else 1 if document < 7 else 0


TOPICS_FILE = "".join(f"t{t}\tneed number {t}\n" for t in range(TOPICS))
DOCUMENTS_FILE = "".join(
    f'{{"_id": "t{t}-d{d}", "title": "Document {d}", "text": "Text {d} about need number {t}"}}\n'
    for t in range(TOPICS)
    for d in range(DOCUMENTS)
)
GOLD_FILE = "".join(f"t{t} 0 t{t}-d{d} {truth(t, d)}\n" for t in range(TOPICS) for d in range(DOCUMENTS))


def run_file(tag: str, disorder: float) -> str:
    """A system's run: the true order, disturbed; the more disorder the worse the system."""
    lines = []
    for t in range(TOPICS):
        order = sorted(range(DOCUMENTS), key=lambda d: d + RNG.gauss(0, disorder))
        lines += [f"t{t} Q0 t{t}-d{d} {rank} {100 - rank} {tag}\n" for rank, d in enumerate(order, start=1)]
    return "".join(lines)


@pytest.fixture
def worker(child_environment):
    """A real Celery worker; what it is told to do by `.delay()` it does, in another process."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "touchstone",
            "worker",
            "--concurrency",
            "1",
            "--loglevel",
            "warning",
        ],
        env={**child_environment, "TOUCHSTONE_ROLE": "worker"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    yield process
    process.send_signal(signal.SIGTERM)
    process.wait(30)


def person(name: str, role: str) -> Client:
    user = User.objects.create(username=name, role=role)
    client = Client()
    client.force_login(user)
    return client


def finish(job: Job) -> Job:
    """Wait until the worker has done the job."""
    deadline = time.monotonic() + 60
    while job.is_active and time.monotonic() < deadline:
        time.sleep(0.1)
        job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error or job.state
    return job


def upload(mara: Client, collection: Collection, kind: str, *files: tuple[str, str]) -> Job:
    page = reverse("judging:manage-collection", args=[collection.pk])
    sent = [SimpleUploadedFile(name, content.encode()) for name, content in files]
    answer = mara.post(page, {"kind": kind, "files": sent, "source_name": "the author"})
    assert answer.status_code == 302
    return finish(Job.objects.order_by("-created_at").first())


def judge_everything(client: Client, campaign: Campaign, error_rate: float) -> int:
    """Judge until there is no more work, as the judging screen does: claim once, then one request a judgment."""
    rng = random.Random(error_rate)
    items = client.post(reverse("judging:claim", args=[campaign.pk]), {}, "application/json").json()["items"]
    n_judged = 0
    while items:
        item = items[0]
        token, title = item["token"], item["document"]["title"]
        topic = int(item["topic"]["title"].split()[-1])
        grade = truth(topic, int(title.split()[-1]))
        if rng.random() < error_rate:
            grade = rng.choice([0, 1, 2])
        body = {
            "client_token": str(uuid.uuid4()),
            "token": token,
            "grade": grade,
            "active_milliseconds": 4000,
        }
        answer = client.post(reverse("judging:submit", args=[campaign.pk]), body, "application/json")
        assert answer.status_code == 200
        assert answer.json()["saved"] == {"token": token, "grade": grade, "obstacle": ""}
        n_judged += 1
        items = answer.json()["items"]
    return n_judged


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_from_files_to_a_comparison_one_can_quote(worker):
    mara, rhea = person("mara", "manager"), person("rhea", "researcher")
    bob, dora, greta, charlie = (person(name, "assessor") for name in ("bob", "dora", "greta", "charlie"))

    # 1. Mara uploads what the field's tools write. The worker imports it.
    mara.post(reverse("judging:manage-collection-new"), {"name": "Needs", "description": ""})
    collection = Collection.objects.get(name="Needs")
    upload(mara, collection, "topics", ("topics.tsv", TOPICS_FILE))
    upload(mara, collection, "documents", ("corpus.jsonl", DOCUMENTS_FILE))
    runs = [
        ("good.run", run_file("good", 3)),
        ("fair.run", run_file("fair", 8)),
        ("poor.run", run_file("poor", 30)),
    ]
    upload(mara, collection, "runs", *runs)
    upload(mara, collection, "judgments", ("gold.qrels", GOLD_FILE))
    assert (collection.topics.count(), collection.documents.count()) == (TOPICS, TOPICS * DOCUMENTS)
    assert GoldAnswer.objects.count() == TOPICS * DOCUMENTS

    # 2. She sets a campaign up: three grades, two judgments an item, a tenth of unannounced gold checks.
    mara.post(
        reverse("judging:manage-campaign-new"),
        {
            "collection": collection.pk,
            "name": "First",
            "guidelines": "Grade **what it offers**.",
            "grades": "0 | Not relevant | 0\n1 | Relevant | 1\n2 | Highly relevant | 2",
            "relevant_grade": 1,
            "judgments_per_item": 2,
            "lease_seconds": 600,
            "gold_check_rate": 0.1,
            "gold_check_exposures": 20,
            "decoys_per_check": 1,
            "highlights_terms": "on",
            "break_minutes": 45,
        },
    )
    campaign = Campaign.objects.get(name="First")

    # 3. Before a judgment is spent, she sees what a budget buys; 4. then she draws.
    asked = {
        "question": "pair",
        "run_a": "good",
        "run_b": "poor",
        "measure": "DCG@10",
        "depth": 20,
        "budget": 150,
    }
    design = reverse("analytics:design", args=[campaign.pk])
    assert "half-width" in mara.get(design, asked).content.decode()
    mara.post(design, asked)
    finish(Job.objects.get(kind="draw"))
    campaign.refresh_from_db()
    assert 110 < campaign.draws.get().n_drawn < 190
    assert campaign.draws.get().entries.count() == campaign.draws.get().n_drawn
    for name, tier in (("bob", "bronze"), ("dora", "bronze"), ("greta", "gold")):
        mara.post(
            reverse("judging:manage-assessor-add", args=[campaign.pk]), {"username": name, "tier": tier}
        )
    mara.post(reverse("judging:manage-campaign-state", args=[campaign.pk]), {"state": "open"})

    # 5. Bob and Dora judge everything; Bob is careless. Charlie is told that there is no such campaign.
    assert (
        charlie.post(reverse("judging:claim", args=[campaign.pk]), {}, "application/json").status_code == 404
    )
    n_judged = judge_everything(bob, campaign, 0.4) + judge_everything(dora, campaign, 0.1)
    assert n_judged >= 2 * campaign.draws.get().n_drawn
    # Mara wants a shorter interval: a second batch keeps what is judged and learns from it what to judge next.
    mara.post(design, {**asked, "budget": 190, "prior": "judgments"})
    finish(Job.objects.filter(kind="draw").latest("created_at"))
    first, second = campaign.draws.all()
    assert (second.batch, second.learned_from, second.seed) == (2, 1, first.seed)
    assert 10 < second.n_drawn < 80
    n_drawn = first.n_drawn + second.n_drawn
    kept = first.entries.filter(times__gte=1).values("item")
    assert second.entries.filter(item__in=kept, times__gte=1).count() == first.n_drawn
    assert (
        first.entries.count() == second.entries.count() == n_drawn
    )  # every batch's probability at every item
    n_judged += judge_everything(bob, campaign, 0.4) + judge_everything(dora, campaign, 0.1)
    assert n_judged >= 2 * n_drawn
    assert not Slot.objects.filter(campaign=campaign, purpose="judge").exclude(state="done").exists()

    # 6. A random audit of what they judged goes to Greta, who sees no earlier grade.
    mara.post(
        reverse("analytics:audits", args=[campaign.pk]),
        {"items_each_time": 60, "items_in_total": 60, "every_seconds": 86400, "is_active": "on", "now": "1"},
    )
    finish(Job.objects.get(kind="audit"))
    audit = campaign.audits.get()
    assert judge_everything(greta, campaign, 0.0) == audit.n_selected

    # 7. The worker recomputes every number and every judge's confusion matrix.
    start_due_recomputations()
    finish(Job.objects.get(kind="estimate"))
    computation = latest_computation(campaign=campaign)
    assert computation.last_judgment_id == Judgment.objects.order_by("-id").first().pk
    accuracy = {c.assessor.user.username: c.accuracy for c in computation.confusions.filter(scope="assessor")}
    assert accuracy["bob"] < accuracy["dora"]

    # 8. Mara sees who is careless and pauses him; nothing is deleted.
    page = mara.get(reverse("analytics:assessors", args=[campaign.pk])).content.decode()
    assert "bob" in page
    before = Judgment.objects.count()
    careless = campaign.assessors.get(user__username="bob")
    mara.post(
        reverse("judging:manage-assessor-status", args=[campaign.pk, careless.pk]), {"status": "suspended"}
    )
    assert bob.post(reverse("judging:claim", args=[campaign.pk]), {}, "application/json").status_code == 403
    assert Judgment.objects.count() == before

    # 9. Rhea reads naive and corrected side by side, and a sentence for her paper.
    difference = Estimate.objects.get(
        computation=computation,
        measure="DCG@10",
        method=Method.CORRECTED,
        run__run_id="good",
        run_b__run_id="poor",
    )
    true = Estimate.objects.get(
        computation=computation,
        measure="DCG@10",
        method=Method.TRUE,
        run__run_id="good",
        run_b__run_id="poor",
    )
    assert abs(difference.value - true.value) < 4 * difference.standard_error
    asked = {"a": "good", "b": "poor", "measure": "DCG@10"}
    page = rhea.get(reverse("analytics:pair", args=[campaign.pk]), asked).content.decode()
    assert "good is better than poor in DCG@10" in page
    assert "<svg" in rhea.get(reverse("analytics:campaign-results", args=[campaign.pk])).content.decode()
    assert rhea.get(reverse("judging:manage")).status_code == 404
    assert charlie.get(reverse("analytics:results")).status_code == 404

    # 10. And she takes the judgments with her, in the field's formats.
    for kind, columns in (("qrels", 4), ("qrels_jg", 4), ("prels", 5)):
        answer = rhea.get(reverse("analytics:export", args=[campaign.pk, kind]))
        lines = b"".join(answer.streaming_content).decode().splitlines()
        assert len(lines) >= n_drawn
        assert all(len(line.split()) == columns for line in lines)
        assert not any(name in line for line in lines for name in ("bob", "dora", "greta"))
