"""Runs set aside, gold answers withdrawn, topics corrected: the next numbers follow, and nothing older changes."""

import uuid

import pytest
from api_tools import api_client
from small_campaign import give, judge_all, lease, make_assessor, make_campaign, slots

from analytics.frames import facts
from analytics.models import Computation, Estimate
from analytics.services.judgment_log import log_rows
from analytics.services.recomputation import recompute
from judging.models import GoldAnswer, Run
from judging.services.assign import submit
from judging.services.collections import set_run_aside, take_run_in
from judging.services.corrections import correct_gold, correct_topic
from judging.services.errors import CorrectionRefused, ImportRefused, NameTaken, NotFound
from judging.services.files import import_runs
from judging.services.judgment_files import import_judgments
from judging.services.queries import judgments_of
from sampling.models import Draw
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def mara(db):
    return User.objects.create_user("mara", role=User.Role.MANAGER)


@pytest.fixture
def campaign(tmp_path):
    made = make_campaign(tmp_path, gold_check_rate=0.2, budget=20)
    judge_all(made, [make_assessor(made, name) for name in ("ann", "ben")])
    return made


def everything_old():
    """Return all that was drawn and computed, as it is stored."""
    return list(Draw.objects.values()), list(Computation.objects.values()), list(Estimate.objects.values())


def compared(campaign):
    newest = campaign.computations.latest("id")
    found = Estimate.objects.filter(computation=newest)
    return set(found.values_list("run__run_id", flat=True)) | set(
        found.values_list("run_b__run_id", flat=True)
    )


def test_a_run_that_is_set_aside_is_in_no_later_number_and_what_was_stays(campaign, mara):
    recompute(campaign=campaign)
    assert compared(campaign) == {"run0", "run1", "run2", None}  # the control
    before = everything_old()
    run = Run.objects.get(run_id="run1")
    set_run_aside(run=run, why="a faulty index", actor=mara)
    recompute(campaign=campaign)
    assert compared(campaign) == {"run0", "run2", None}
    for was, now in zip(before, everything_old(), strict=True):
        assert [row for row in now if row in was] == was
    event = Event.objects.get(verb="set a run aside")
    assert (event.actor, event.detail) == (mara, {"run": "run1", "why": "a faulty index"})
    more = draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=10, budget=30))
    assert more.batch == 2
    take_run_in(run=run, actor=mara)
    assert [one.run_id for one in campaign.collection.runs.all()] == ["run0", "run1", "run2"]


def test_the_tag_of_a_run_set_aside_is_free(campaign, mara, tmp_path):
    files = [(tmp_path / "run1.run", "run1.run")]
    with pytest.raises(ImportRefused, match="the collection already has run run1"):
        import_runs(collection=campaign.collection, files=files)  # the control
    old = Run.objects.get(run_id="run1")
    set_run_aside(run=old, why="x", actor=mara)
    [new] = import_runs(collection=campaign.collection, files=files)
    assert (new.run_id, new.pk != old.pk) == ("run1", True)
    with pytest.raises(NameTaken):
        take_run_in(run=old, actor=mara)
    with pytest.raises(CorrectionRefused, match="say why"):
        set_run_aside(run=new, why=" ", actor=mara)
    with pytest.raises(NotFound):
        set_run_aside(run=new, why="x", actor=User.objects.create_user("rhea", role=User.Role.RESEARCHER))


def test_a_withdrawn_gold_answer_is_none_any_more_and_its_checks_are_decoys(campaign, mara, tmp_path):
    def n_checks():
        recompute(campaign=campaign)
        return campaign.computations.latest("id").n_gold_checks

    carl, seen = make_assessor(campaign, "carl"), set()
    for slot in slots(campaign, "check", state="open"):
        if slot.item_id not in seen:
            give(carl, slot, 1)
            seen.add(slot.item_id)
    before = n_checks()
    assert before == len(seen) > 0
    check = campaign.items.filter(slots__purpose="check").first()
    answer = GoldAnswer.objects.get(topic=check.topic_id, document=check.document_id)
    grade, fingerprint = answer.grade, facts.fingerprint(campaign)
    correct_gold(answer=answer, user=mara, why="nobody agrees", grade=None)
    assert facts.fingerprint(campaign) != fingerprint
    assert n_checks() == before - 1
    assert not GoldAnswer.objects.filter(pk=answer.pk).exists()
    assert list(answer.versions.values_list("number", "grade")) == [(1, grade), (2, None)]
    assert Event.objects.get(verb="withdrew a gold answer").actor == mara
    with pytest.raises(ImportRefused, match="none: it was withdrawn"):
        import_judgments(
            collection=campaign.collection, source=tmp_path / "gold.qrels", name="gold.qrels", as_gold=True
        )
    correct_gold(answer=answer, user=mara, why="they do", grade=grade)
    assert n_checks() == before


def test_a_judgment_names_the_version_of_its_topic_that_was_shown(tmp_path, mara):
    campaign = make_campaign(tmp_path, gold=False)
    ann, ben = (make_assessor(campaign, name) for name in ("ann", "ben"))
    [slot, other] = slots(campaign, item__document__doc_id="t0d01")
    key = lease(ann, slot)
    correct_topic(
        topic=campaign.collection.topics.get(topic_id="t0"), user=mara, why="unclear", title="Another"
    )
    assert submit(assessor=ann, token=key, client_token=uuid.uuid4(), grade=1).topic_version == 1
    assert give(ben, other, 1).topic_version == 2
    log = api_client("mara").rows(f"/campaigns/{campaign.pk}/judgment-log")
    assert [(row["assessor"], row["topic_version"], row["document_version"]) for row in log] == [
        ("ann", 1, 1),
        ("ben", 2, 1),
    ]
    assert [row["topic_version"] for row in log_rows(campaign, judgments_of(campaign.pk))] == [1, 2]


def test_a_manager_sets_a_run_aside_and_withdraws_gold_over_the_api(campaign):
    mara, rhea = api_client("mara"), api_client("rhea", "researcher")
    run, answer = Run.objects.get(run_id="run1"), GoldAnswer.objects.first()
    place = f"/collections/{campaign.collection_id}"
    rhea.post(f"{place}/runs/{run.pk}/set-aside", 404, why="x")
    mara.post(f"{place}/runs/{run.pk}/set-aside", 400, why=" ")
    mara.post(f"{place}/runs/{run.pk}/set-aside", 200, why="x")
    assert [row["run_id"] for row in mara.get(f"{place}/runs")["results"]] == ["run0", "run2"]
    [aside] = mara.get(f"{place}/runs-set-aside")["results"]
    assert (aside["run_id"], aside["set_aside_why"], aside["set_aside_at"] is not None) == ("run1", "x", True)
    rhea.get(f"{place}/runs-set-aside", 404)
    mara.post(f"{place}/runs/{run.pk}/take-in", 200)
    assert mara.get(f"{place}/runs-set-aside")["results"] == []
    assert len(mara.get(f"{place}/runs")["results"]) == 3
    assert mara.post(f"{place}/gold-answers/{answer.pk}/versions", 201, why="x", grade=None)["grade"] is None
    assert mara.post(f"{place}/gold-answers/{answer.pk}/versions", 201, why="x", grade=1)["grade"] == 1
