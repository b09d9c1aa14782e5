"""The log of a campaign from its rows, what is stored of a screening, and when one is due."""

import uuid
from datetime import timedelta

import numpy as np
import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations import AddIndex, RunSQL
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from screened_campaign import CAREFUL, CARELESS, give_in, make_screened
from small_campaign import (
    N_FRAME,
    judge_audit,
    lease,
    make_assessor,
    make_campaign,
    make_undrawn,
    slots,
    truth_of,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.frames import screening_evidence
from analytics.models import AssessorScreening, Flag, Screening
from analytics.screening.log import UNKNOWN
from analytics.services.recomputation import queue_recomputation, recompute
from analytics.services.screening import (
    OF_COMPUTATION,
    current_flags,
    screen_campaign,
    start_due_screenings,
)
from judging.models import Adjudication, Assessor
from judging.services.assign import revise, submit
from judging.services.campaigns import set_status
from judging.services.judgment_files import import_judgments
from judging.services.leases import requeue
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Event, Job, User

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("screened-campaigns")]


@pytest.fixture(autouse=True)
def no_heartbeat(monkeypatch):
    """Jobs of these tests are in a transaction that the heartbeat's own connection cannot see."""
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)


@pytest.fixture(scope="module")
def made_once(django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_screened(tmp_path_factory.mktemp("screened"))
        transaction.set_rollback(True)


@pytest.fixture
def screened(made_once, django_db_blocker):
    with django_db_blocker.unblock(), transaction.atomic():
        yield made_once
        transaction.set_rollback(True)


def rows_of(evidence, name):
    [number] = [place for place, one in enumerate(evidence.assessors) if one.user.username == name]
    return evidence.log.assessor == number


# -- the log ----------------------------------------------------------------------------------------------------


def test_the_log_has_a_row_for_every_judgment_in_the_order_of_presentation(screened):
    campaign, _ = screened
    evidence = screening_evidence(campaign)
    log = evidence.log
    assert log.assessor.size == 6 * N_FRAME
    assert [one.user.username for one in evidence.assessors] == [*CAREFUL, CARELESS]
    assert evidence.topic_ids == ["t0", "t1", "t2"]
    assert log.has_order.all()
    assert not np.isnan(log.prior).any()
    assert (log.truth == UNKNOWN).all()
    own = rows_of(evidence, CARELESS)
    assert not log.relevant[own].any()
    assert log.seconds[own].max() < 1
    ann = rows_of(evidence, "ann") & (log.topic == 1)
    assert evidence.grade[ann].tolist() == [(document + 1) % 4 for document in range(14)]
    assert log.relevant[ann].tolist() == [int((document + 1) % 4 >= 1) for document in range(14)]
    assert log.position[ann].tolist() == list(range(14))


def test_the_log_takes_few_statements_however_many_judgments(screened):
    campaign, _ = screened
    screening_evidence(campaign)
    with CaptureQueriesContext(connection) as statements:
        screening_evidence(campaign)
    # Nothing is read twice but the writers of judgments, before the log and after it: whoever writes keeps nothing.
    assert len(statements) <= 10
    sent = [query["sql"] for query in statements]
    for table in ("sampling_draw", "judging_assessor"):
        assert len([sql for sql in sent if f'FROM "{table}"' in sql]) == 1, table


def test_a_revision_counts_with_its_grade_and_a_late_judgment_counts_too(tmp_path):
    campaign = make_campaign(tmp_path)
    ann, ben, cleo = (make_assessor(campaign, name) for name in ("ann", "ben", "cleo"))
    first, second = slots(campaign)[:2]
    judgment = give_in(ann, first, 0, 4)
    again = {"token": judgment.lease_token, "client_token": uuid.uuid4(), "active_milliseconds": 2000}
    revise(assessor=ann, grade=2, **again)
    token = lease(ben, second)
    campaign.slots.filter(pk=second.pk).update(
        state="open", assessor=None, token=None, leased_at=None, lease_until=None
    )
    for other in campaign.slots.filter(item=second.item, state="open"):
        give_in(cleo if other.pk == second.pk else make_assessor(campaign, f"x{other.pk}"), other, 1, 5)
    late = submit(assessor=ben, token=token, client_token=uuid.uuid4(), grade=3, active_milliseconds=7000)
    assert late.slot_id is None
    evidence = screening_evidence(campaign)
    own = rows_of(evidence, "ann")
    assert (evidence.grade[own].tolist(), evidence.log.seconds[own].tolist()) == ([2], [6.0])
    own = rows_of(evidence, "ben")
    assert (evidence.grade[own].tolist(), evidence.log.seconds[own].tolist()) == ([3], [7.0])


def test_audits_adjudications_and_gold_checks_are_the_truth_of_others(tmp_path):
    campaign = make_campaign(tmp_path, budget=15, gold_check_rate=0.2)
    ann, ben = make_assessor(campaign, "ann"), make_assessor(campaign, "ben")
    gold = make_assessor(campaign, "gina", tier="gold")
    for slot in slots(campaign, state="open"):
        give_in((ann, ben)[slot.number - 1], slot, 0, 3)
    check = slots(campaign, "check", state="open")[0]
    give_in(make_assessor(campaign, "cleo"), check, 0, 3)
    evidence = screening_evidence(campaign)
    assert evidence.log.truth[rows_of(evidence, "cleo")].tolist() == [int(truth_of(check) >= 1)]
    assert set(evidence.log.truth[rows_of(evidence, "ann")]) == {UNKNOWN}
    audit(campaign=campaign, items_each_time=100, items_in_total=100, seed=5)
    judge_audit(campaign, gold)
    judged = slots(campaign, number=1)
    manager = User.objects.create(username="mia", role="manager")
    decided = 3 - truth_of(judged[0])
    Adjudication.objects.create(item=judged[0].item, grade=decided, decided_by=manager)
    evidence = screening_evidence(campaign)
    assert "gina" not in {one.user.username for one in evidence.assessors}
    true_grades = [decided, *(truth_of(slot) for slot in judged[1:])]
    own = rows_of(evidence, "ann")
    assert evidence.log.truth[own].tolist() == [int(grade >= 1) for grade in true_grades]


def test_what_was_set_aside_still_says_how_somebody_judges(screened):
    campaign, people = screened
    requeue(assessor=people[CARELESS], actor=None)
    evidence = screening_evidence(campaign)
    assert rows_of(evidence, CARELESS).sum() == N_FRAME


def test_the_order_of_imported_judgments_is_unknown(tmp_path):
    campaign = make_campaign(tmp_path)
    file = tmp_path / "labels.csv"
    items = [(slot.item.topic.topic_id, slot.item.document.doc_id) for slot in slots(campaign, number=1)]
    lines = ["Input.topic_id,Input.doc_id,WorkerId,Answer.grade", *(f"{t},{d},w1,1" for t, d in items)]
    file.write_text("\n".join(lines) + "\n")
    import_judgments(campaign=campaign, source=file, name=file.name, file_format="crowd", source_name="x")
    give_in(make_assessor(campaign, "ben"), slots(campaign, number=2)[0], 1, 5)
    log = screening_evidence(campaign).log
    assert log.has_order.tolist() == [False] * N_FRAME + [True]
    assert np.isnan(log.seconds[~log.has_order]).all()


# -- what is stored -----------------------------------------------------------------------------------------------


def test_the_careless_assessor_alone_is_flagged_and_every_test_has_an_answer(screened):
    campaign, people = screened
    computation = recompute(campaign=campaign)
    made = screen_campaign(campaign=campaign)
    assert (made.computation, made.n_judgments) == (computation, 6 * N_FRAME)
    flags = list(current_flags(campaign))
    assert {flag.assessor for flag in flags} == {people[CARELESS]}
    assert {"speed", "fast-topics", "all-alike", "chance"} <= {flag.kind for flag in flags}
    tested = [flag.p_adjusted for flag in flags if flag.kind != "chance"]  # a rule without a p comes last
    assert tested == sorted(tested)
    assert flags[-1].kind == "chance"
    alike = next(flag for flag in flags if flag.kind == "all-alike")
    assert (alike.effect, alike.topics) == (1.0, ["t0", "t1", "t2"])
    assert alike.evidence.startswith(
        "Finds nothing relevant in more topics than the other assessors: 100 % of"
    )
    row = AssessorScreening.objects.get(screening=made, assessor=people[CARELESS])
    assert row.tests["serial"] == {"refusal": "all labels alike"}
    assert row.tests["speed"]["p_adjusted"] < 0.01
    assert [topic[:3] for topic in row.profile["topics"]] == [["t0", 14, 0], ["t1", 14, 0], ["t2", 14, 0]]
    assert made.overview["assessors"][str(people["ann"].pk)]["shares"] == pytest.approx(
        [11 / 42, 11 / 42, 10 / 42, 10 / 42], abs=0.05
    )


def test_a_computation_is_screened_once_and_nothing_of_it_changes(screened):
    campaign, _ = screened
    assert screen_campaign(campaign=campaign) is None  # nothing was computed
    recompute(campaign=campaign)
    made = screen_campaign(campaign=campaign)
    n_flags = Flag.objects.count()
    assert screen_campaign(campaign=campaign) == made
    assert Flag.objects.count() == n_flags
    for model in (Screening, AssessorScreening, Flag):
        for change in (lambda rows: rows.update(id=1), lambda rows: rows._raw_delete(rows.db)):
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                change(model.objects.all())


def test_flags_of_the_last_screening_stand_until_the_next_one(screened):
    campaign, people = screened
    recompute(campaign=campaign)
    screen_campaign(campaign=campaign)
    of_log = current_flags(campaign).exclude(kind__in=OF_COMPUTATION)
    before = set(of_log.values_list("pk", flat=True))
    newer = recompute(campaign=campaign)
    assert set(of_log.values_list("pk", flat=True)) == before
    Flag.objects.create(assessor=people["ann"], computation=newer, kind="accuracy", evidence="wrong")
    assert set(current_flags(campaign).values_list("assessor__user__username", flat=True)) == {
        CARELESS,
        "ann",
    }
    screen_campaign(campaign=campaign)
    assert not before & set(current_flags(campaign).values_list("pk", flat=True))


def test_with_few_assessors_nobody_is_flagged_and_the_reason_is_named(tmp_path):
    campaign = make_campaign(tmp_path)
    people = [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]
    for slot in slots(campaign, state="open"):
        give_in(people[slot.number - 1], slot, 0, 0.4)
    recompute(campaign=campaign)
    made = screen_campaign(campaign=campaign)
    assert not current_flags(campaign).exists()
    for row in made.assessors.all():
        assert all("refusal" in answer or answer["p_adjusted"] > 0.1 for answer in row.tests.values())
        assert row.tests["speed"]["refusal"]


def test_a_machine_is_not_tested_for_pace(screened):
    campaign, people = screened
    Assessor.objects.filter(pk=people[CARELESS].pk).update(kind="machine")
    recompute(campaign=campaign)
    made = screen_campaign(campaign=campaign)
    row = made.assessors.get(assessor=people[CARELESS])
    assert row.tests["speed"] == {"refusal": "a machine's pace says nothing"}


# -- pausing ----------------------------------------------------------------------------------------------------------


def test_a_flag_pauses_nobody_unless_the_campaign_says_so(screened):
    campaign, _ = screened
    recompute(campaign=campaign)
    screen_campaign(campaign=campaign)
    assert not campaign.assessors.filter(status="suspended").exists()
    campaign.pause_below = 1e-9  # below every p
    campaign.save()
    recompute(campaign=campaign)
    screen_campaign(campaign=campaign)
    assert not campaign.assessors.filter(status="suspended").exists()


def test_below_the_adjusted_p_of_the_campaign_an_assessor_is_paused_once_and_recorded(screened):
    campaign, people = screened
    campaign.pause_below = 0.05
    campaign.save()
    recompute(campaign=campaign)
    screen_campaign(campaign=campaign)
    assert [one.user.username for one in campaign.assessors.filter(status="suspended")] == [CARELESS]
    event = Event.objects.get(verb="set suspended")
    worst = current_flags(campaign).first()
    assert (event.actor, event.subject) == (None, f"campaign:{campaign.pk}")
    careless = people[CARELESS].user_id
    assert event.detail == {"assessor": careless, "test": worst.kind, "p_adjusted": worst.p_adjusted}
    set_status(assessor=people[CARELESS], status="active", actor=None)  # a manager looked, and resumed
    recompute(campaign=campaign)
    screen_campaign(campaign=campaign)
    assert not campaign.assessors.filter(status="suspended").exists()


@pytest.mark.parametrize("p", [0, -0.1, 0.11, float("nan")])
def test_the_limit_of_pausing_is_a_p_below_which_there_are_flags(screened, p):
    campaign, _ = screened
    with pytest.raises(IntegrityError, match="judging_campaign_pause"), transaction.atomic():
        type(campaign).objects.filter(pk=campaign.pk).update(pause_below=p)


# -- when -----------------------------------------------------------------------------------------------------------


def screenings(campaign, **conditions):
    return Job.objects.filter(kind="screening", payload={"campaign": str(campaign.pk)}, **conditions)


def test_a_screening_follows_each_recomputation_one_at_a_time(screened):
    campaign, _ = screened
    queue_recomputation(campaign=campaign)
    jobs.run(Job.objects.get(kind="estimate").pk)
    job = screenings(campaign).get()
    start_due_screenings()
    assert screenings(campaign).count() == 1
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.result["computation"]) == ("done", campaign.computations.last().pk)
    start_due_screenings()
    assert screenings(campaign).count() == 1


def test_what_no_screening_saw_is_screened_by_the_tick_but_no_failure_is_repeated(screened):
    campaign, _ = screened
    start_due_screenings()
    assert not screenings(campaign).exists()  # no numbers, nothing to flag
    recompute(campaign=campaign)
    start_due_screenings()
    job = screenings(campaign).get()
    Job.objects.filter(pk=job.pk).update(state="failed", finished_at=timezone.now())
    start_due_screenings()
    assert screenings(campaign).count() == 1
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(hours=1))
    start_due_screenings()  # that job was of a computation before
    assert screenings(campaign).count() == 2


def test_a_screening_without_numbers_or_draw_is_refused_with_a_reason(tmp_path):
    campaign = make_undrawn(tmp_path)
    job = jobs.enqueue(kind="screening", payload={"campaign": str(campaign.pk)})
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "no numbers were computed yet: judgments come first")


def one_by_one(sql):
    """Return statements of a migration that make indexes while nothing else goes on."""
    if isinstance(sql, list | tuple):
        return [one_by_one(part) for part in sql]
    return sql.replace(" CONCURRENTLY", "") if isinstance(sql, str) else sql


def test_flags_of_an_older_database_keep_their_words(screened, monkeypatch):
    # Within the test's transaction no index can be made beside what goes on.
    for way in ("database_forwards", "database_backwards"):
        monkeypatch.setattr(AddIndexConcurrently, way, getattr(AddIndex, way))
    run_sql = RunSQL._run_sql
    monkeypatch.setattr(RunSQL, "_run_sql", lambda self, editor, sql: run_sql(self, editor, one_by_one(sql)))
    campaign, people = screened
    computation = recompute(campaign=campaign)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    executor = MigrationExecutor(connection)
    before = [("analytics", "0005_methods_from_the_registry")]
    executor.migrate(before)
    old = executor.loader.project_state(before).apps.get_model("analytics", "Flag")
    change = "the answers on gold checks change with time (p = 0.01, of all assessors)"
    words = {"ann": "right in 7 % of 30 gold labels", "ben": change, "cleo": f"right in 7 %; {change}"}
    for name, evidence in words.items():
        old.objects.create(assessor_id=people[name].pk, computation_id=computation.pk, evidence=evidence)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    older = current_flags(campaign).exclude(assessor=people[CARELESS])  # whom this version flags by itself
    flags = {flag.assessor.user.username: flag for flag in older}
    assert {name: flag.evidence for name, flag in flags.items()} == words
    assert {name: flag.kind for name, flag in flags.items()} == {
        "ann": "accuracy",
        "ben": "change",
        "cleo": "accuracy",
    }
    assert flags["ann"].topics == []
