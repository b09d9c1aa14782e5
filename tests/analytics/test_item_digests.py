"""What lists filter and order by, as computations and the look at open places find it."""

import uuid

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from small_campaign import give, lease, make_assessor, make_campaign, slots

from analytics.frames import current_arrays
from analytics.models import ItemDigest
from analytics.services import digests
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.disputed import doubtful_labels
from analytics.services.recomputation import latest_computation, recompute
from judging.models import Import, Judgment, Slot, StuckItem
from judging.services import few
from judging.services.assign import revise, submit
from judging.services.judgment_files import import_judgments
from judging.services.leases import requeue
from judging.services.places_left import compute_places_left
from touchstone.api import pagination
from touchstone.ledger.take_back import take_back
from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(db, tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def alice(campaign):
    client = Client()
    client.force_login(User.objects.create(username="alice", role="manager"))
    return client


def pairs_of(campaign, n):
    """Return the slots of n items, two of each."""
    found = {}
    for slot in slots(campaign):
        found.setdefault(slot.item_id, []).append(slot)
    return [pair for pair in found.values() if len(pair) == 2][:n]


def judge_pairs(campaign, grades):
    """Bob and Dora give each item its two grades; return the items."""
    bob, dora = make_assessor(campaign, "bob"), make_assessor(campaign, "dora")
    chosen = pairs_of(campaign, len(grades))
    for (first, second), (one, other) in zip(chosen, grades, strict=True):
        give(bob, first, one)
        give(dora, second, other)
    return bob, dora, [pair[0].item_id for pair in chosen]


def spreads():
    return dict(ItemDigest.objects.values_list("item_id", "spread"))


def items_of_page(client, campaign, **asked):
    page = client.get(reverse("console:items", args=[campaign.pk]), asked)
    answer = client.get(reverse("console:api-items", args=[campaign.pk]), asked)
    assert page.status_code == answer.status_code == 200, answer.content
    of_page = [one["item"].pk for one in page.context["rows"]]
    assert [str(pk) for pk in of_page] == [row["id"] for row in answer.json()["results"]]
    return of_page


def test_a_digest_has_how_far_the_grades_that_stand_are_apart(campaign):
    items = judge_pairs(campaign, [(0, 3), (2, 2), (1, 2)])[2]
    recompute(campaign=campaign)

    assert spreads() == dict(zip(items, [3, 0, 1], strict=True))
    last = Judgment.objects.filter(item=items[2]).latest("id")
    assert ItemDigest.objects.get(item=items[2]).newest == last.pk
    assert set(ItemDigest.objects.values_list("computation", flat=True)) == {
        latest_computation(campaign=campaign).pk
    }


def test_a_change_of_mind_and_what_is_set_aside_change_the_digest(campaign):
    bob, dora, items = judge_pairs(campaign, [(0, 3), (2, 0)])
    recompute(campaign=campaign)
    token = Slot.objects.get(item=items[0], assessor=bob).token
    revise(assessor=bob, token=token, client_token=uuid.uuid4(), grade=2)
    recompute(campaign=campaign)
    assert spreads() == dict(zip(items, [1, 2], strict=True))

    requeue(assessor=dora, actor=None)
    recompute(campaign=campaign)
    assert spreads() == dict(zip(items, [0, 0], strict=True))


def test_the_judgments_of_an_import_that_is_taken_back_are_in_no_digest(campaign, tmp_path):
    slot = slots(campaign)[0]
    item = slot.item
    give(make_assessor(campaign, "bob"), slot, 3)
    (tmp_path / "j.tsv").write_text(
        f"topic_id\tdoc_id\tworker\tlabel\n{item.topic.topic_id}\t{item.document.doc_id}\tw\t0\n"
    )
    import_judgments(campaign=campaign, source=tmp_path / "j.tsv", name="j.tsv", file_format="crowd")
    recompute(campaign=campaign)
    assert spreads() == {item.pk: 3}
    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    take_back(made=Import.objects.get(kind="judgments"), why="wrong", actor=mara)
    recompute(campaign=campaign)
    assert spreads() == {item.pk: 0}


def test_only_items_judged_since_are_written_again(campaign):
    """The positive control: with the first computation forgotten, all are."""
    bob, _, items = judge_pairs(campaign, [(0, 3), (2, 2)])
    first = recompute(campaign=campaign)
    chosen = next(slot for slot in slots(campaign, state="open") if slot.item_id not in items)
    give(bob, chosen, 1)
    second = recompute(campaign=campaign)

    written = dict(ItemDigest.objects.values_list("item_id", "computation"))
    assert written == {items[0]: first.pk, items[1]: first.pk, chosen.item_id: second.pk}
    assert ItemDigest.objects.get(item=chosen.item_id).spread == 0
    counts = assessor_confusion_counts(current_arrays(campaign))
    assert digests.store_digests(second, current_arrays(campaign), counts, {}) == 3


def test_the_influence_is_that_of_the_queue(campaign):
    judge_pairs(campaign, [(0, 3), (2, 2), (1, 2), (3, 0)])
    recompute(campaign=campaign)
    arrays = current_arrays(campaign)
    counts = assessor_confusion_counts(arrays)
    found = doubtful_labels(arrays, campaign, counts, np.ones(arrays.judged.size, dtype=bool))
    names = arrays.frame[arrays.judged].select("topic_id", "doc_id").iter_rows()
    by_name = dict(zip(names, found.influence, strict=True))
    rows = ItemDigest.objects.values_list("item__topic__topic_id", "item__document__doc_id", "influence")

    assert len(rows) == 4
    assert {row[:2]: pytest.approx(row[2]) for row in rows} == by_name
    assert max(by_name.values()) > 0


def test_lists_are_filtered_and_ordered_by_digests(campaign, alice):
    _, _, items = judge_pairs(campaign, [(0, 3), (2, 2), (1, 2), (3, 1)])
    recompute(campaign=campaign)

    assert items_of_page(alice, campaign, spread="2") == [items[0], items[3]]
    assert items_of_page(alice, campaign, order="-spread")[:2] == [items[0], items[3]]
    assert items_of_page(alice, campaign, order="spread")[0] == items[1]
    assert items_of_page(alice, campaign, order="-newest") == items[::-1]
    assert len(items_of_page(alice, campaign, order="-influence")) == 4
    assert set(items_of_page(alice, campaign, spread="1", order="topic,document")) == set(items) - {items[1]}
    log = reverse("console:api-judgment-log", args=[campaign.pk])
    assert {row["item"] for row in alice.get(log, {"spread": "2"}).json()["results"]} == {
        str(items[0]),
        str(items[3]),
    }


def test_the_longest_judged_come_first(campaign, alice):
    bob = make_assessor(campaign, "bob")
    chosen = [pair[0] for pair in pairs_of(campaign, 3)]
    for slot, milliseconds in zip(chosen, [2000, 9000, 4000], strict=True):
        submit(
            assessor=bob,
            token=lease(bob, slot),
            client_token=uuid.uuid4(),
            grade=1,
            active_milliseconds=milliseconds,
        )
    recompute(campaign=campaign)

    expected = [chosen[1].item_id, chosen[2].item_id, chosen[0].item_id]
    assert items_of_page(alice, campaign, order="-seconds") == expected


def test_pages_by_a_digest_go_on_where_the_one_before_ended(campaign, alice):
    _, _, items = judge_pairs(campaign, [(0, 3), (2, 2), (1, 2), (3, 1), (1, 1), (0, 1)])
    recompute(campaign=campaign)
    for order in ("-spread", "spread", "-newest", "-influence"):
        address = reverse("console:api-items", args=[campaign.pk]) + f"?order={order}&page_size=2"
        found = []
        while address:
            answer = alice.get(address).json()
            found += [row["id"] for row in answer["results"]]
            address = answer["next"]
        assert len(found) == 6, order
        assert set(found) == {str(pk) for pk in items}, order


def test_an_order_by_digests_with_other_filters_looks_at_so_many_items(campaign, alice, monkeypatch):
    _, _, items = judge_pairs(campaign, [(0, 3), (2, 2), (1, 2), (3, 1), (1, 1), (0, 1)])
    recompute(campaign=campaign)
    monkeypatch.setattr(pagination, "LOOKED_AT", 2)
    monkeypatch.setattr(few, "FEW", 0)
    address = reverse("console:api-items", args=[campaign.pk]) + "?order=-spread&grade=1"
    found = []
    while address:
        answer = alice.get(address).json()
        found += [row["id"] for row in answer["results"]]
        address = answer["next"]
    assert set(found) == {str(items[place]) for place in (2, 3, 4, 5)}
    assert found[0] == str(items[3])
    assert len(found) == 4


def test_an_order_by_digests_stands_alone(campaign, alice):
    for name in ("items", "api-items"):
        refused = alice.get(reverse(f"console:{name}", args=[campaign.pk]), {"order": "-spread,topic"})
        assert refused.status_code == 400
        assert "one order alone" in refused.content.decode()


def test_the_page_says_as_of_when(campaign, alice):
    address = reverse("console:items", args=[campaign.pk])
    judge_pairs(campaign, [(0, 3)])
    assert "after the next computation" in alice.get(address, {"spread": "1"}).content.decode()
    recompute(campaign=campaign)
    assert "as of the computation" in alice.get(address, {"spread": "1"}).content.decode()
    assert "as of the computation" not in alice.get(address).content.decode()


def test_every_stuck_item_is_found(campaign, alice):
    """One assessor, two judgments an item: nothing can be finished; with a second one everything can."""
    bob = make_assessor(campaign, "bob")
    n_items = campaign.items.count()
    found = compute_places_left(campaign=campaign)
    assert found.n_stuck == n_items == StuckItem.objects.filter(campaign=campaign).count()
    assert len(found.stuck) == 20

    assert len(items_of_page(alice, campaign, state="stuck", page_size=200)) == n_items
    assert (
        "Who can still judge what"
        in alice.get(reverse("console:items", args=[campaign.pk]), {"state": "stuck"}).content.decode()
    )
    give(bob, slots(campaign)[0], 1)
    make_assessor(campaign, "dora")
    assert compute_places_left(campaign=campaign).n_stuck == 0
    assert not StuckItem.objects.exists()
    assert items_of_page(alice, campaign, state="stuck") == []


def test_many_stuck_items_are_found_among_all(campaign, alice, monkeypatch):
    make_assessor(campaign, "bob")
    compute_places_left(campaign=campaign)
    stuck = items_of_page(alice, campaign, state="stuck", page_size=200)
    monkeypatch.setattr(few, "FEW", 1)
    assert items_of_page(alice, campaign, state="stuck", page_size=200) == stuck


def test_a_list_by_digests_takes_few_statements(campaign, alice):
    judge_pairs(campaign, [(0, 3), (2, 2)])
    recompute(campaign=campaign)
    compute_places_left(campaign=campaign)
    for name in ("items", "judgments"):
        for asked in ({"spread": "1"}, {"state": "stuck"}, {"order": "-newest"}, {"assessor": "bob"}):
            if name == "judgments" and "order" in asked:
                continue
            with CaptureQueriesContext(connection) as queries:
                answer = alice.get(reverse(f"console:{name}", args=[campaign.pk]), asked)
            assert answer.status_code == 200
            assert len(queries) <= 12, (name, asked, [query["sql"][:100] for query in queries])
