"""The story of the product, on real servers with a real worker: from files to a comparison one can quote.

Mara manages, Rhea researches, Bob and Dora judge, Greta is the expert, Charlie must see nothing.
"""

import random
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from analytics.models import Computation, Estimate
from analytics.services.recomputation import latest_computation, start_due_recomputations
from judging.models import Campaign, Collection, GoldAnswer, Import, Judgment, Slot
from judging.services.looking import job_of
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


def upload(mara: Client, collection: Collection, *files: tuple[str, str]) -> None:
    """Upload, and keep what each file was taken for."""
    page = reverse("console:manage-collection", args=[collection.pk])
    sent = [SimpleUploadedFile(name, content.encode()) for name, content in files]
    assert mara.post(page, {"files": sent}).status_code == 302
    made = Import.objects.filter(collection=collection).latest("created_at")
    finish(job_of(made))
    keep = reverse("console:api-import-keep", args=[made.pk])
    assert mara.post(keep, {}, "application/json").status_code == 202
    finish(job_of(made))


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


PAIR: dict[str, Any] = {
    "question": "pair",
    "run_a": "good",
    "run_b": "poor",
    "measure": "DCG@10",
    "depth": 20,
}


@dataclass
class Story:
    """The people of the story, and what they made so far."""

    mara: Client
    rhea: Client
    bob: Client
    dora: Client
    greta: Client
    charlie: Client
    collection: Collection = field(init=False)
    campaign: Campaign = field(init=False)
    n_judged: int = 0

    @property
    def computation(self) -> Computation:
        return latest_computation(campaign=self.campaign)

    def page(self, name: str, *more: object) -> str:
        return reverse(name, args=[self.campaign.pk, *more])

    def draws(self) -> list:
        return list(self.campaign.draws.order_by("batch"))


def upload_files(story: Story) -> None:
    """Mara uploads what the field's tools write. The worker imports it."""
    story.mara.post(reverse("console:manage-collection-new"), {"name": "Needs", "description": ""})
    collection = story.collection = Collection.objects.get(name="Needs")
    upload(story.mara, collection, ("topics.tsv", TOPICS_FILE))
    upload(story.mara, collection, ("corpus.jsonl", DOCUMENTS_FILE))
    runs = [
        ("good.run", run_file("good", 3)),
        ("fair.run", run_file("fair", 8)),
        ("poor.run", run_file("poor", 30)),
    ]
    upload(story.mara, collection, *runs)
    upload(story.mara, collection, ("gold.qrels", GOLD_FILE))
    assert (collection.topics.count(), collection.documents.count()) == (TOPICS, TOPICS * DOCUMENTS)
    assert GoldAnswer.objects.count() == TOPICS * DOCUMENTS


def set_campaign_up(story: Story) -> None:
    """Mara sets a campaign up: three grades, two judgments an item, a tenth of unannounced gold checks."""
    fields = {
        "collection": story.collection.pk,
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
    }
    story.mara.post(reverse("console:manage-campaign-new"), fields)
    story.campaign = Campaign.objects.get(name="First")


def preview_and_draw(story: Story) -> None:
    """Before a judgment is spent, Mara sees what a budget buys; then she draws."""
    design = story.page("console:design")
    assert "half-width" in story.mara.get(design, PAIR | {"budget": "150"}).content.decode()
    story.mara.post(design, PAIR | {"budget": "150"})
    finish(Job.objects.get(kind="draw"))
    (draw,) = story.draws()
    assert 110 < draw.n_drawn < 190
    assert draw.entries.count() == draw.n_drawn


def add_assessors_and_open(story: Story) -> None:
    """Mara adds two assessors and an expert, and opens the campaign."""
    for name, tier in (("bob", "bronze"), ("dora", "bronze"), ("greta", "gold")):
        story.mara.post(story.page("console:manage-assessor-add"), {"username": name, "tier": tier})
    story.mara.post(story.page("console:manage-campaign-state"), {"state": "open"})


def refuse_the_stranger(story: Story) -> None:
    """Charlie is told that there is no such campaign."""
    answer = story.charlie.post(story.page("judging:claim"), {}, "application/json")
    assert answer.status_code == 404


def judge_as_two(story: Story) -> None:
    """Bob and Dora judge whatever is to be judged; Bob is careless."""
    story.n_judged += judge_everything(story.bob, story.campaign, 0.4)
    story.n_judged += judge_everything(story.dora, story.campaign, 0.1)
    assert story.n_judged >= 2 * sum(draw.n_drawn for draw in story.draws())


def draw_a_second_batch(story: Story) -> None:
    """Mara wants a shorter interval: a second batch keeps what is judged and learns from it what to judge next."""
    story.mara.post(story.page("console:design"), {**PAIR, "budget": 190, "prior": "judgments"})
    finish(Job.objects.filter(kind="draw").latest("created_at"))
    first, second = story.draws()
    assert (second.batch, second.learned_from, second.seed) == (2, 1, first.seed)
    assert 10 < second.n_drawn < 80
    drawn_first = first.entries.filter(times__gte=1).values("item")
    assert second.entries.filter(item__in=drawn_first, times__gte=1).count() == first.n_drawn
    # Every batch's probability is recorded at every item.
    assert first.entries.count() == second.entries.count() == first.n_drawn + second.n_drawn


def find_every_item_judged(story: Story) -> None:
    """No slot of an ordinary judgment is left."""
    slots = Slot.objects.filter(campaign=story.campaign, purpose="judge")
    assert not slots.exclude(state="done").exists()


def audit_by_the_expert(story: Story) -> None:
    """A random audit of what Bob and Dora judged goes to Greta, who sees no earlier grade."""
    story.mara.post(
        story.page("console:audits"),
        {"items_each_time": 60, "items_in_total": 60, "every_seconds": 86400, "is_active": "on", "now": "1"},
    )
    finish(Job.objects.get(kind="audit"))
    audit = story.campaign.audits.get()
    assert judge_everything(story.greta, story.campaign, 0.0) == audit.n_selected


def recompute_every_number(story: Story) -> None:
    """The worker recomputes every number and every assessor's confusion matrix."""
    start_due_recomputations()
    finish(Job.objects.get(kind="estimate"))
    computation = story.computation
    assert computation.last_judgment_id == Judgment.objects.order_by("-id").first().pk
    accuracy = {c.assessor.user.username: c.accuracy for c in computation.confusions.filter(scope="assessor")}
    assert accuracy["bob"] < accuracy["dora"]


def pause_the_careless(story: Story) -> None:
    """Mara sees who is careless and pauses them; nothing is deleted."""
    assert "bob" in story.mara.get(story.page("console:assessors")).content.decode()
    before = Judgment.objects.count()
    bob = story.campaign.assessors.get(user__username="bob")
    story.mara.post(story.page("console:manage-assessor-status", bob.pk), {"status": "suspended"})
    assert story.bob.post(story.page("judging:claim"), {}, "application/json").status_code == 403
    assert Judgment.objects.count() == before


def read_the_results(story: Story) -> None:
    """Rhea reads naive and corrected side by side, and a sentence for her paper."""
    pair = Estimate.objects.filter(
        computation=story.computation, measure="DCG@10", run__run_id="good", run_b__run_id="poor"
    )
    difference, true = pair.get(method="corrected"), pair.get(method="true")
    assert abs(difference.value - true.value) < 4 * difference.standard_error
    asked = {"a": "good", "b": "poor", "measure": "DCG@10", "claim": "these-topics"}
    page = story.rhea.get(story.page("console:pair"), asked).content.decode()
    assert "good has a higher DCG@10 than poor" in page
    assert "<svg" in story.rhea.get(story.page("console:campaign-results")).content.decode()


def keep_others_out(story: Story) -> None:
    """A researcher does not manage, and an assessor reads no results."""
    assert story.rhea.get(reverse("console:manage")).status_code == 404
    assert story.charlie.get(reverse("console:results")).status_code == 404


def export_the_judgments(story: Story) -> None:
    """Rhea takes the judgments with her, in the field's formats."""
    n_drawn = sum(draw.n_drawn for draw in story.draws())
    for kind, columns in (("qrels", 4), ("qrels_jg", 4), ("prels", 5)):
        answer: Any = story.rhea.get(story.page("console:export", kind))
        lines = b"".join(answer.streaming_content).decode().splitlines()
        assert len(lines) >= n_drawn
        assert all(len(line.split()) == columns for line in lines)
        assert not any(name in line for line in lines for name in ("bob", "dora", "greta"))


STEPS = (
    upload_files,
    set_campaign_up,
    preview_and_draw,
    add_assessors_and_open,
    refuse_the_stranger,
    judge_as_two,
    draw_a_second_batch,
    judge_as_two,
    find_every_item_judged,
    audit_by_the_expert,
    recompute_every_number,
    pause_the_careless,
    read_the_results,
    keep_others_out,
    export_the_judgments,
)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_from_files_to_a_comparison_one_can_quote(worker):
    assessors = [person(name, "assessor") for name in ("bob", "dora", "greta", "charlie")]
    story = Story(person("mara", "manager"), person("rhea", "researcher"), *assessors)
    for step in STEPS:
        step(story)
