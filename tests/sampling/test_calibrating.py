"""Scores calibrated on another campaign or collection: what is fitted there, recorded here, and refused by name."""

import json
from dataclasses import replace

import numpy as np
import pytest
from design_campaign import add_scores, undrawn
from django.utils import timezone
from gold_elsewhere import DEPTH, N_GOLD, add_score_lines, gold_campaign, gold_collection, score_there
from page_campaign import N_DOCUMENTS, N_TOPICS
from page_campaign import make_collection as make_collection_without_scores
from quick_flush import unguarded
from scipy.optimize import minimize
from small_campaign import RUNS, make_undrawn, returned

from analytics.releases.folder import Folder
from analytics.releases.services.facts import write_draws
from analytics.releases.services.published_runs import HIDES_RUNS, PublishedRuns
from analytics.services.forecast import _payload
from analytics.services.reuse import ReuseQuestion, _prior, answer
from judging.models import CollectionMember, Document, GoldAnswer, Topic
from sampling.frames import load_frame
from sampling.outlook import USUAL_RATES
from sampling.questions import Design, QuestionRefused
from sampling.score_calibration import Calibration
from sampling.services.calibrating import (
    CalibrationRefused,
    find_source,
    gold_sources,
    recorded_calibration,
    with_source,
)
from sampling.services.drawing import draw
from sampling.services.population import population_of
from touchstone.models import User

pytestmark = pytest.mark.django_db

PAIR = Design("pair", ("run0", "run2"), "DCG@10", DEPTH, 20, prior="scores", scores="model")


@pytest.fixture
def campaign(tmp_path):
    """Return a campaign of which nothing is drawn; its collection has scores and no gold."""
    made = make_undrawn(tmp_path, gold=False)
    add_scores(made.collection)
    return made


def on(source, **fields):
    return replace(PAIR, calibrated_on=str(source.pk), **fields)


def logit(p):
    return np.log(p / (1 - p))


def coefficients_there(is_relevant):
    """Return the three coefficients by definition: two runs, document n + r at rank n + 1 of run r's ten first."""
    rows = []
    for topic in range(N_TOPICS):
        for document in range(DEPTH + 4):
            ranks = [rank for rank in (document + 1, document - 3) if 1 <= rank <= DEPTH]
            prior = sum(16 / (rank + 34) for rank in [*ranks, *[10 * DEPTH] * (2 - len(ranks))]) / 2
            odds = (len(ranks) + 0.5) / (2.5 - len(ranks))
            rows.append((logit(prior), score_there(topic, document), np.log(odds), is_relevant(document)))
    offset, score, popularity, relevant = np.array(rows, dtype=float).T
    mean, deviation = popularity.mean(), popularity.std()

    def loss(at):
        eta = offset + at[0] + at[1] * (score - 0.5) + at[2] * (popularity - mean) / deviation
        penalty = 0.3 * at[0] ** 2 + 0.3 * at[1] ** 2 + 10 * at[2] ** 2
        return (np.logaddexp(0, eta) - relevant * eta).sum() + penalty / 2

    best = minimize(loss, np.zeros(3), tol=1e-12).x
    unit = best[2] / deviation
    return best[0] - unit * mean, best[1], unit, relevant.sum()


# -- what is fitted and recorded ------------------------------------------------------------------------------


def test_a_draw_records_what_gold_elsewhere_says_and_starts_its_predictions_from_it(campaign):
    source = gold_collection()
    made = draw(campaign=campaign, design=on(source), seed=4)
    recorded = made.parameters["calibration"]
    *coefficients, n_relevant = coefficients_there(lambda document: document % 4 >= 1)
    found = [recorded[name] for name in ("intercept", "slope", "popularity")]
    assert found == pytest.approx(coefficients, abs=1e-4)
    assert (recorded["n_gold"], recorded["n_relevant"]) == (N_GOLD, n_relevant)
    assert made.parameters["calibrated_on"] == str(source.pk)
    frame = load_frame(made)
    ranks = [returned(run) for run in range(len(RUNS))]
    for topic, document, score, prior in frame.select("topic_id", "doc_id", "score", "prior").iter_rows():
        there = [run[topic, document] for run in ranks if (topic, document) in run]
        before = sum(16 / (rank + 34) for rank in [*there, *[10 * DEPTH] * (3 - len(there))]) / 3
        popularity = np.log((len(there) + 0.5) / (3.5 - len(there)))
        eta = logit(before) + found[0] + found[1] * (score - 0.5) + found[2] * popularity
        assert prior == pytest.approx(1 / (1 + np.exp(-eta)), abs=1e-12)


def test_assumed_rates_leave_the_offset_of_predictions_as_it_was(campaign):
    made = draw(campaign=campaign, design=PAIR, seed=4)
    assert "calibration" not in made.parameters
    population = population_of(campaign, PAIR)
    assert load_frame(made)["prior"].to_numpy() == pytest.approx(population.prior)
    assert np.abs(population.prior - population.design_prior).max() > 0.05


def test_documents_without_a_score_keep_the_prior_of_the_ranks(campaign):
    add_score_lines(campaign.collection, "t0\tt0d00\t0.9\nt1\tt1d03\t0.2\n", name="few")
    source = gold_collection(name="few")
    population = population_of(campaign, on(source, scores="few"))
    plain = population_of(campaign, replace(PAIR, prior="runs", scores=""))
    moved = np.flatnonzero(np.abs(population.prior - plain.prior) > 1e-12)
    assert moved.tolist() == np.flatnonzero(~np.isnan(population.score)).tolist()
    assert moved.size == 2


def test_gold_assessors_of_a_campaign_are_gold_and_others_are_not(campaign):
    found = population_of(campaign, on(gold_campaign())).calibration
    *coefficients, n_relevant = coefficients_there(lambda document: document % 4 % 3 >= 1)
    assert [found.intercept, found.slope, found.popularity] == pytest.approx(coefficients, abs=1e-4)
    assert (found.n_gold, found.n_relevant) == (N_GOLD, n_relevant)
    bronze = gold_campaign("bronze")
    with pytest.raises(CalibrationRefused, match="0 documents have gold and a score"):
        population_of(campaign, on(bronze))


def test_a_measure_that_names_its_relevant_grade_counts_gold_from_there(campaign):
    found = population_of(campaign, on(gold_collection(), measure="P(rel=3)@10")).calibration
    assert found.n_relevant == 12  # of 14 documents a topic number 3, 7 and 11


def test_whole_topics_are_calibrated_too(campaign):
    design = on(gold_collection(), measure="nDCG@10", topic_selection="sample", budget=28)
    made = draw(campaign=campaign, design=design, seed=4)
    assert made.parameters["calibration"]["n_gold"] == N_GOLD
    assert load_frame(made)["prior"].to_numpy() == pytest.approx(population_of(campaign, on_same(made)).prior)


def on_same(made):
    return replace(PAIR, calibrated_on=made.parameters["calibrated_on"])


# -- what comes later -----------------------------------------------------------------------------------------


def turn_gold(source):
    """Give all gold that is there other grades."""
    with unguarded(["judging_goldanswer"]):
        for number, answer_there in enumerate(GoldAnswer.objects.filter(topic__collection=source)):
            GoldAnswer.objects.filter(pk=answer_there.pk).update(grade=3 * (number % 2))


def test_gold_that_comes_later_changes_neither_a_draw_nor_its_top_up(campaign):
    source = gold_collection()
    made = draw(campaign=campaign, design=on(source), seed=4)
    before, recorded = load_frame(made), dict(made.parameters["calibration"])
    turn_gold(source)
    made.refresh_from_db()
    assert made.parameters["calibration"] == recorded
    assert load_frame(made).equals(before)
    later = draw(campaign=campaign, design=on(source, budget=30))
    assert later.parameters["calibration"] == recorded
    assert load_frame(later)["prior"].equals(load_frame(made)["prior"])
    other = population_of(undrawn(campaign.collection), on(source)).calibration
    assert other.slope != pytest.approx(recorded["slope"], abs=0.01)  # the control: a new draw does see it


def test_a_batch_that_is_calibrated_anew_sees_gold_from_before_the_first_draw_alone(campaign):
    source = gold_collection()
    first = draw(campaign=campaign, design=PAIR, seed=4)
    topic = Topic.objects.filter(collection=source).earliest("pk")
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.filter(topic=topic).update(created_at=timezone.now())
    with pytest.raises(CalibrationRefused, match=r"42 documents have gold and a score; 50 or more"):
        draw(campaign=campaign, design=on(source, budget=30))
    before = first.created_at - timezone.timedelta(hours=1)
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.filter(topic=topic).update(created_at=before)
    assert draw(campaign=campaign, design=on(source, budget=30)).parameters["calibration"]["n_gold"] == N_GOLD


def test_a_top_up_keeps_the_coefficients_though_their_source_is_gone(campaign):
    source = gold_collection()
    made = draw(campaign=campaign, design=on(source), seed=4)
    source.deleted_at = timezone.now()
    source.save()
    kept = Calibration(**made.parameters["calibration"])
    assert recorded_calibration(campaign, on(source, budget=30)) == kept
    assert with_source(campaign, on(source, budget=30), User()) == on(source, budget=30)
    for change in ({"measure": "P(rel=2)@10"}, {"depth": 12}, {"scores": "other"}):
        assert recorded_calibration(campaign, on(source, budget=30, **change)) is None
    with pytest.raises(CalibrationRefused, match="there is no campaign or collection"):
        draw(campaign=campaign, design=on(source, budget=30, depth=12))


def test_a_new_run_is_asked_about_with_the_prior_that_was_recorded(campaign):
    made = draw(campaign=campaign, design=on(gold_collection()), seed=4)
    frame = load_frame(made)
    assert _prior(made, frame) == pytest.approx(frame["prior"].to_numpy())
    assert answer(campaign=campaign, asked=ReuseQuestion("run0", "DCG@10", "run2")).half_width > 0


def test_a_forecast_by_a_job_belongs_to_the_gold_that_there_was(campaign):
    source = gold_collection()
    asked = on(source)
    before = _payload(campaign, asked, USUAL_RATES)
    assert before["gold"] == N_TOPICS * N_DOCUMENTS
    document = Document.objects.create(collection=source, doc_id="late", text="Text")
    GoldAnswer.objects.create(topic=source.topics.first(), document=document, grade=1, source="late")
    assert _payload(campaign, asked, USUAL_RATES)["gold"] == before["gold"] + 1
    assert _payload(campaign, PAIR, USUAL_RATES)["gold"] is None


def test_a_release_holds_coefficients_and_the_number_of_gold_labels(campaign, tmp_path):
    made = draw(campaign=campaign, design=on(gold_collection()), seed=4)
    (words,) = write_draws(campaign, PublishedRuns.of(campaign, HIDES_RUNS), Folder(tmp_path / "release"))
    recorded = json.loads((tmp_path / "release" / "draws" / "draw-1.json").read_text())["parameters"]
    assert recorded["calibration"] == made.parameters["calibration"]
    assert recorded["calibrated_on"] == made.parameters["calibrated_on"]
    assert "scores calibrated on 56 gold labels elsewhere" in words


# -- what is refused ------------------------------------------------------------------------------------------


def yes_or_no(topic, document):
    return float(document % 4 > 1)


REFUSED = {
    "a score of another name": (
        lambda: gold_collection(name="other"),
        "the collection to calibrate on has no scores named 'model'",
    ),
    "labels of yes and no against probabilities": (
        lambda: gold_collection(score=yes_or_no),
        "the scores 'model' are on another scale there: yes or no in the collection to calibrate on, graded here",
    ),
    "too little gold with this score": (
        lambda: gold_collection(n_documents=12),
        "say what 'model' is worth: among what its runs return within rank 10, 48 documents have gold and a score; 50",
    ),
    "no gold": (lambda: without_gold(), "0 documents have gold and a score"),
    "no runs": (lambda: gold_collection(n_runs=0), "has no runs: how popular"),
    "gold that is all alike": (lambda: all_relevant(), "all 56 documents with gold and a score are relevant"),
}


def without_gold():
    made = gold_collection()
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.filter(topic__collection=made).delete()
    return made


def all_relevant():
    made = gold_collection()
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.filter(topic__collection=made).update(grade=2)
    return made


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_calibrate_is_refused_by_name_and_nothing_is_drawn(campaign, name):
    make, words = REFUSED[name]
    source = make()
    with pytest.raises(CalibrationRefused, match=words):
        draw(campaign=campaign, design=on(source))
    assert not campaign.draws.exists()


def test_probabilities_against_labels_of_yes_and_no_are_refused_the_other_way_round(campaign):
    add_score_lines(campaign.collection, "t0\tt0d00\t1\nt0\tt0d01\t0\n", name="labels")
    with pytest.raises(CalibrationRefused, match="graded in the collection to calibrate on, yes or no here"):
        draw(campaign=campaign, design=on(gold_collection(name="labels"), scores="labels"))
    made = draw(
        campaign=campaign, design=on(gold_collection(name="labels", score=yes_or_no), scores="labels")
    )
    assert made.parameters["calibration"]["n_gold"] == N_GOLD


def test_scores_are_calibrated_only_where_they_are_the_prior():
    for prior in ("runs", "experts", "judgments"):
        with pytest.raises(QuestionRefused, match="scores are calibrated where they are the prior"):
            replace(PAIR, prior=prior, calibrated_on="somewhere")


def test_what_one_may_not_see_is_not_there(campaign):
    mia = User.objects.create(username="mia", role="manager")
    source = gold_campaign()
    assert find_source(campaign, source.name, mia).campaign == source
    assert find_source(campaign, str(source.pk), mia).id == str(source.pk)
    source.collection.is_restricted = True
    source.collection.save()
    absent = "there is no campaign or collection {!r}"
    for reference in (source.name, str(source.pk), source.collection.name, str(source.collection.pk), "none"):
        with pytest.raises(CalibrationRefused) as refusal:
            find_source(campaign, reference, mia)
        assert str(refusal.value) == absent.format(reference)
    assert gold_sources(campaign, mia) == []
    assert len(gold_sources(campaign, None)) == 2
    CollectionMember.objects.create(collection=source.collection, user=mia)
    assert [one.words for one in gold_sources(campaign, mia)] == [
        f"collection {source.collection.name}",
        f"campaign {source.name}",
    ]
    source.deleted_at = timezone.now()
    source.save()
    assert [one.campaign for one in gold_sources(campaign, mia)] == [None]


def test_only_what_has_gold_and_scores_of_a_name_that_is_here_is_offered(campaign):
    make_collection_without_scores()
    gold_collection(name="other")
    without_gold()
    gold_campaign("bronze", collection=without_gold())
    assert gold_sources(campaign, None) == []
    wanted = gold_collection()
    assert [one.id for one in gold_sources(campaign, None)] == [str(wanted.pk)]


def test_a_name_of_two_and_the_campaign_itself_are_refused(campaign):
    source = gold_campaign()
    source.collection.name = source.name
    source.collection.save()
    with pytest.raises(CalibrationRefused, match="both a campaign and a collection are named"):
        find_source(campaign, source.name, None)
    with pytest.raises(CalibrationRefused, match="its own gold comes after its draw"):
        find_source(campaign, campaign.name, None)
