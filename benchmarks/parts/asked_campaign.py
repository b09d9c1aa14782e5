"""The three questions in Touchstone: a campaign with the same judgments, and the way to each answer.

Everything begins on the campaign's overview, as tests/test_manager_journeys.py begins it.
"""

import json
from pathlib import Path
from typing import Any

from parts.bulk_judges import fill_timed
from parts.same_judgments import (
    DOCUMENTS_A_TOPIC,
    GRADES,
    JUDGES,
    PEOPLE,
    QUICK_BELOW,
    Judgments,
    text_of,
)
from parts.timed_hands import Answer, TimedHands

MEASURE = "DCG@10"
LINKS = "main tbody a[href*='/items/']"


def make_campaign(judgments: Judgments, folder: Path) -> Any:
    """Return an open campaign with the judgments, each by its own person, and computed once."""
    from analytics.services.recomputation import recompute
    from judging.services.campaigns import create_campaign, open_campaign
    from sampling.questions import Design
    from sampling.services.drawing import draw

    campaign = create_campaign(
        collection=_import_collection(judgments, folder),
        name="Three questions",
        user=None,
        grades=[(grade, label, float(grade)) for grade, label in enumerate(GRADES)],
        judgments_per_item=JUDGES,
        gold_check_rate=0.0,
    )
    every = Design("pool", (), measure=MEASURE, depth=DOCUMENTS_A_TOPIC, budget=len(judgments.documents))
    draw(campaign=campaign, design=every, seed=0)
    open_campaign(campaign=campaign, actor=None)
    _judge(campaign, judgments)
    recompute(campaign=campaign, measures=[MEASURE])
    return campaign


def _import_collection(judgments: Judgments, folder: Path) -> Any:
    """Return a collection of the documents, which two runs return, the second from the last to the first."""
    from judging.models import Collection
    from judging.services.files import import_documents, import_runs, import_topics

    topics: dict[str, list[str]] = {}
    for topic, document in judgments.documents:
        topics.setdefault(topic, []).append(document)
    listed, corpus = folder / "topics.tsv", folder / "corpus.jsonl"
    listed.write_text("".join(f"{topic}\t{topic}\n" for topic in topics))
    texts = [{"_id": document, "text": text_of(document)} for _, document in judgments.documents]
    corpus.write_text("".join(f"{json.dumps(text)}\n" for text in texts))
    for name, step in (("forward", 1), ("backward", -1)):
        (folder / f"{name}.run").write_text(
            "".join(
                f"{topic} Q0 {document} {rank} {-rank} {name}\n"
                for topic, documents in topics.items()
                for rank, document in enumerate(documents[::step], start=1)
            )
        )
    made = Collection.objects.create(name="Three questions")
    import_topics(collection=made, source=listed, name=listed.name)
    import_documents(collection=made, source=corpus, name=corpus.name)
    files = [(folder / f"{name}.run", f"{name}.run") for name in ("forward", "backward")]
    import_runs(collection=made, files=files)
    return made


def _judge(campaign: Any, judgments: Judgments) -> None:
    from django.db import transaction

    from judging.services.campaigns import add_assessor
    from touchstone.models import User

    people = {
        name: add_assessor(campaign=campaign, user=User.objects.create(username=name), tier="bronze").pk
        for name in PEOPLE
    }
    slots: dict[str, list[int]] = {}
    for document, slot in campaign.slots.order_by("number").values_list("item__document__doc_id", "pk"):
        slots.setdefault(document, []).append(slot)
    with transaction.atomic():
        fill_timed(
            (slots[row.document].pop(0), people[row.person], row.grade, row.milliseconds, row.comment)
            for row in judgments.rows
        )


class Overview:
    """The campaign's overview in a page of a manager who is logged in."""

    def __init__(self, page: Any, address: str, campaign: Any) -> None:
        self.page, self.address = page, f"{address.rstrip('/')}/manage/campaigns/{campaign.pk}/"

    def begin(self) -> TimedHands:
        self.page.goto(self.address)
        self.page.wait_for_load_state("networkidle")
        return TimedHands(self.page)


# -- the ways to an answer -----------------------------------------------------------------------------------


def differing(overview: Overview, hands: TimedHands, asked: Judgments) -> Answer:
    """Filter the items by the topic, and by grades that are one or more apart."""
    hands.click("nav.page-tabs >> text=Items")
    hands.click("summary:text-is('Filter')")
    hands.fill("#f_topic_id", asked.topic)
    hands.fill("#f_spread", "1")
    hands.click("form.filters button")
    overview.page.wait_for_url("**spread=1**")
    return _all_pages(overview.page, hands), 0


def quick(overview: Overview, hands: TimedHands, asked: Judgments) -> Answer:
    """Open the person's judgments, and filter them by their seconds."""
    hands.click(f"a:has-text('{len(PEOPLE)} active assessors')")
    hands.click(f"a[aria-label='The judgments of {asked.person}']")
    hands.fill("#f_seconds_below", str(QUICK_BELOW // 1000))
    hands.click("form.filters button")
    overview.page.wait_for_url("**seconds_below=**")
    return _all_pages(overview.page, hands), 0


def commented(overview: Overview, hands: TimedHands, asked: Judgments) -> Answer:
    """Find the comment among those that the page lists, and follow it to its document."""
    hands.click("nav.page-tabs >> text=People")
    hands.click("nav.sub-tabs >> text=What assessors say")
    hands.click(f"tr:has-text('{asked.comment}') a[href*='/items/']")
    shown = overview.page.frame_locator("iframe.document-frame").locator("body")
    shown.get_by_text("Text of").first.wait_for()
    hands.shows_answer()
    return {str(shown.inner_text()).split()[2].rstrip(".")}, 0


def _all_pages(page: Any, hands: TimedHands) -> set[str]:
    """Return the documents of a list, turning its pages to the last one."""
    found: set[str] = set()
    while True:
        page.wait_for_selector(LINKS)
        hands.shows_answer()
        found |= set(page.locator(LINKS).all_inner_texts())
        if page.locator("nav.pages a[rel=next]").count() == 0:
            return found
        before = page.url
        hands.click("nav.pages a[rel=next]")
        page.wait_for_url(lambda url, before=before: url != before)
