"""Declared looks through the product: what an audit records, when their interval stands, and that a release has it."""

import json
from copy import deepcopy

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.urls import reverse
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign
from small_release import release_of, unpacked, wrong_now_and_then

from analytics.estimation.group_sequential import Look, bound_at_look
from analytics.estimation.sequences import t_of_same_tail
from analytics.frames import campaign_arrays
from analytics.models import Computation
from analytics.releases.verify import verify
from analytics.services.recomputation import recompute
from judging.models import Campaign
from sampling.models import Audit, AuditSchedule
from sampling.services.audit_schedules import LooksFixed, LooksOfGold, save_schedule
from sampling.services.auditing import audit
from touchstone.models import User

pytestmark = pytest.mark.django_db
DRAWN = 42


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("world"), kind="pool")
    judge_all(made, [make_assessor(made, name) for name in ("ann", "ben")], grade=wrong_now_and_then)
    return made


@pytest.fixture
def campaign(made_once, db):
    return deepcopy(made_once)


@pytest.fixture
def gold(campaign):
    return make_assessor(campaign, "greta", tier="gold")


def declare(campaign, n_looks, **fields):
    return save_schedule(campaign=campaign, actor=None, n_looks=n_looks, **{"items_in_total": 40} | fields)


def audited(campaign, gold, in_all):
    made = audit(campaign=campaign, items_each_time=in_all, items_in_total=in_all, seed=5)
    judge_audit(campaign, gold)
    return made


def factors(computation):
    """Return the half-widths of the corrected numbers over their standard errors, and n."""
    rows = computation.estimates.filter(method="corrected", always_low__isnull=False, standard_error__gt=0)
    rows = rows.filter(
        always_low__gt=F("range_low"), always_high__lt=F("range_high")
    )  # others were cut off there
    table = rows.values_list("always_low", "always_high", "standard_error", "n")
    return np.array([((high - low) / 2 / error, n) for low, high, error, n in table]).T


# -- what is recorded -------------------------------------------------------------------------------------------


def test_the_first_declared_audits_record_what_their_interval_follows_from(campaign, gold):
    declare(campaign, 2)
    audited(campaign, gold, 24)
    save_schedule(campaign=campaign, actor=None, items_in_total=36)
    audited(campaign, gold, 30)
    audited(campaign, gold, 34)
    names = ("look", "n_looks", "n_planned", "n_drawn")
    assert list(Audit.objects.order_by("sequence").values_list(*names)) == [
        (1, 2, 40, DRAWN),
        (2, 2, 36, DRAWN),
        (None, None, None, None),
    ]


def test_silver_audits_are_no_looks_and_without_a_declaration_none_is(campaign, gold):
    silver = audit(campaign=campaign, items_each_time=10, items_in_total=10, tier="silver", seed=8)
    declare(campaign, 3)  # an audit of the silver tier fixes nothing
    made = audited(campaign, gold, 24)
    assert (silver.look, made.look) == (None, 1)


def test_looks_are_declared_before_the_first_gold_audit_and_stay(campaign, gold):
    declare(campaign, 5)
    declare(campaign, 4)
    audit(campaign=campaign, items_each_time=24, items_in_total=24, seed=5)
    for n_looks in (None, 5):
        with pytest.raises(LooksFixed, match="before the first audit"):
            declare(campaign, n_looks)
    save_schedule(campaign=campaign, actor=None, n_looks=4, items_in_total=41)  # as it is
    found = AuditSchedule.objects.get()
    assert (found.n_looks, found.items_in_total) == (4, 41)
    with pytest.raises(IntegrityError, match="declared before the first"), transaction.atomic():
        AuditSchedule.objects.update(n_looks=5)


def test_looks_are_of_the_gold_tier(campaign):
    with pytest.raises(LooksOfGold):
        declare(campaign, 5, tier="silver")
    declare(campaign, 5)
    with pytest.raises(LooksOfGold):
        save_schedule(campaign=campaign, actor=None, tier="silver")
    assert AuditSchedule.objects.get().tier == "gold"


@pytest.mark.parametrize("fields", [{"n_looks": 1}, {"n_looks": 51}, {"n_looks": 5, "tier": "silver"}])
def test_the_database_refuses_what_no_declaration_is(campaign, fields):
    declare(campaign, None)
    with pytest.raises(IntegrityError, match="auditschedule_looks"), transaction.atomic():
        AuditSchedule.objects.update(**fields)


# -- which interval stands ----------------------------------------------------------------------------------------


def test_at_a_declared_look_the_limits_are_its_bound_and_else_the_sequence(campaign, gold):
    declare(campaign, 2)
    audited(campaign, gold, 26)
    computation = recompute(campaign=campaign)
    assert (computation.look, computation.n_looks) == (1, 2)
    assert computation.look_words == "declared look 1 of 2"
    one = Look(1, 2, 26.0, 40, DRAWN)
    found, n = factors(computation)
    assert n.size > 5
    assert found == pytest.approx(t_of_same_tail(bound_at_look([one]), n), rel=1e-9)

    audited(campaign, gold, 34)
    computation = recompute(campaign=campaign)
    last, n = factors(computation)
    two = [one, Look(2, 2, 34.0, 40, DRAWN)]
    assert (computation.look, computation.n_looks) == (2, 2)
    assert last == pytest.approx(t_of_same_tail(bound_at_look(two), n), rel=1e-9)

    audited(campaign, gold, 38)  # more than were declared
    computation = recompute(campaign=campaign)
    sequence, n = factors(computation)
    assert (computation.look, computation.n_looks, computation.look_words) == (None, None, "")
    assert (sequence > 3).all()
    assert (last < 3).all()  # narrower


def test_while_the_next_audit_is_under_way_the_number_is_that_of_the_look(campaign, gold):
    declare(campaign, 3)
    audited(campaign, gold, 26)
    before = recompute(campaign=campaign)
    audit(campaign=campaign, items_each_time=34, items_in_total=34)
    assert campaign_arrays(campaign).n_audit_pending > 0
    meanwhile = recompute(campaign=campaign)
    limits = [
        list(c.estimates.filter(method="corrected").order_by("pk").values_list("value", "always_low"))
        for c in (before, meanwhile)
    ]
    assert limits[0] == limits[1]
    assert meanwhile.look == 1


def test_no_look_before_the_first_audit_is_complete_nor_where_nothing_was_declared(campaign, gold):
    declare(campaign, 2)
    assert recompute(campaign=campaign).look is None
    audit(campaign=campaign, items_each_time=26, items_in_total=26, seed=5)
    assert campaign_arrays(campaign).looks == ()
    judge_audit(campaign, gold)
    assert [look.number for look in campaign_arrays(campaign).looks] == [1]


def test_a_look_that_has_nothing_to_spend_has_the_sequence(campaign, gold):
    declare(campaign, 4, items_in_total=26)
    audited(campaign, gold, 26)  # all that was planned
    audited(campaign, gold, 34)
    computation = recompute(campaign=campaign)
    assert len(campaign_arrays(campaign).looks) == 2
    assert computation.look is None
    assert (factors(computation)[0] > 3).all()


def test_a_computation_is_a_look_of_those_declared(campaign):
    with pytest.raises(IntegrityError, match="computation_look"), transaction.atomic():
        Computation.objects.create(
            campaign=Campaign.objects.get(), last_judgment_id=1, n_judgments=1, n_items=1, n_audited=0,
            n_gold_checks=0, seconds=1.0, look=3, n_looks=2,
        )  # fmt: skip


@pytest.mark.parametrize("is_look", [True, False])
def test_the_page_of_results_says_which_of_the_two_it_shows(campaign, gold, client, is_look):
    declare(campaign, 3 if is_look else None)
    audited(campaign, gold, 30)
    recompute(campaign=campaign)
    client.force_login(User.objects.create_superuser("boss"))
    page = client.get(reverse("console:campaign-results", args=[campaign.pk])).content.decode()
    assert ("This is declared look 1 of 3." in page) == is_look
    assert ("declared look 1 of 3: " in page) == is_look
    assert ("the confidence sequence is valid at every look" in page) != is_look


# -- in a release --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(campaign, gold, tmp_path):
    declare(campaign, 3)
    audited(campaign, gold, 26)
    audited(campaign, gold, 34)
    recompute(campaign=campaign)
    return unpacked(release_of(campaign), tmp_path / "released")


def test_a_release_has_the_sizes_of_its_looks_and_verifies(folder):
    said = json.loads((folder / "estimates.json").read_text("utf-8"))
    assert said["looks"] == [
        {"number": 1, "declared": 3, "n": 26.0, "n_planned": 40, "n_items": DRAWN},
        {"number": 2, "declared": 3, "n": 34.0, "n_planned": 40, "n_items": DRAWN},
    ]
    assert (said["computation"]["look"], said["computation"]["n_looks"]) == (2, 3)
    report = verify(folder)
    assert report.different == []
    assert report.same["declared look"] == 1


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [("n", 20.0, 0), ("n_planned", 80, 1), ("declared", 2, 1), ("n_items", 1000, 1)],
)
def test_a_size_that_was_changed_is_found(folder, field, value, place):
    path = folder / "estimates.json"
    said = json.loads(path.read_text("utf-8"))
    said["looks"][place][field] = value
    path.write_text(json.dumps(said), "utf-8")
    assert any("always_low" in words for words in verify(folder).different)


def test_a_sequence_that_is_called_a_look_is_found(folder):
    path = folder / "estimates.json"
    said = json.loads(path.read_text("utf-8"))
    said["looks"] = []
    path.write_text(json.dumps(said), "utf-8")
    different = verify(folder).different
    assert any("computation look" in words for words in different)
    assert any("always_high" in words for words in different)
