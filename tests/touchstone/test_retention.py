"""What is finished goes after its time, what something rests on stays, and nobody removes anything else."""

from collections import Counter
from datetime import timedelta

import pytest
from database_roles import session
from django.contrib.sessions.models import Session
from django.db import DatabaseError, transaction
from django.utils import timezone
from ledger_world import run
from quick_flush import unguarded
from small_campaign import judge_all, make_assessor, make_campaign, truth_of

from analytics.models import Computation, Estimate, Release
from analytics.services.recomputation import recompute
from sampling.services.auditing import audit
from touchstone import jobs, retention, rights
from touchstone.ledger.rows import TABLES, columns_of
from touchstone.models import Event, Job, User, Webhook, WebhookDelivery
from touchstone.retention import PERIODS, Period, prune, start_due_retention

pytestmark = pytest.mark.django_db
BY_NAME = {period.what: period for period in PERIODS}
PRUNED = {"jobs": "touchstone_job", "sessions": "django_session", "deliveries": "touchstone_webhookdelivery"}
OF_COMPUTATIONS = {
    "analytics_assessorscreening",
    "analytics_auditforecast",
    "analytics_computation",
    "analytics_confusionestimate",
    "analytics_disputeditem",
    "analytics_estimate",
    "analytics_flag",
    "analytics_screening",
    "analytics_shareestimate",
}


def ago(**long):
    return timezone.now() - timedelta(**long)


def copies(computation, days, every_minutes):
    """Make a computation and its estimates anew at every so many minutes of the last days; return how many."""
    names = ", ".join(f'"{name}"' for name in columns_of("analytics_computation") if name != "created_at")
    made = run(
        f"""INSERT INTO analytics_computation ({names}, created_at)
            SELECT {names}, at FROM analytics_computation,
                   generate_series(now() - make_interval(days => %s), now() - interval '1 second',
                                   make_interval(mins => %s)) at
             WHERE id = %s ORDER BY at RETURNING id""",  # noqa: S608
        days,
        every_minutes,
        computation.pk,
    )
    others = ", ".join(f'"{name}"' for name in columns_of("analytics_estimate") if name != "computation_id")
    run(
        f"""INSERT INTO analytics_estimate ({others}, computation_id)
            SELECT {others}, c.id FROM analytics_estimate e, analytics_computation c
             WHERE e.id = %s AND c.id = ANY (%s)""",  # noqa: S608
        computation.estimates.earliest("pk").pk,
        [key for (key,) in made],
    )
    return len(made)


@pytest.fixture
def computed(tmp_path):
    campaign = make_campaign(tmp_path)
    judge_all(
        campaign, [make_assessor(campaign, name) for name in ("ann", "ben")], lambda slot, _: truth_of(slot)
    )
    return recompute(campaign=campaign)


def pruned(period=BY_NAME["computations"]):
    total = 0
    while n := prune(period):
        total += n
    return total


def test_thirty_days_of_computations_are_bounded_and_what_is_cited_stays(computed, tmp_path):
    """Every five minutes for 30 days, and every three hours for half a year before."""
    campaign = computed.campaign
    cited = computed
    Release.objects.create(campaign=campaign, version="1.0", title="t", computation=cited)
    n_old = copies(computed, 210, 180)
    n = copies(computed, 30, 5)
    newest = Computation.objects.latest("pk")
    last_day = Computation.objects.filter(created_at__gt=ago(days=1)).count()
    removed = pruned()
    left = Computation.objects.filter(campaign=campaign)
    print(f"computations: {n + n_old:,} made, {removed:,} removed, {left.count():,} left")
    assert left.filter(pk__in=[newest.pk, cited.pk]).count() == 2
    within = left.filter(created_at__lt=ago(days=1, hours=1), created_at__gt=ago(days=89))
    days = [at.date() for at in within.values_list("created_at", flat=True)]
    assert [day for day, n in Counter(days).items() if n > 1] == []
    assert len(days) in (87, 88, 89)
    weeks = [
        at.isocalendar()[:2]
        # An hour more: one of them was made exactly 90 days before the transaction began, and is kept for its day.
        for at in left.filter(created_at__lt=ago(days=90, hours=1)).values_list("created_at", flat=True)
    ]
    assert len(weeks) == len(set(weeks)) in (17, 18, 19)
    assert left.count() <= last_day + 90 + 19 + 10
    assert Estimate.objects.exclude(computation=cited).count() == left.exclude(pk=cited.pk).count()
    told = Event.objects.filter(verb="pruned computations", subject=f"campaign:{campaign.pk}")
    assert sum(event.detail["n_computations"] for event in told) == removed
    assert pruned() == 0


def test_the_last_before_an_audit_and_of_a_declared_look_stay(computed):
    campaign = computed.campaign
    copies(computed, 3, 60)
    looked, before, plain = Computation.objects.filter(created_at__lt=ago(days=1.5)).order_by("pk")[4:7]
    audit(campaign=campaign, items_each_time=5, items_in_total=5, seed=3)
    with unguarded(["sampling_audit", "analytics_computation"]):
        run("UPDATE sampling_audit SET created_at = %s", before.created_at + timedelta(minutes=1))
        run("UPDATE analytics_computation SET look = 1, n_looks = 2 WHERE id = %s", looked.pk)
    assert pruned() > 10
    there = Computation.objects.filter(pk__in=[looked.pk, before.pk, plain.pk]).values_list("pk", flat=True)
    assert set(there) == {looked.pk, before.pk}


def test_finished_jobs_go_but_those_that_say_that_a_period_was_done_or_made_a_release(computed):
    old, young = ago(days=91), ago(days=89)

    def job(name, finished_at, state="done", **fields):
        made = Job.objects.create(kind="k", note=name, state=state, finished_at=finished_at, **fields)
        Job.objects.filter(pk=made.pk).update(created_at=finished_at or old)
        return made

    for state in ("done", "failed", "cancelled"):
        job(f"old {state}", old, state)
    job("young", young)
    job("waits", None, "queued")
    job("first period", old, period_key="audit:7:2026-01-01T00:00")
    job("newest period", old + timedelta(hours=1), period_key="audit:7:2026-01-02T00:00")
    job("other period", old, period_key="audit:8:2026-01-01T00:00")
    Release.objects.create(campaign=computed.campaign, version="1.0", title="t", job=job("of a release", old))
    assert prune(BY_NAME["jobs"]) == 4
    kept = set(Job.objects.filter(kind="k").values_list("note", flat=True))
    assert kept == {"young", "waits", "newest period", "other period", "of a release"}
    assert Event.objects.get(verb="pruned").detail == {"n": 4, "days": 90}


def test_sessions_and_deliveries_go_90_days_after_their_end():
    for name, days in (("old", 91), ("young", 89)):
        Session.objects.create(session_key=name, session_data="", expire_date=ago(days=days))
    user = User.objects.create(username="mara")
    hook = Webhook.objects.create(user=user, url="https://hooks.example.org/", secret="s")
    for state, days in (("delivered", 91), ("given up", 91), ("delivered", 89), ("waiting", 91)):
        event = Event.objects.create(verb="did", subject="x")
        WebhookDelivery.objects.create(webhook=hook, event=event, state=state, next_attempt_at=ago(days=days))
    assert prune(BY_NAME["sessions"]) == 1
    assert prune(BY_NAME["deliveries"]) == 2
    assert Session.objects.get().pk == "young"
    assert sorted(WebhookDelivery.objects.values_list("state", flat=True)) == ["delivered", "waiting"]


def test_nothing_younger_and_nothing_else_is_pruned():
    for what, days, words in (
        ("jobs", 89, "nothing younger than 90 days is pruned"),
        ("computations", None, "nothing younger than 90 days is pruned"),
        ("judging_judgment", 90, "judging_judgment are never pruned"),
    ):
        with pytest.raises(DatabaseError, match=words), transaction.atomic():
            prune(Period(what, days))


def refusal_of(sql):
    """Return what PostgreSQL says against the statement, without asking foreign keys; nothing stays of it."""
    try:
        with transaction.atomic():
            run("SET LOCAL session_replication_role = replica")
            run(sql)
            transaction.set_rollback(True)
    except DatabaseError as error:
        return str(error)
    return ""


def test_what_is_sealed_is_never_pruned_and_what_guards_it_lets_nothing_else_pass(computed):
    """With the mark that the function sets, rows of these tables may be deleted, and of no other table of facts."""
    assert not {*PRUNED.values(), *OF_COMPUTATIONS} & set(TABLES)
    facts = {
        table for table, allowed in rights.TABLES.items() if allowed in (rights.APPEND_ONLY, rights.SEALS)
    }
    run("SELECT set_config('touchstone.change', 'DELETE ' || pg_current_xact_id()::text, true)")
    tried = [table for table in sorted(facts) if run(f"SELECT count(*) FROM {table}") != [(0,)]]  # noqa: S608
    said = {table: refusal_of(f"DELETE FROM {table}") for table in tried}  # noqa: S608
    passed = {table for table, words in said.items() if not words}
    assert {
        words for words in said.values() if words and "is append-only: DELETE refused" not in words
    } == set()
    assert len(tried) > 10
    assert passed == OF_COMPUTATIONS & set(tried)
    assert "analytics_estimate" in passed


def test_the_job_of_an_hour_is_queued_once_and_says_what_it_removed(computed):
    copies(computed, 3, 30)
    start_due_retention()
    start_due_retention()
    job = Job.objects.get(kind=retention.KIND)
    context = jobs.Context(job)
    retention.prune_by_job(context)
    assert context.result["computations"] > 50
    assert {**context.result, "computations": 0} == dict.fromkeys([*BY_NAME, "uploads", "letters"], 0)


def backlog(computation, n):
    """Make so many computations without numbers, all of one day, of which one stays."""
    names = ", ".join(f'"{name}"' for name in columns_of("analytics_computation") if name != "created_at")
    run(
        f"""INSERT INTO analytics_computation ({names}, created_at)
            SELECT {names}, date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '36 hours'
              FROM analytics_computation, generate_series(1, %s) WHERE id = %s""",  # noqa: S608
        n,
        computation.pk,
    )


def test_the_job_of_an_hour_goes_on_until_nothing_is_due(computed):
    at_once = BY_NAME["computations"].at_once
    backlog(computed, 12 * at_once)
    start_due_retention()
    context = jobs.Context(Job.objects.get(kind=retention.KIND))
    retention.prune_by_job(context)
    assert context.result["computations"] >= 12 * at_once - 2
    assert pruned() == 0


def test_when_its_time_is_up_the_job_leaves_the_rest_for_the_next_one(computed, monkeypatch):
    monkeypatch.setattr(retention, "MOST_SECONDS", 0.0)
    at_once = BY_NAME["computations"].at_once
    backlog(computed, 2 * at_once)
    Session.objects.create(session_key="old", session_data="", expire_date=ago(days=91))
    start_due_retention()
    context = jobs.Context(Job.objects.get(kind=retention.KIND))
    retention.prune_by_job(context)
    assert (context.result["sessions"], context.result["computations"]) == (1, at_once)
    assert pruned() > 100


@pytest.mark.usefixtures("made_roles")
def test_a_worker_prunes_and_cannot_delete(servers):
    with session(servers, rights.WORKER) as worker:
        for period in PERIODS:
            sql = "SELECT touchstone_prune(%s, %s, %s)"
            assert worker.execute(sql, [period.what, period.days, period.at_once]).fetchone() == (0,)
