"""Who judged: found again from release and log while only the key is gone, and by no join once it was erased."""

from collections import defaultdict
from pathlib import Path

import pytest
from django.db import DatabaseError, transaction
from ledger_world import run
from made_releases import opened, released
from psycopg.errors import InsufficientPrivilege
from small_campaign import DEPTH, judge_all, make_assessor, make_undrawn
from small_release import unpacked

from analytics.models import AssessorScreening, ConfusionEstimate, Flag, Release
from analytics.releases.pseudonyms import pseudonym
from analytics.releases.services.releasing import forget_key, make_release
from analytics.releases.verify import verify
from analytics.services.recomputation import recompute
from analytics.services.screening import screen_campaign
from judging.models import Assessor, Judgment, Lease, Message, Slot
from judging.services.campaigns import close_campaign, open_campaign
from judging.services.messages import ask, send
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone import jobs
from touchstone.ledger.verification import chain_faults, counter_faults
from touchstone.models import Erasure, Event, Job, User
from touchstone.people.erasing_judges import (
    STAND_IN,
    CannotEraseJudges,
    erase_judges,
    judges_of,
    queue_erasing,
)

pytestmark = pytest.mark.django_db
NAMES = ["ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ida"]
# What a release says of a judgment, as the log says it.
LOG = """
SELECT u.username, t.topic_id, d.doc_id, a.tier, a.kind, j.sequence, j.grade, j.created_at::date::text,
       floor(j.active_milliseconds / 5000.0 + 0.5) * 5
  FROM judging_judgment j JOIN judging_assessor a ON a.id = j.assessor_id JOIN touchstone_user u ON u.id = a.user_id
  JOIN judging_item i ON i.id = j.item_id JOIN judging_topic t ON t.id = i.topic_id
  JOIN judging_document d ON d.id = i.document_id WHERE i.campaign_id = %s
"""
# Tables that may still name the person's own row: they say nothing of judgments.
STILL_NAMED = {
    "judging_importedname",
    "judging_message",
    "judging_participant",
    "judging_traininganswer",
    "judging_traininggrant",
}


@pytest.fixture
def campaign(tmp_path):
    """A closed campaign of nine judges, whose grades differ: every one has a pattern of their own."""
    made = make_undrawn(tmp_path, judgments_per_item=len(NAMES))
    draw(campaign=made, design=Design("pool", (), measure="DCG@10", depth=DEPTH, budget=6), seed=20)
    open_campaign(campaign=made, actor=None)
    people = [make_assessor(made, name) for name in NAMES]
    items = list(made.items.order_by("pk").values_list("pk", flat=True))
    judge_all(made, people, grade=lambda slot, place: place // 4 ** (items.index(slot.item_id) % 2) % 4)
    boss = User.objects.create(username="boss", role="manager")
    ask(assessor=people[0], text="What of this one?", token=Lease.objects.filter(assessor=people[0])[0].token)
    send(assessor=people[1], sender=boss, text="Slower, please.")
    close_campaign(campaign=made, actor=boss)
    return made


def found_again(release, campaign):
    """Return by pseudonym whose it is, where one name alone has all its judgments: by all columns that both have."""
    of_names, of_pseudonyms = defaultdict(list), defaultdict(list)
    for name, *row in run(LOG, campaign.pk):
        of_names[name].append((*(str(value) for value in row[:-1]), float(row[-1])))
    columns = ("topic_id", "doc_id", "tier", "kind", "sequence", "grade", "date")
    for row in opened(release).rows("judgments.jsonl"):
        told = tuple(str(row[name]) for name in columns)
        of_pseudonyms[row["assessor"]].append((*told, row["active_seconds"]))
    found = {}
    for one, rows in of_pseudonyms.items():
        same = [name for name, own in of_names.items() if sorted(own) == sorted(rows)]
        if len(same) == 1 and same[0] in NAMES:
            found[one] = same[0]
    return found


def referring(keys):
    """Return the tables with a foreign key to an assessor, in which one of the keys stands."""
    columns = run(
        """SELECT c.conrelid::regclass::text, a.attname FROM pg_constraint c JOIN pg_attribute a
             ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
            WHERE c.contype = 'f' AND c.confrelid = 'judging_assessor'::regclass"""
    )
    assert len(columns) >= 12
    return {
        table
        for table, column in columns
        if run(f'SELECT FROM {table} WHERE "{column}" = ANY (%s) LIMIT 1', keys)
    }


def test_release_and_log_name_all_nine_with_the_key_forgotten_and_none_once_who_judged_is_erased(
    campaign, tmp_path
):
    release = released(campaign, version="1.0")
    again = released(campaign, version="1.1")
    key = release.pseudonym_key
    names = {pseudonym(key, one.pk): one.user.get_username() for one in campaign.assessors.all()}
    forget_key(release=release, actor=None)
    assert found_again(release, campaign) == names
    assert sorted(names.values()) == NAMES
    erased = erase_judges(campaign=campaign, actor=None)
    assert (erased.n_people, erased.n_judgments) == (9, 54)
    assert found_again(release, campaign) == {}
    assert found_again(again, campaign) == {}
    assert set(Release.objects.values_list("pseudonym_key", flat=True)) == {""}
    assert verify(unpacked(Path(again.file.path).read_bytes(), tmp_path / "again")).different == []


def test_nothing_that_names_a_person_says_what_they_judged_and_the_ledger_verifies(campaign):
    computation = recompute(campaign=campaign)
    screen_campaign(campaign=campaign)
    before = list(computation.estimates.order_by("pk").values())
    people = list(judges_of(campaign))
    keys, users = [one.pk for one in people], [one.user_id for one in people]
    was = {row["id"]: row for row in Judgment.objects.values()}
    n_leases, n_confusions = Lease.objects.count(), ConfusionEstimate.objects.exclude(assessor=None).count()
    boss = User.objects.get(username="boss")
    erase_judges(campaign=campaign, actor=boss)
    assert referring(keys) <= STILL_NAMED
    assert not Message.objects.filter(item__isnull=False).exists()
    for event in Event.objects.all():
        assert event.actor_id not in users
        assert event.subject not in {f"assessor:{key}" for key in keys}
        assert event.detail.get("assessor") not in users
    stand_ins = campaign.assessors.filter(user__username__startswith=STAND_IN).select_related("user")
    assert stand_ins.count() == 9
    assert not any(one.user.is_active or one.user.has_usable_password() for one in stand_ins)
    assert {one.n_judged for one in stand_ins} == {6}
    assert set(Assessor.objects.filter(pk__in=keys).values_list("n_judged", "status")) == {(0, "suspended")}
    # All else of every judgment stays as it was, and the numbers with it.
    for row in Judgment.objects.values():
        changed = {name for name, value in row.items() if value != was[row["id"]][name]}
        assert changed == {"assessor_id", "client_token"}
    assert not Slot.objects.filter(assessor__in=keys).exists()
    assert Lease.objects.filter(assessor__in=stand_ins).count() == n_leases
    assert ConfusionEstimate.objects.filter(assessor__in=stand_ins).count() == n_confusions
    keys_told = ConfusionEstimate.objects.exclude(assessor=None).values_list("key", "assessor_id")
    assert all(key == str(assessor) for key, assessor in keys_told)
    assert (Flag.objects.count(), AssessorScreening.objects.count()) == (0, 0)
    assert list(computation.estimates.order_by("pk").values()) == before
    assert list(chain_faults()) == []
    assert list(counter_faults()) == []
    assert Erasure.objects.filter(table="judging_judgment").count() == len(was)
    told = Event.objects.get(verb="erased who judged")
    assert (told.actor, told.detail) == (boss, {"n_people": 9, "n_judgments": 54})


def test_the_hash_of_a_row_before_tells_nobody_who_it_was(campaign):
    """Whoever knows all else of a row and guesses the person does not find its old hash: its token was random."""
    one = Judgment.objects.order_by("pk").first()
    judge = one.assessor_id
    erase_judges(campaign=campaign, actor=None)
    [[old]] = run(
        "SELECT old FROM touchstone_erasure WHERE \"table\" = 'judging_judgment' AND row = %s", one.pk
    )
    with transaction.atomic():
        run("SET LOCAL session_replication_role = replica")
        run("SET CONSTRAINTS ALL IMMEDIATE")
        run("ALTER TABLE judging_judgment DISABLE TRIGGER USER")
        run("UPDATE judging_judgment SET assessor_id = %s WHERE id = %s", judge, one.pk)
        digests = run("SELECT digest FROM touchstone_line_digests('judging_judgment', 'id', %s)", [one.pk])
        assert digests != [(old,)]
        run("UPDATE judging_judgment SET client_token = %s WHERE id = %s", one.client_token, one.pk)
        # The control: with the token that is gone it is the old hash.
        digests = run("SELECT digest FROM touchstone_line_digests('judging_judgment', 'id', %s)", [one.pk])
        assert digests == [(old,)]
        transaction.set_rollback(True)


def test_a_later_release_is_made_of_the_same_numbers_and_verifies(campaign, tmp_path):
    first = released(campaign, version="1.0")
    erase_judges(campaign=campaign, actor=None)
    second = released(campaign, version="2.0")
    assert opened(first).text("qrels.txt") == opened(second).text("qrels.txt")
    assert verify(unpacked(Path(second.file.path).read_bytes(), tmp_path / "second")).different == []
    assert len(opened(second).rows("assessors.jsonl")) == 18  # nine people without a judgment, nine stand-ins


def test_it_is_refused_while_judging_goes_on_while_a_release_is_made_and_when_nobody_is_named(campaign):
    boss = User.objects.get(username="boss")
    open_campaign(campaign=campaign, actor=boss)
    for act in (erase_judges, queue_erasing):
        with pytest.raises(CannotEraseJudges, match="not closed"):
            act(campaign=campaign, actor=boss)
    close_campaign(campaign=campaign, actor=boss)
    making = make_release(campaign=campaign, version="1.0", actor=boss)
    with pytest.raises(CannotEraseJudges, match="release of it is being made"):
        erase_judges(campaign=campaign, actor=boss)
    jobs.cancel(making.job)
    asked = queue_erasing(campaign=campaign, actor=boss)
    assert queue_erasing(campaign=campaign, actor=boss) == asked
    assert Job.objects.filter(kind="erase-judges").count() == 1
    erase_judges(campaign=campaign, actor=boss)
    n = Erasure.objects.count()
    with pytest.raises(CannotEraseJudges, match="nobody is named"):
        erase_judges(campaign=campaign, actor=boss)
    assert Erasure.objects.count() == n


def test_the_function_moves_rows_to_stand_ins_alone(campaign):
    judge, other = judges_of(campaign)[:2]
    stranger = make_assessor(campaign, "zoe")
    for keys, stand_ins in (
        ([judge.pk], [other.pk]),
        ([judge.pk], [stranger.pk]),
        ([], []),
        ([judge.pk], []),
    ):
        with pytest.raises(DatabaseError) as refused, transaction.atomic():
            run(
                "SELECT touchstone_erase_judges(%s, %s::bigint[], %s::bigint[])", campaign.pk, keys, stand_ins
            )
        assert isinstance(refused.value.__cause__, InsufficientPrivilege)
    open_campaign(campaign=campaign, actor=None)
    with pytest.raises(DatabaseError, match="closed campaign alone"), transaction.atomic():
        run("SELECT touchstone_erase_judges(%s, %s, %s)", campaign.pk, [judge.pk], [stranger.pk])


def test_nobody_else_moves_a_judgment_a_lease_or_a_filled_place(campaign):
    """Not even with the setting that lets the owner's functions pass, in columns that they do not change."""
    setting = "SELECT set_config('touchstone.change', 'UPDATE ' || pg_current_xact_id()::text, true)"
    recompute(campaign=campaign)
    for statement in (
        "UPDATE judging_judgment SET grade = 3",
        "UPDATE judging_lease SET leased_at = now()",
        "UPDATE judging_slot SET state = 'open', assessor_id = NULL WHERE state = 'done'",
        "UPDATE analytics_confusionestimate SET accuracy = 1 WHERE accuracy IS NOT NULL OR TRUE",
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            run(f"{setting}; {statement}")
