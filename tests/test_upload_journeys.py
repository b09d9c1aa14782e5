"""In a real browser: how many clicks and fields it takes from nothing to the draw, and to put a mistaken file right."""

import io
import os
import zipfile

import pytest
from browser import MARKS, chromium, page_of, ready, says
from browser import web as web_server
from hands import Hands
from journey_files import CORPUS, PNG, QRELS, QUERIES_CSV, RUNS, SHEET_CSV, TOPICS, text_file

import judging.tasks  # noqa: F401 (registers the kinds of job)
import sampling.tasks  # noqa: F401
import touchstone.tasks  # noqa: F401 (of all apps)
from judging.models import Campaign, Collection, Import, Judgment
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = MARKS


@pytest.fixture(scope="module")
def browser():
    yield from chromium()


@pytest.fixture
def web(child_environment):
    yield from web_server(child_environment)


@pytest.fixture
def mia(transactional_db):
    return User.objects.create(username="mia", role="manager")


def work() -> None:
    """Be the worker: do what is queued, one after the other."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    for job in Job.objects.filter(state="queued").order_by("created_at"):
        jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == "done", job.error


def begin(hands: Hands, web: str, files: list[dict[str, object]]) -> None:
    """Make a collection and upload files into it."""
    hands.page.goto(f"{web}/manage/setup/")
    hands.fill("#id_name", "News 2020")
    hands.click("text=Create the collection")
    upload(hands, files)


def upload(hands: Hands, files: list[dict[str, object]]) -> None:
    hands.files("#id_files", files)
    hands.click("form[enctype] button")
    work()
    says(hands.page, "h1", "What was read")


def keep(hands: Hands) -> None:
    hands.click("button[name=keep]")
    work()
    says(hands.page, "h1", "Imported")


def to_the_draw(hands: Hands) -> None:
    """From the kept import to the draw: the campaign's scale, the design with its preview, the draw."""
    hands.click("a.button.primary:has-text('→')")
    says(hands.page, "h1", "Scale and guidelines")
    hands.click("text=Create the campaign and choose a design")
    says(hands.page, "h1", "Choose what is judged")
    hands.fill("#id_budget", "20")
    hands.page.dispatch_event("#id_budget", "change")  # as leaving the field does
    hands.page.wait_for_selector("#draw-these button")
    says(hands.page, "#forecast", "interval")
    hands.click("text=Draw these items")
    work()
    work()  # the layout's jobs


def row_of(page, label: str) -> list[str]:
    """The cells of a row of counts."""
    return page.locator(f"tr:has(th:text-is('{label}')) td").all_inner_texts()


def test_a_track_manager_gets_to_the_draw_with_12_clicks_and_6_fields(browser, web, mia):
    runs = [text_file(f"{tag}.run", text) for tag, text in RUNS.items()]
    files = [text_file("topics.tsv", TOPICS), text_file("corpus.jsonl", CORPUS), *runs]
    with page_of(browser, web, mia) as page:
        hands = Hands(page)
        begin(hands, web, [*files, text_file("gold.qrels", QRELS)])
        for name, kind in (
            ("topics.tsv", "Topics"),
            ("corpus.jsonl", "Documents"),
            ("gold.qrels", "Judgments"),
        ):
            assert kind in page.locator(f"h2:has-text('{name}')").inner_text()
        keep(hands)
        assert row_of(page, "Topics") == ["0", "3"]
        assert row_of(page, "Documents") == ["0", "36"]
        assert row_of(page, "Runs") == ["0", "4"]
        assert row_of(page, "Gold answers") == ["0", "9"]
        to_the_draw(hands)
        hands.took(clicks=12, fields=6)
    campaign = Campaign.objects.get()
    assert campaign.items.count() == campaign.draws.get().n_drawn > 0


def test_then_an_invited_stranger_judges_for_the_first_time_after_6_clicks_and_4_fields(browser, web, mia):
    files = [text_file("topics.tsv", TOPICS), text_file("corpus.jsonl", CORPUS)]
    with page_of(browser, web, mia) as page:
        before = Hands(page)
        begin(before, web, [*files, *(text_file(f"{tag}.run", RUNS[tag]) for tag in ("a", "b"))])
        keep(before)
        to_the_draw(before)
        page.reload()
        hands = Hands(page)
        hands.click("text=Continue")
        hands.click("a.button:has-text('Invitations and training')")
        hands.click("text=Create the link")
        row = "section[aria-labelledby=invitations] tbody tr"
        assert "0 of 1" in page.inner_text(row)  # who waits
        link = page.input_value(f"{row} input")
        hands.click("text=Open for judging")
        says(page, ".messages", "The campaign is open")
        context = browser.new_context()
        try:
            stranger = Hands(context.new_page())
            stranger.page.goto(link)
            stranger.fill("[name=password]", "sunny-reef-3141")
            stranger.fill("[name=repeated]", "sunny-reef-3141")
            stranger.click("button.primary")
            ready(stranger.page)
            stranger.click("#grades button >> nth=0")
            says(stranger.page, "#saved", "Saved")
        finally:
            context.close()
        assert Judgment.objects.count() == 1
        hands.clicks, hands.fields = hands.clicks + stranger.clicks, hands.fields + stranger.fields
        hands.took(clicks=6, fields=4)
        page.goto(f"{web}/manage/campaigns/{Campaign.objects.get().pk}/entry/")
        assert "1 of 1" in page.inner_text(row)
        name = Campaign.objects.get().assessors.get().user.username
        page.goto(f"{web}/manage/campaigns/{Campaign.objects.get().pk}/assessors/")
        assert name in page.inner_text("main tbody")  # who joined


def test_a_company_gets_to_the_draw_with_a_sheet_queries_and_pages(browser, web, mia):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        for number in range(3):
            page_text = (
                f"<html><body><h1>Page {number}</h1><p>Words.</p><img src='figures/a.png'></body></html>"
            )
            target.writestr(f"site/page{number}.html", page_text)
        target.writestr("site/figures/a.png", PNG)
    site = {"name": "site.zip", "mimeType": "application/zip", "buffer": archive.getvalue()}
    runs = [text_file(f"{tag}.run", RUNS[tag]) for tag in ("a", "b")]
    files = [text_file("articles.csv", SHEET_CSV), text_file("queries.csv", QUERIES_CSV), site, *runs]
    with page_of(browser, web, mia) as page:
        hands = Hands(page)
        begin(hands, web, files)
        frame = page.frame_locator("section:has(h2:has-text('site.zip: pages')) iframe").first
        assert "Page 0" in frame.locator("body").inner_text()
        keep(hands)
        assert row_of(page, "Documents") == ["0", "39"]
        assert row_of(page, "Images") == ["0", "1"]
        to_the_draw(hands)
        hands.took(clicks=12, fields=6)
    collection = Collection.objects.get()
    assert collection.documents.filter(html__contains="Page 0").exists()


def test_a_file_taken_for_the_wrong_kind_is_put_right_before_it_is_kept(browser, web, mia):
    with page_of(browser, web, mia) as page:
        hands = Hands(page)
        begin(hands, web, [text_file("topics.tsv", TOPICS)])
        assert "Topics" in page.locator("h2:has-text('topics.tsv')").inner_text()
        hands = Hands(page)
        hands.choose("select[name$=kind]", "documents")
        hands.click("text=Look again")
        work()
        says(page, "h2", "Documents")
        keep(hands)
        assert row_of(page, "Documents") == ["0", "3"]
        hands.took(clicks=2, fields=1)
    assert Import.objects.get().state == "kept"
    assert not Collection.objects.get().topics.exists()


def test_a_file_taken_for_the_wrong_kind_is_put_right_after_it_is_kept(browser, web, mia):
    """From the collection's page, with 4 clicks and a field; the counts before and after are on the last page."""
    with page_of(browser, web, mia) as page:
        first = Hands(page)
        begin(first, web, [text_file("topics.tsv", TOPICS)])
        keep(first)
        assert row_of(page, "Topics") == ["0", "3"]
        page.goto(f"{web}/manage/collections/{Collection.objects.get().pk}/")
        hands = Hands(page)
        hands.click("a:has-text('topics.tsv')")
        hands.click("text=Read the files again")
        work()
        says(page, "h1", "What was read")
        hands.choose("select[name$=kind]", "documents")
        hands.click("text=Look again")
        work()
        says(page, "h2", "Documents")
        hands.click("button[name=keep]")
        work()
        says(page, "h1", "Imported")
        assert row_of(page, "Topics") == ["3", "0"]
        assert row_of(page, "Documents") == ["0", "3"]
        hands.took(clicks=4, fields=1)
    assert sorted(Import.objects.values_list("state", flat=True)) == ["kept", "taken-back"]
