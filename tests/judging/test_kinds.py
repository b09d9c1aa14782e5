"""Kinds of judging: one planted here shows two texts, and is claimed, judged, checked, audited and exported."""

import csv
import re
import uuid
from io import StringIO

import pytest
from audit_plans import client_of
from django.test import Client
from django.urls import reverse
from made_releases import opened, released
from small_campaign import DEPTH, give, judge_all, judge_audit, make_assessor, make_undrawn, slots, truth_of

from analytics.services.exports import prels_lines, qrels_jg_lines, qrels_lines
from analytics.services.recomputation import recompute
from judging import kinds
from judging.kinds import DEFAULT_KIND, ItemKey, Kind, Need, Passage, ShownItem, Texts, kind_of
from judging.management.machine_clients import Direct
from judging.models import Campaign, Judgment, TrainingItem
from judging.services import assign
from judging.services.campaigns import open_campaign
from judging.services.errors import GradeOffScale, KindUnknown
from judging.services.machines import add_machine, texts_of
from sampling.questions import Design
from sampling.services.auditing import audit
from sampling.services.drawing import draw

PLANTED = "planted"
BOTH_TITLES = "First answer / Second answer"


def two_answers(item: ShownItem) -> Texts:
    """Return two answers to the need, made up from the document."""
    first, second = (
        Passage(f"{name} answer", f"{name} answer to the need, from {item.document.text}")
        for name in ("First", "Second")
    )
    return Texts(first, second)


@pytest.fixture
def planted(monkeypatch):
    kind = Kind(PLANTED, "Planted", "Two texts.", "judging/frame.html", two_answers)
    monkeypatch.setattr(kinds, "KINDS", (*kinds.KINDS, kind))


@pytest.fixture
def campaign(tmp_path, planted):
    campaign = make_undrawn(tmp_path, gold_check_rate=0.1, kind=PLANTED)
    design = Design("pool", (), measure="DCG@10", depth=DEPTH, budget=30)
    draw(campaign=campaign, design=design, seed=20)
    open_campaign(campaign=campaign, actor=None)
    return campaign


# -- names and texts ------------------------------------------------------------------------------------------


def test_graded_relevance_shows_the_document_alone():
    document = Passage("Title", "beginn", "", 9)
    texts = kind_of("graded").texts(ShownItem(ItemKey("t", "d"), Need("need"), document))
    assert (list(texts), texts.as_prompt(), texts.title) == ([document], "beginn", "Title")


@pytest.mark.parametrize(
    ("passage", "n_hidden", "is_empty"),
    [
        (Passage("", "ab", "", 2), 0, False),
        (Passage("", "ab", "", 5), 3, False),
        (Passage("", " \n", "", 2), 0, True),
        (Passage("", " \n", "", 5), 3, False),  # what is not shown may hold something
        (Passage("", "ab", "<p>ab</p>", 5), 0, False),
    ],
)
def test_a_passage_knows_what_of_it_is_not_shown(passage, n_hidden, is_empty):
    assert (passage.n_hidden, passage.is_empty) == (n_hidden, is_empty)


@pytest.mark.django_db
def test_a_campaign_grades_relevance_unless_it_says_otherwise_and_a_kind_must_be_known(tmp_path):
    assert make_undrawn(tmp_path).kind == DEFAULT_KIND == "graded"
    with pytest.raises(KindUnknown):
        make_undrawn(tmp_path, kind=PLANTED)
    assert not Campaign.objects.filter(kind=PLANTED).exists()


# -- a kind of two texts --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_both_texts_of_a_claimed_item_are_shown_marked_and_prompted(campaign):
    ann = make_assessor(campaign, "ann")
    held = assign.claim(assessor=ann).item
    assert held is not None
    client = Client()
    client.force_login(ann.user)
    page = client.get(reverse("judging:frame", args=[held.token])).content.decode()
    assert f"<title>{BOTH_TITLES}</title>" in page
    shown = re.findall(r"(\w+) answer to the <mark>need</mark>, from Text of (\w+)", page)
    assert [name for name, _ in shown] == ["First", "Second"]
    assert shown[0][1] == shown[1][1]

    machine = add_machine(campaign=campaign, username="model")
    claimed = assign.claim(assessor=machine)
    assert claimed.item is not None
    text = texts_of(claim=claimed, campaign=machine.campaign)[claimed.item.item_id]
    pattern = (
        r"First text:\nFirst answer to the need, from Text of (\w+)\n\nSecond text:\nSecond answer .* of \1"
    )
    assert re.fullmatch(pattern, text)


@pytest.mark.django_db
def test_every_screen_and_the_prompt_take_the_title_from_the_kind(campaign):
    ann = make_assessor(campaign, "ann")
    client = Client()
    client.force_login(ann.user)

    def asked(name, **sent):
        address = reverse(f"judging:{name}", args=[campaign.pk])
        return client.post(address, sent, "application/json").json() if sent else client.get(address).json()

    item = asked("claim", n=1)["items"][0]
    assert item["document"]["title"] == BOTH_TITLES
    saved = asked("submit", client_token=str(uuid.uuid4()), token=item["token"], grade=1)
    assert saved["items"][0]["document"]["title"] == BOTH_TITLES
    assert [row["document"]["title"] for row in asked("history")["judgments"]] == [BOTH_TITLES]
    own = list(
        csv.DictReader(StringIO(client.get(reverse("judging:my-data", args=[campaign.pk])).content.decode()))
    )
    assert [row["document"] for row in own] == [BOTH_TITLES]
    listed = client.get(f"/api/v1/me/campaigns/{campaign.pk}/judgments").json()
    assert [row["document"] for row in listed["results"]] == [BOTH_TITLES]

    machine = add_machine(campaign=campaign, username="model")
    works, _ = Direct(machine).claim(1)
    assert works[0].fields["document_title"] == BOTH_TITLES


@pytest.mark.django_db
def test_training_and_adjudication_show_what_assessors_see(campaign):
    item = campaign.items.select_related("topic", "document").first()
    items = campaign.items.filter(topic=item.topic).values("document")
    unjudged = campaign.collection.documents.exclude(pk__in=items).first()
    TrainingItem.objects.create(campaign=campaign, topic=item.topic, document=unjudged, position=1, grade=1)
    ann = make_assessor(campaign, "ann")
    client = Client()
    client.force_login(ann.user)
    assert (
        f">{BOTH_TITLES}</h2>" in client.get(reverse("judging:training", args=[campaign.pk])).content.decode()
    )
    frame = client.get(reverse("judging:training-frame", args=[campaign.pk, 1])).content.decode()
    assert re.findall(r"(\w+) answer to the", frame) == ["First", "Second"]

    boss = client_of("manager")
    page = boss.get(reverse("console:manage-entry", args=[campaign.pk])).content.decode()
    assert f">{BOTH_TITLES}</a></small>" in page
    assert re.findall(r"(\w+) answer to the need, from Text", page) == ["First", "Second"]
    sent = {"item": str(item.pk), "grade": 1}
    page = boss.post(reverse("console:decide", args=[campaign.pk]), sent, follow=True).content.decode()
    assert f"stands for “{BOTH_TITLES}” in the qrels" in page
    link = reverse("console:item", args=[campaign.pk, item.pk])
    assert f'<th scope="row" class="wrapped"><a href="{link}">{BOTH_TITLES}</a></th>' in page
    frame = boss.get(reverse("console:adjudication-document", args=[campaign.pk, item.pk])).content.decode()
    assert re.findall(r"(\w+) answer to the", frame) == ["First", "Second"]


@pytest.mark.django_db
def test_its_items_are_judged_checked_audited_and_exported(campaign):
    ann, ben = make_assessor(campaign, "ann"), make_assessor(campaign, "ben")
    held = assign.claim(assessor=ann).item
    assert held is not None
    with pytest.raises(GradeOffScale):
        assign.submit(assessor=ann, token=held.token, client_token=uuid.uuid4(), grade=7)
    judgment = assign.submit(assessor=ann, token=held.token, client_token=uuid.uuid4(), grade=2)
    assert Judgment.objects.get().grade == judgment.grade == 2
    for check in slots(campaign, "check", state="open", number=1):
        give(ben, check, truth_of(check))
    judge_all(campaign, [make_assessor(campaign, "cid"), make_assessor(campaign, "dot")])

    audit(campaign=campaign, items_each_time=30, items_in_total=30, seed=5)
    judge_audit(campaign, make_assessor(campaign, "gus", tier="gold"))
    computation = recompute(campaign=campaign)
    assert computation.n_gold_checks > 0
    assert computation.n_audited > 0
    assert computation.estimates.filter(method="corrected", run_b=None, value__isnull=False).count() > 0

    qrels = list(qrels_lines(campaign, True))
    assert len(qrels) == computation.n_items
    assert len(list(qrels_jg_lines(campaign, True))) > len(qrels)
    assert len(list(prels_lines(campaign, True))) == len(qrels)
    assert opened(released(campaign)).text("qrels.txt") == "".join(qrels)
