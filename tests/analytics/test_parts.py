"""A large campaign is computed by several jobs from segments of one moment: the same numbers to the last bit."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from array_differences import differences
from django.core.files.storage import default_storage
from django.db import connection
from job_kinds import expire_lease, queue, state_of
from small_campaign import give, judge_all, judge_audit, make_assessor, make_campaign, slots

import analytics.tasks  # noqa: F401 (the kinds of job are registered)
from analytics.frames import campaign_arrays, log, segments
from analytics.frames.moment import one_moment
from analytics.frames.segments import read_segments, write_segments
from analytics.models import Computation
from analytics.services import parts
from analytics.services.recomputation import PART, queue_recomputation, recompute, start_due_recomputations
from judging.services.leases import requeue
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Job

pytestmark = pytest.mark.django_db(transaction=True)
LANE = "numbers"
NOT_COMPARED = {"id", "computation_id", "created_at", "seconds", "activity", "estimate_id"}


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """Return a campaign with checks, revisions set aside, and an audit; every campaign counts as large."""
    monkeypatch.setattr(jobs, "poke", lambda lane: True)
    monkeypatch.setattr(parts, "LARGE", 0)
    made = make_campaign(tmp_path, budget=30, gold_check_rate=0.2)
    people = [make_assessor(made, name) for name in ("ann", "ben")]
    judge_all(made, people, lambda slot, place: (slot.pk + place) % 4)
    for slot in slots(made, "check", number=1):
        give(people[0], slot, 1)
    requeue(assessor=people[1], actor=None)
    judge_all(made, [people[0], make_assessor(made, "cay")])
    audit(campaign=made, items_each_time=14, items_in_total=14, seed=3)
    judge_audit(made, make_assessor(made, "gus", "gold"))
    return made


def stored(computation):
    """Return every stored row, floats by their bits."""
    rows = {}
    for relation in [*computation._meta.related_objects]:
        if relation.get_accessor_name() is None or relation.one_to_one:
            continue
        values = getattr(computation, relation.get_accessor_name()).order_by("pk").values()
        rows[relation.get_accessor_name()] = [
            {name: exact(value) for name, value in row.items() if name not in NOT_COMPARED} for row in values
        ]
    own = {field.attname: getattr(computation, field.attname) for field in computation._meta.concrete_fields}
    rows["own"] = [{name: exact(value) for name, value in own.items() if name not in NOT_COMPARED}]
    return rows


def exact(value):
    return value.hex() if isinstance(value, float) else repr(value)


def work(n_workers=1):
    """Do all jobs of the lane, as so many workers."""

    def one():
        try:
            while Job.objects.filter(lane=LANE, state="queued").exclude(kind="screening").exists():
                jobs.work(LANE)
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(n_workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads)


def test_measures_of_the_same_gains_share_a_part_up_to_four(campaign):
    # On this scale "relevant" is one gain for every P@k, and DCG takes the grades' own.
    names = ["P@10", "DCG@10", "P@5", "DCG@20", "P@1", "P@2", "P@3"]
    assert parts.measures_of_parts(campaign, names) == [[0, 2, 4, 5], [6], [1, 3]]
    assert parts.measures_of_parts(campaign, []) == []


def computed_in_parts(campaign, n_workers=1):
    before = Computation.objects.count()
    queue_recomputation(campaign=campaign)
    work(n_workers)
    assert Computation.objects.count() == before + 1
    return campaign.computations.latest("pk")


def test_one_and_four_workers_one_and_64_segments_store_the_same_bytes(campaign, monkeypatch):
    expected = stored(recompute(campaign=campaign))
    assert len(expected["estimates"]) > 50
    assert len(expected["confusions"]) > 2
    for n_workers, judgments_a_segment in ((1, 10**6), (4, 1), (1, 2), (2, 10**6)):
        monkeypatch.setattr(parts, "JUDGMENTS_A_SEGMENT", judgments_a_segment)
        assert stored(computed_in_parts(campaign, n_workers)) == expected
    kinds = Job.objects.filter(kind__startswith="estimate").values_list("kind", flat=True)
    assert {kind: list(kinds).count(kind) for kind in set(kinds)}["estimate-merge"] == 4
    assert set(Job.objects.filter(kind__startswith="estimate").values_list("state", flat=True)) == {"done"}


def test_one_bit_of_one_label_shows(campaign):
    """The control: what compares would see another grade in one judgment."""
    expected = stored(recompute(campaign=campaign))
    slot = slots(campaign, "check", state="open")
    give(make_assessor(campaign, "dan"), slot[0], 3)
    assert stored(computed_in_parts(campaign)) != expected


def test_numbers_are_of_the_moment_that_the_first_job_has_read(campaign):
    expected = stored(recompute(campaign=campaign))
    queue_recomputation(campaign=campaign)
    jobs.work(LANE)  # the moment is read
    give(make_assessor(campaign, "dan"), slots(campaign, "check", state="open")[0], 3)
    work()
    assert campaign.computations.count() == 2
    assert stored(campaign.computations.latest("pk")) == expected


def test_while_parts_are_under_way_no_other_computation_begins_and_files_go_with_the_last(campaign):
    queue_recomputation(campaign=campaign)
    jobs.work(LANE)
    waiting = Job.objects.filter(kind=PART, state="queued").count()
    assert waiting > 2
    queue_recomputation(campaign=campaign)
    start_due_recomputations()
    assert Job.objects.filter(kind="estimate").count() == 1
    folder = f"moments/{campaign.pk}"
    assert len(default_storage.listdir(folder)[0]) == 1
    work()
    assert default_storage.listdir(folder)[0] == []
    assert campaign.computations.count() == 1


def test_a_part_whose_worker_dies_is_done_again(campaign, monkeypatch):
    expected = stored(recompute(campaign=campaign))
    queue_recomputation(campaign=campaign)
    jobs.work(LANE)
    first = Job.objects.filter(kind=PART, state="queued").order_by("turn").first()
    write = parts.Moment.write

    def die(moment, name, content):
        """Store the file; then the database is gone, and with it the job's transaction."""
        write(moment, name, content)
        monkeypatch.setattr(parts.Moment, "write", write)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(parts.Moment, "write", die)
    work()
    first.refresh_from_db()
    assert (first.state, first.attempts) == ("done", 2)
    assert campaign.computations.count() == 2
    assert stored(campaign.computations.latest("pk")) == expected


def test_a_worker_that_falls_silent_loses_its_part_to_another(campaign):
    queue_recomputation(campaign=campaign)
    jobs.work(LANE)
    part = Job.objects.filter(kind=PART).order_by("turn").first()
    Job.objects.filter(pk=part.pk).update(
        state="running", lease_token=part.pk, lease_until="2000-01-01T00:00Z", attempts=1
    )
    expire_lease(part)
    work()
    jobs.work(LANE)  # as the sweeper would wake a worker up
    work()
    part.refresh_from_db()
    assert (part.state, part.attempts) == ("done", 2)
    assert campaign.computations.count() == 1


def test_a_setting_that_changes_meanwhile_ends_the_parts_and_the_next_tick_begins_anew(campaign):
    queue_recomputation(campaign=campaign)
    jobs.work(LANE)
    campaign.bronze_score = "one-label"
    campaign.save(update_fields=["bronze_score"])
    work()
    ended = Job.objects.filter(kind=PART)
    assert {(job.state, job.error) for job in ended} == {
        ("failed", "the campaign was changed meanwhile: the numbers begin anew")
    }
    assert campaign.computations.count() == 0
    start_due_recomputations()
    work()
    assert campaign.computations.get().bronze_score == "one-label"


def test_after_a_part_that_failed_the_others_end_too(campaign):
    queue_recomputation(campaign=campaign)
    jobs.work(LANE)
    part = Job.objects.filter(kind=PART).order_by("turn").first()
    jobs.cancel(part)
    work()
    errors = Job.objects.filter(kind=PART).exclude(pk=part.pk).values_list("error", flat=True)
    assert set(errors) == {"another part of the same numbers failed: they begin anew"}
    assert campaign.computations.count() == 0


def test_a_small_campaign_is_one_job(campaign, monkeypatch):
    monkeypatch.setattr(parts, "LARGE", 10**6)
    job = queue("estimate", payload={"campaign": str(campaign.pk)})
    work()
    assert state_of(job) == "done"
    assert not Job.objects.filter(kind=PART).exists()
    assert campaign.computations.count() == 1


# -- segments, and judgments read in pieces -----------------------------------------------------------------


@pytest.mark.parametrize("n_segments", [1, 2, 3, 64])
def test_segments_give_the_arrays_back(campaign, n_segments):
    arrays, files = campaign_arrays(campaign), {}
    write_segments(arrays, n_segments, files.__setitem__)
    assert sum(name.startswith("label-") for name in files) == min(n_segments, 3)
    assert differences(read_segments(files.__getitem__), arrays) == []


def test_rows_of_any_topics_in_any_order_come_back_in_theirs(campaign, monkeypatch):
    """Frames that were made elsewhere need not go topic by topic."""
    arrays = campaign_arrays(campaign)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mixed = arrays.topic_index[rng.permutation(arrays.topic_index.size)]
        given = replace(arrays, topic_index=mixed)
        for n_segments in (1, 2, 3):
            files = {}
            write_segments(given, n_segments, files.__setitem__)
            assert differences(read_segments(files.__getitem__), given) == []
    monkeypatch.setattr(segments, "_ascend", lambda keys: True)
    write_segments(given, 3, files.__setitem__)
    assert "judged" in differences(read_segments(files.__getitem__), given)  # the control: order matters


def test_judgments_read_in_pieces_of_one_moment_are_the_judgments(campaign, monkeypatch):
    whole, statements = campaign_arrays(campaign), []
    monkeypatch.setattr(log, "IDS_A_PIECE", 7)
    fetch_rows = log.fetch_rows

    def watched(columns, source, keys):
        statements.append(source)
        return fetch_rows(columns, source, keys)

    monkeypatch.setattr(log, "fetch_rows", watched)
    with one_moment(campaign) as now, now.reading():
        pieces = campaign_arrays(campaign)
    assert statements.count(log.PIECE) > 5
    assert differences(pieces, whole) == []
    statements.clear()
    assert differences(campaign_arrays(campaign), whole) == []
    assert statements.count(log.PIECE) == 0  # no moment: one statement
