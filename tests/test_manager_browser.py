"""In a real browser: a newcomer gets from nothing to an open campaign only by clicking, with the product's own jobs."""

import os

import pytest
from browser import MARKS, chromium, page_of, says
from browser import web as web_server

import judging.tasks  # noqa: F401 (registers the kinds of job)
import sampling.tasks  # noqa: F401
from judging.models import Campaign
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = MARKS
TOPICS = "".join(f"t{number}\tNeed {number}\n" for number in range(3))
DOCUMENTS = "".join(
    f'{{"_id": "t{topic}d{number}", "title": "Document {number}", "text": "Text {number}"}}\n'
    for topic in range(3)
    for number in range(12)
)


def run(name: str, first: int) -> str:
    return "".join(
        f"t{topic} Q0 t{topic}d{(first + rank) % 12} {rank + 1} {100 - rank} {name}\n"
        for topic in range(3)
        for rank in range(10)
    )


@pytest.fixture(scope="module")
def browser():
    yield from chromium()


@pytest.fixture
def web(child_environment):
    yield from web_server(child_environment)


def upload(page, files: list[dict[str, object]]) -> None:
    """Upload, let the worker (this process) look, and keep what was read."""
    page.set_input_files("#id_files", files)
    page.click("form[enctype] button")
    work()
    says(page, "h1", "What was read")
    page.click("button[name=keep]")
    work()
    says(page, "h1", "Imported")


def work() -> None:
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    for job in Job.objects.filter(state="queued").order_by("created_at"):
        jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == "done", job.error


def text_file(name: str, text: str) -> dict[str, object]:
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


def test_from_nothing_to_an_open_campaign_only_by_clicking(browser, web):
    mia = User.objects.create(username="mia", role="manager")
    with page_of(browser, web, mia) as page:
        page.goto(f"{web}/manage/")
        page.click("text=Begin")
        page.fill("#id_name", "News 2020")
        page.click("text=Create the collection")
        says(page, "h1", "Topics and documents")
        upload(page, [text_file("topics.tsv", TOPICS), text_file("corpus.jsonl", DOCUMENTS)])
        page.click("text=Runs and gold answers →")
        says(page, "h1", "Runs and gold answers")
        upload(page, [text_file("a.run", run("a", 0)), text_file("b.run", run("b", 2))])
        page.click("text=Scale and guidelines →")
        says(page, "h1", "Scale and guidelines")
        page.click("text=Create the campaign and choose a design")
        says(page, "h1", "Choose what is judged")
        page.fill("#id_budget", "20")
        page.dispatch_event(
            "#id_budget", "change"
        )  # as leaving the field does: the preview follows by itself
        page.wait_for_selector("#draw-these button")
        page.click("text=Draw these items")
        work()
        work()  # the layout's jobs
        page.reload()
        page.click("text=Continue")
        page.click("text=Set-up")
        page.click(".next a")
        says(page, "h1", "Assessors")
        page.fill("#id_username", "bob")
        page.click("form button:has-text('Add the assessor')")
        says(page, ".messages", "its password, shown only now")
        page.click("a[rel=next]")
        page.click("text=Save the plan")
        page.click("text=Open for judging")
        says(page, ".messages", "The campaign is open: its assessors can judge now.")
        campaign = Campaign.objects.get()
        assert (campaign.name, campaign.state) == ("News 2020", "open")
        assert campaign.items.count() == campaign.draws.get().n_drawn > 0
        assert campaign.assessors.get().user.username == "bob"
        assert campaign.audit_schedule.is_active
