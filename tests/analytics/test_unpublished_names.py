"""What the product itself wrote down with the name of a run that may not be published: a release tells none of it.

Files, lists of scores and imports are named after systems by people, and the product takes these names over. A draw of
whole topics, a baseline, an audit and a refusal know runs by name, too.
"""

import io
import json
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from foreign_sample import collection_of, empty_campaign, imported_campaign, sample_files
from late_run import add_late_run
from made_releases import opened, released
from small_campaign import (
    DOCUMENTS,
    TOPICS,
    doc_id,
    judge_all,
    judge_audit,
    make_assessor,
    make_undrawn,
)
from small_release import unpacked
from told_names import told_anywhere
from topic_campaign import judge
from topic_campaign import make_undrawn as make_undrawn_of_topics

from analytics.models import Estimate
from analytics.releases.services.published_runs import PublishedRuns
from analytics.releases.services.publishing import publish
from analytics.releases.verify import verify
from analytics.services.recomputation import recompute
from judging.models import Run
from judging.services.campaigns import close_campaign, open_campaign
from judging.services.judgment_files import import_judgments
from judging.services.scores import import_scores
from sampling.questions import Design
from sampling.services.auditing import audit
from sampling.services.drawing import draw
from touchstone.models import User

pytestmark = pytest.mark.django_db
SECRET = "zq-sécret&system"  # formats write it in several ways


def hide(campaign, run_id):
    """Give a run the secret tag, and let releases have all others."""
    Run.objects.filter(collection=campaign.collection, run_id=run_id).update(run_id=SECRET)
    campaign.collection.runs.exclude(run_id=SECRET).update(may_publish=True)


def release_without(campaign, tmp_path):
    """Return the release of a campaign; it tells the secret nowhere, and its verifier passes."""
    made = released(campaign, title="A title", authors="Ada B.", licence="CC0")
    assert told_anywhere(made, SECRET) == []
    assert json.loads(opened(made).text("manifest.json"))["counts"]["runs not published"] == 1
    assert verify(unpacked(Path(made.file.path).read_bytes(), tmp_path / "out")).different == []
    return made


def drawn(release):
    return json.loads(opened(release).text("draws/draw-1.json"))["parameters"]


@pytest.mark.parametrize("file_format", ["prels", "stratified"])
def test_the_file_of_a_sample_may_be_named_after_a_run(tmp_path, file_format):
    _, campaign = imported_campaign(tmp_path, file_format, source_name=f"pool of {SECRET}.{file_format}")
    hide(campaign, "bea")
    recompute(campaign=campaign)
    made = release_without(campaign, tmp_path)
    told = f"pool of unpublished-1.{file_format}"
    assert drawn(made)["source"] == told
    assert f"imported with its probabilities from {told}:" in opened(made).text("README.md")


def test_so_may_be_a_file_that_is_all_there_is(tmp_path):
    campaign = empty_campaign(collection_of(sample_files(tmp_path)))
    hide(campaign, "bea")
    text = "topic_id,doc_id,worker,label\n" + "".join(f"7,7-d{n:02d},ann,{n % 3}\n" for n in range(30))
    import_judgments(
        campaign=campaign,
        source=io.BytesIO(text.encode()),
        name=f"{SECRET}.csv",
        file_format="crowd",
        complete=True,
    )
    recompute(campaign=campaign)
    made = release_without(campaign, tmp_path)
    assert "documents of unpublished-1.csv were imported" in opened(made).text("README.md")
    assert sorted(drawn(made)["pooled"]) == ["ann", "cyd", "unpublished-1"]


def test_so_may_be_a_list_of_scores_and_a_baseline_and_an_audit_may_be_about_the_run(tmp_path):
    campaign = make_undrawn(tmp_path)
    hide(campaign, "run1")
    pairs = [(topic, doc_id(place, n)) for place, topic in enumerate(TOPICS) for n in range(DOCUMENTS)]
    lines = "".join(f"{topic}\t{doc}\t{n % 7 / 7}\n" for n, (topic, doc) in enumerate(pairs))
    file = f"{SECRET}.tsv"
    import_scores(collection=campaign.collection, source=io.BytesIO(lines.encode()), name=file)
    about = {"prior": "scores", "scores": SECRET, "measure": "DCG@10", "depth": 10, "budget": 34}
    draw(campaign=campaign, design=Design("baseline", (SECRET, "run0", "run2"), **about), seed=20)
    open_campaign(campaign=campaign, actor=None)
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")])
    audit(campaign=campaign, strategy="census", run=SECRET, against="run0", seed=3)
    judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))
    recompute(campaign=campaign)
    made = release_without(campaign, tmp_path)
    assert (drawn(made)["scores"], drawn(made)["runs"]) == (
        "unpublished-1",
        ["unpublished-1", "run0", "run2"],
    )
    assert json.loads(opened(made).text("audits.json"))[0]["run"] == "unpublished-1"
    close_campaign(campaign=campaign, actor=None)
    publish(release=made, actor=User.objects.create(username="boss", role="manager"))
    page = Client().get(reverse("console:public-release", args=[campaign.pk, "1.0"])).content.decode()
    assert "run0" in page
    assert "cret" not in page


def test_a_draw_of_whole_topics_predicts_the_values_of_every_run(tmp_path):
    campaign = make_undrawn_of_topics(tmp_path, gold=True)
    hide(campaign, "run1")
    about = {"measure": "nDCG@4", "depth": 4, "budget": 120, "topic_selection": "sample"}
    draw(campaign=campaign, design=Design("ranking", (), **about), seed=7)
    open_campaign(campaign=campaign, actor=None)
    judge(campaign)
    recompute(campaign=campaign, measures=["nDCG@4", "P@4"])
    told = json.loads(opened(release_without(campaign, tmp_path)).text("estimates.json"))
    assert told["whole_topics"]["plug_in"]["nDCG@4"].keys() == {"run0", "run2"}


def test_a_refusal_names_the_run_that_it_is_about(tmp_path):
    campaign = make_undrawn(tmp_path)
    draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=10, budget=34), seed=20)
    open_campaign(campaign=campaign, actor=None)
    add_late_run(campaign.collection, tmp_path)
    hide(campaign, "late")
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")])
    recompute(campaign=campaign)
    assert (
        Estimate.objects.filter(refusal__contains=SECRET).exists()
        or Estimate.objects.filter(warning__contains=SECRET).exists()
    )
    release_without(campaign, tmp_path)


def test_tags_are_found_in_words_between_other_characters_the_longest_first():
    runs = PublishedRuns(
        (), 3, {"bm25": "unpublished-1", "bm25+rm3": "unpublished-2", "a.b": "unpublished-3"}
    )
    assert runs.words("bm25+rm3_bm25.run, BM25, bm25f, a.b a-b") == (
        "unpublished-2_unpublished-1.run, unpublished-1, bm25f, unpublished-3 a-b"
    )
    assert (
        PublishedRuns((), 1, {"I": "unpublished-1"}).words("\u0131.run") == "unpublished-1.run"
    )  # a dotless i
    assert PublishedRuns((), 0, {}).words("bm25") == "bm25"
