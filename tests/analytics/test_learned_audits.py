"""Audits that learn, from the rows: what they record, what predictions then learn from, and what a release says."""

import json
from copy import deepcopy

import numpy as np
import pytest
from audit_plans import a_bit_wrong
from django.db import IntegrityError, transaction
from small_campaign import give, judge_all, judge_audit, make_assessor, make_campaign, slots
from small_release import change_lines, release_of, unpacked

from analytics.frames import campaign_arrays
from analytics.releases.verify import verify
from analytics.services.gold_spread import predicted_spread
from analytics.services.recomputation import recompute
from sampling.measures.registry import parse_measure
from sampling.models import Audit, AuditEntry, GoldFit
from sampling.services import learned_audits
from sampling.services.audit_schedules import FitFixed, save_schedule
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import audit, complete_items, run_audit

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("world"), kind="pair")
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")], a_bit_wrong)
    return made


@pytest.fixture
def campaign(made_once, db, monkeypatch):
    """A judged campaign of 42 documents in which 20 gold labels are enough to learn from."""
    monkeypatch.setattr(learned_audits, "FEWEST_GOLD", 20)
    return deepcopy(made_once)


def audited(campaign, strategy="learned", n=8, **options):
    return audit(campaign=campaign, items_each_time=n, items_in_total=42, strategy=strategy, **options)


def answer(campaign):
    gold = campaign.assessors.filter(user__username="greta").first()
    judge_audit(campaign, gold or make_assessor(campaign, "greta", tier="gold"))


def chances(made):
    return dict(AuditEntry.objects.filter(audit=made).values_list("item_id", "inclusion_probability"))


def test_below_enough_gold_it_is_influence_with_less_spread_evenly_and_says_so(campaign):
    found = []
    for strategy in ("influence", "learned"):
        with transaction.atomic():
            made = audited(campaign, strategy, seed=5)
            found.append((chances(made), made.gold_fit, made.learned_from))
            transaction.set_rollback(True)
    influence, learned = (list(chances.values()) for chances, *_ in found)
    assert sum(learned) == pytest.approx(sum(influence), abs=1e-4)
    assert min(learned) < min(influence)
    by_influence = sorted(found[0][0], key=lambda item: found[0][0][item])
    assert (np.diff([found[1][0][item] for item in by_influence]) > -1e-9).all()  # in the same order
    assert found[0][1:] == ("", None)
    assert found[1][1:] == ("refit", 0)


def test_a_later_audit_learns_keeps_what_was_judged_and_gives_every_fold_what_influence_does(campaign):
    first = audited(campaign, "influence", 24, seed=5)
    answer(campaign)
    with transaction.atomic():
        by_influence = chances(audited(campaign, "influence"))
        transaction.set_rollback(True)
    made = audited(campaign)
    assert (made.gold_fit, made.learned_from) == ("refit", 1)
    learned = chances(made)
    assert sum(learned.values()) == pytest.approx(32, abs=1e-4)
    assert all(learned[item] >= chance for item, chance in chances(first).items())
    frame = campaign_arrays(campaign).frame
    fold = dict(zip(zip(frame["topic_id"], frame["doc_id"], strict=True), frame["fold"], strict=True))
    sums = np.zeros((2, 10))
    for item in campaign.items.select_related("topic", "document"):
        sums[:, fold[item.key[:2]]] += learned[item.pk], by_influence[item.pk]
    assert sums[0] == pytest.approx(sums[1], abs=1e-4)
    assert max(abs(learned[item] - by_influence[item]) for item in learned) > 0.01


def test_an_audit_that_waits_for_gold_teaches_nothing(campaign):
    audited(campaign, "influence", 24, seed=5)
    assert audited(campaign).learned_from == 0


def test_probabilities_of_a_fold_do_not_depend_on_what_its_own_audit_brought(campaign):
    audited(campaign, "influence", 24, seed=5)
    frame = campaign_arrays(campaign).frame
    fold = dict(zip(zip(frame["topic_id"], frame["doc_id"], strict=True), frame["fold"], strict=True))
    waiting = list(campaign.slots.filter(purpose="audit").select_related("item__topic", "item__document"))
    own = fold[waiting[0].item.key[:2]]
    gold, found = make_assessor(campaign, "greta", tier="gold"), []
    for grade in (0, 3):

        def say(slot, place, grade=grade):
            return grade if fold[slot.item.key[:2]] == own else (int(slot.item.document.doc_id[-2:])) % 4

        with transaction.atomic():
            for place, slot in enumerate(slots(campaign, "audit", state="open")):
                give(gold, slot, say(slot, place))
            found.append(chances(audited(campaign)))
            transaction.set_rollback(True)
    items = {item.pk: fold[item.key[:2]] for item in campaign.items.select_related("topic", "document")}
    same = [pk for pk, k in items.items() if k == own]
    others = [pk for pk, k in items.items() if k != own]
    assert [found[0][pk] for pk in same] == pytest.approx([found[1][pk] for pk in same], rel=1e-12)
    assert max(abs(found[0][pk] - found[1][pk]) for pk in others) > 1e-3  # the control


@pytest.mark.parametrize("fit", GoldFit.values)
def test_predictions_then_learn_from_all_audits_or_from_those_before(campaign, fit):
    audited(campaign, "influence", 24, seed=5)
    answer(campaign)
    audited(campaign, gold_fit=fit)
    answer(campaign)
    arrays = campaign_arrays(campaign)
    before = AuditEntry.objects.filter(audit__sequence=1, selected=True).count()
    assert arrays.audited.sum() > before
    assert arrays.fitted_gold.sum() == (before if fit == "exact" else arrays.audited.sum())
    assert arrays.n_fitted_audits == (1 if fit == "exact" else 2)
    third = audited(campaign, n=4)
    assert (third.gold_fit, third.learned_from) == (fit, arrays.n_fitted_audits)
    told = predicted_spread(campaign, complete_items(campaign), parse_measure("DCG@10"))
    assert told.n_expected == pytest.approx(24 if fit == "exact" else 32, abs=1e-3)
    assert 0 <= told.variance.min() < told.variance.max()


def test_a_release_tells_what_predictions_learned_from_and_its_verifier_fits_them_again(campaign, tmp_path):
    audited(campaign, "influence", 24, seed=5)
    answer(campaign)
    audited(campaign, gold_fit="exact")
    answer(campaign)
    recompute(campaign=campaign)
    folder = unpacked(release_of(campaign), tmp_path / "released")
    rows = json.loads((folder / "audits.json").read_text())
    assert [(row["strategy"], row["gold_fit"], row["learned_from"]) for row in rows] == [
        ("influence", "", None),
        ("learned", "exact", 1),
    ]
    report = verify(folder)
    assert report.different == []
    assert report.same["predictions of gold"] > 0
    # The control: a fit that learned from what the second audit found is noticed.
    text = (folder / "items.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    assert sum(row["fitted_gold"] for row in rows) < sum(row["audited"] for row in rows)
    change_lines(folder, "items.jsonl", lambda rows: [row.update(fitted_gold=row["audited"]) for row in rows])
    assert any(words.startswith("items.jsonl gold ") for words in verify(folder).different)


def test_what_the_first_audit_that_learned_was_made_with_stands(campaign):
    audited(campaign, "influence", 24, seed=5)
    answer(campaign)
    audited(campaign, gold_fit="exact", n=4)
    with pytest.raises(AuditRefused, match="was made with 'exact': later ones keep it, got 'refit'"):
        audited(campaign, gold_fit="refit", n=4)
    assert audited(campaign, gold_fit="exact", n=4).gold_fit == "exact"
    save_schedule(campaign=campaign, actor=None, strategy="learned", items_each_time=4, items_in_total=42)
    assert run_audit(campaign_id=str(campaign.pk)).gold_fit == "exact"  # not the schedule's refit
    with pytest.raises(FitFixed, match="stay as they were then: exact"):
        save_schedule(campaign=campaign, actor=None, gold_fit="refit")
    with pytest.raises(AuditRefused, match=r"gold_fit must be one of \['refit', 'exact'\], got 'best'"):
        audited(campaign, gold_fit="best", n=2)


def test_before_any_audit_learned_the_schedule_s_choice_is_taken(campaign):
    audited(campaign, "influence", 24, seed=5)
    answer(campaign)
    save_schedule(
        campaign=campaign,
        actor=None,
        strategy="learned",
        gold_fit="exact",
        items_each_time=8,
        items_in_total=42,
    )
    assert run_audit(campaign_id=str(campaign.pk)).gold_fit == "exact"


def test_silver_audits_learn_from_gold_and_leave_its_predictions_alone(campaign):
    audited(campaign, "influence", 24, seed=5)
    answer(campaign)
    made = audited(campaign, tier="silver", gold_fit="exact", n=10)
    assert (made.learned_from, learned_audits.fixed_gold_fit(campaign)) == (1, None)
    assert sum(chances(made).values()) == pytest.approx(10, abs=1e-4)
    assert campaign_arrays(campaign).n_fitted_audits == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"gold_fit": "best", "learned_from": 1},
        {"gold_fit": "refit", "learned_from": None},
        {"gold_fit": "", "learned_from": 1},
        {"gold_fit": "refit", "learned_from": 9},
    ],
)
def test_the_database_refuses_what_no_audit_can_have_learned(campaign, wrong):
    about = {"expected_in_total": 1.0, "n_eligible": 1, "n_selected": 1, "sequence": 9, "seed": 3}
    with transaction.atomic():  # the control
        Audit.objects.create(campaign=campaign, **about, gold_fit="refit", learned_from=8)
        transaction.set_rollback(True)
    with pytest.raises(IntegrityError, match="sampling_audit_learned"), transaction.atomic():
        Audit.objects.create(campaign=campaign, **about, **wrong)
