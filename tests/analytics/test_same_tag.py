"""A run is set aside and another one uploaded under its tag: the draw has pooled the old one, the new one came late."""

import json
from pathlib import Path

import numpy as np
import pytest
from django.db import transaction
from late_run import LATE
from made_releases import audited, opened, released
from small_campaign import (
    DOCUMENTS,
    TOPICS,
    doc_id,
    judge_all,
    make_assessor,
    make_campaign,
)

from analytics.frames import campaign_arrays
from analytics.models import Estimate
from analytics.numbers.predictions import Predictions
from analytics.services.families import asked_family, declare_family
from analytics.services.recomputation import recompute
from analytics.services.reuse import ReuseQuestion, answer
from judging.models import Run
from judging.services.collections import set_run_aside
from judging.services.files import import_documents, import_runs
from sampling.frames import newest_draw, pooled_runs, tags_of_then
from sampling.questions import Design
from sampling.services.auditable import asked_runs
from sampling.services.drawing import draw
from sampling.services.population import population_of
from touchstone.models import User

pytestmark = pytest.mark.django_db
POOL = Design("pool", (), measure="DCG@10", depth=10, budget=30)
NUMBERS = (
    *("value", "low", "high", "standard_error", "p_value", "n", "refusal"),
    *("outside_low", "outside_high", "topics_low", "topics_high", "topics_p_value"),
)


@pytest.fixture
def mara(db):
    return User.objects.create_user("mara", role=User.Role.MANAGER)


@pytest.fixture
def campaign(tmp_path):
    made = make_campaign(tmp_path, budget=20, gold_check_rate=0.2)
    judge_all(made, [make_assessor(made, name) for name in ("ann", "ben")])
    new = [doc_id(topic, d) for topic in range(len(TOPICS)) for d in LATE if d >= DOCUMENTS]
    path = tmp_path / "new.jsonl"
    path.write_text("".join(f'{{"_id": "{document}", "text": "Text"}}\n' for document in new))
    import_documents(collection=made.collection, source=path, name="new.jsonl")
    return made


def upload(campaign, folder, tag):
    """Import a run that ranks other documents than any before it, and two a topic that could not be drawn."""
    lines = [
        f"{topic_id} Q0 {doc_id(topic, d)} {rank} {100 - rank} {tag}\n"
        for topic, topic_id in enumerate(TOPICS)
        for rank, d in enumerate(LATE, start=1)
    ]
    (folder / "late.run").write_text("".join(lines))
    [run] = import_runs(collection=campaign.collection, files=[(folder / "late.run", "late.run")])
    return run


def numbers(campaign):
    """Return every number of a new computation by what it is of."""
    recompute(campaign=campaign)
    rows = Estimate.objects.filter(computation=campaign.computations.latest("id"))
    keys = ("measure", "method", "run__run_id", "run_b__run_id")
    return {row[:4]: row[4:] for row in rows.values_list(*keys, *NUMBERS)}


def without(found, tag):
    return {key: row for key, row in found.items() if tag not in key}


def alone(found, tag):
    """Return the numbers of a run by itself, with what is said of them where there are none."""
    rows = {key[:2]: row for key, row in found.items() if key[2:] == (tag, None)}
    return {key: [str(value).replace(tag, "<tag>") for value in row] for key, row in rows.items()}


def differences_to_run0(found, tag):
    return {key[:2]: row for key, row in found.items() if {*key[2:]} == {"run0", tag}}


def run_ids(release):
    return [row["run_id"] for row in json.loads(opened(release).text("runs.json"))]


def replace_run1(campaign, mara, folder):
    old = campaign.collection.runs.get(run_id="run1")
    set_run_aside(run=old, why="a faulty index", actor=mara)
    return old, upload(campaign, folder, "run1")


def test_the_new_run_counts_as_any_late_run_and_moves_no_number(campaign, mara, tmp_path):
    before = numbers(campaign)
    with transaction.atomic():
        upload(campaign, tmp_path, "another")
        control, asked = (
            numbers(campaign),
            answer(campaign=campaign, asked=ReuseQuestion("another", "DCG@10")),
        )
        transaction.set_rollback(True)
    old, new = replace_run1(campaign, mara, tmp_path)
    after = numbers(campaign)
    assert without(after, "run1") == without(before, "run1")
    assert len(without(after, "run1")) > 10
    assert alone(after, "run1") == alone(control, "another")
    assert alone(after, "run1") != alone(before, "run1")
    late, same = differences_to_run0(after, "run1"), differences_to_run0(control, "another")
    assert {key: row[3] for key, row in late.items()} == {key: row[3] for key, row in same.items()}
    assert answer(campaign=campaign, asked=ReuseQuestion("run1", "DCG@10")) == asked
    # The control: taken for the pooled one, the new run teaches predictions something else.
    arrays = campaign_arrays(campaign)
    gains = np.array(campaign.scale.gains(), dtype=np.float64)
    right = Predictions(arrays).of_gains(gains, 1)
    Run.everything.filter(pk=new.pk).update(created_at=old.created_at)
    assert new.pk in [run.pk for run in pooled_runs(newest_draw(campaign))]
    del arrays.__dict__["ranks_of_pool"]
    assert (Predictions(arrays).of_gains(gains, 1) != right).any()


def test_a_release_of_before_stays_and_a_later_one_is_without_the_run(tmp_path, mara):
    campaign = audited(tmp_path)
    campaign.collection.runs.update(may_publish=True)
    release = released(campaign)
    before = Path(release.file.path).read_bytes()
    assert run_ids(release) == ["run0", "run1", "run2"]  # the control
    old = campaign.collection.runs.get(run_id="run1")
    set_run_aside(run=old, why="a faulty index", actor=mara)
    later = released(campaign, "1.1")
    assert run_ids(later) == ["run0", "run2"]
    assert "run1" not in opened(later).text("estimates.json")
    (tmp_path / "run1.run").write_text("t0 Q0 t0d05 1 9 run1\n")
    import_runs(collection=campaign.collection, files=[(tmp_path / "run1.run", "run1.run")])
    campaign.collection.runs.update(may_publish=True)
    assert run_ids(released(campaign, "1.2")) == ["run0", "run1", "run2"]
    release.refresh_from_db()
    assert Path(release.file.path).read_bytes() == before


def test_what_a_draw_has_pooled_is_known_after_its_tags_are_others(campaign, mara, tmp_path):
    first = newest_draw(campaign)
    pooled = [run.pk for run in campaign.collection.runs.all()]
    assert [run.pk for run in pooled_runs(first)] == pooled
    old, new = replace_run1(campaign, mara, tmp_path)
    runs = list(campaign.collection.runs.all())
    assert [run.pk for run in pooled_runs(first)] == pooled
    assert tags_of_then(first, runs) == ["run0", "", "run2"]
    assert asked_runs(first, tags_of_then(first, runs)) == [0, 1, 2]  # a question about all runs
    # A later batch pools what was pooled, and the new one beside it, but asks nothing about the old one.
    population = population_of(campaign, POOL)
    assert [run.pk for run in population.runs] == [*(run.pk for run in runs), old.pk]
    assert population.rows == [0, 1, 2]
    second = draw(campaign=campaign, design=POOL)
    assert second.parameters["pooled"] == ["run0", "run1", "run2", "run1"]
    assert sorted(run.pk for run in pooled_runs(second)) == sorted([*pooled, new.pk])
    assert [run.pk for run in pooled_runs(first)] == pooled
    assert tags_of_then(second, runs) == ["run0", "run1", "run2"]


def test_a_run_set_aside_before_anything_pooled_it_is_in_no_pool(campaign, mara, tmp_path):
    late = upload(campaign, tmp_path, "late")
    assert late.pk in [run.pk for run in population_of(campaign, POOL).runs]  # the control
    set_run_aside(run=late, why="a faulty index", actor=mara)
    assert late.pk not in [run.pk for run in population_of(campaign, POOL).runs]


def test_a_question_about_a_pair_is_not_about_a_run_that_came_later(tmp_path, mara):
    campaign = make_campaign(tmp_path, kind="pair", pair=("run0", "run1"), budget=20)
    first, runs = newest_draw(campaign), list(campaign.collection.runs.all())
    assert asked_runs(first, tags_of_then(first, runs)) == [0, 1]  # the control
    set_run_aside(run=runs[1], why="a faulty index", actor=mara)
    (tmp_path / "run1.run").write_text("t0 Q0 t0d05 1 9 run1\n")
    import_runs(collection=campaign.collection, files=[(tmp_path / "run1.run", "run1.run")])
    runs = list(campaign.collection.runs.all())
    assert asked_runs(first, tags_of_then(first, runs)) == [0]


@pytest.mark.parametrize("name", ["question", "all", "baseline:run1", "runs:run0,run1"])
def test_a_later_run_of_the_tag_joins_no_family(campaign, mara, tmp_path, name):
    declare_family(campaign=campaign, user=mara, name=name)
    assert ("run0", "run1") in asked_family(campaign)  # the control
    replace_run1(campaign, mara, tmp_path)
    family = asked_family(campaign)
    assert "run1" not in family.ranked_runs
    assert ("run0", "run1") not in family
    is_left = name in ("question", "all")
    assert (("run0", "run2") in family) == is_left
