"""statAP, AP and infAP on the test files of trec_eval, and on random files of their form, beside pytrec_eval.

The files of trec_eval are read where they are: in the folder TREC_EVAL_TESTS, by default shared/data/trec_eval_tests
beside the repository. What they test is tested on random files as well, which need no folder.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from pure_modules import REPOSITORY

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.pseudolabels import census
from analytics.estimation.ratios import ratio_estimates
from analytics.lowcost.evaluating import RunScores, evaluate_sample, prel_measure, stratified_measure
from analytics.lowcost.run_folder import read_places
from analytics.lowcost.samples import prel_topics, stratified_topics
from judging.trec import PrelRecord, StratifiedRecord, read_qrels
from sampling.measures.registry import parse_ratio

TREC_EVAL = Path(os.environ.get("TREC_EVAL_TESTS", REPOSITORY.parent / "shared" / "data" / "trec_eval_tests"))
PRINTED = 0.5e-4  # trec_eval prints four decimals
SMOOTHING = 1e-4  # by how much infAP's 1e-5 changes a value here


@dataclass(frozen=True)
class Collection:
    """A run and two files of qrels: 0 or 1 for all of a pool, and grades to 4 of which some are -1, not judged."""

    run: Path
    complete: Path
    sampled: Path


def random_collection(folder: Path, seed: int) -> Collection:
    """Write files like trec_eval's: lines in no order, ranks of no meaning, equal scores, unpooled documents."""
    rng = np.random.default_rng(seed)
    run, complete, sampled = [], [], []
    for topic in (301, 302, 303, 304):
        documents = [f"FT{number:04}" for number in rng.permutation(400)]
        is_relevant = rng.random(300) < (0.0 if topic == 304 else rng.uniform(0.02, 0.3))
        for document, relevant in zip(documents, is_relevant.tolist(), strict=False):
            grade = int(rng.choice([1, 3, 4])) if relevant else 0
            complete.append(f"{topic} 0 {document} {int(relevant)}")
            sampled.append(f"{topic} 0 {document} {grade if rng.random() < 0.6 else -1}")
        quality = rng.normal(size=400)
        quality[:300] += is_relevant
        for place in rng.permutation(400)[:200]:
            run.append(f"{topic} Q0 {documents[place]} {rng.integers(1000)} {quality[place]:.2f} STANDARD")
    for name, lines in (("run", run), ("complete", complete), ("sampled", sampled)):
        (folder / name).write_text("\n".join(rng.permutation(lines)) + "\n")
    return Collection(folder / "run", folder / "complete", folder / "sampled")


@pytest.fixture(params=["random 1", "random 2", "random 3", "trec_eval"])
def collection(request: pytest.FixtureRequest, tmp_path: Path) -> Collection:
    if request.param != "trec_eval":
        return random_collection(tmp_path, int(request.param.split()[1]))
    return trec_eval_collection()


def trec_eval_collection() -> Collection:
    if not TREC_EVAL.is_dir():
        pytest.skip(f"the test files of trec_eval are not in {TREC_EVAL}: TREC_EVAL_TESTS names their folder")
    return Collection(*(TREC_EVAL / name for name in ("results.test", "qrels.test", "qrels.rel_level")))


def ours(
    collection: Collection, qrels: Path, measures: Iterable[str], *, sample: str
) -> dict[str, list[float]]:
    """Return the values by topic, in the order of their ids; `sample` is of "prels", each with pi = 1, or "strata"."""
    ranking = {
        topic: sorted(ranks, key=ranks.__getitem__)
        for topic, ranks in read_places(collection.run, "run").items()
    }
    records = sorted(read_qrels(qrels, qrels.name), key=lambda record: record.topic_id)
    if sample == "prels":
        topics, _ = prel_topics(PrelRecord(one.topic_id, one.doc_id, one.grade, 1, 1.0) for one in records)
        scores = evaluate_sample(topics, [ranking], [prel_measure(name) for name in measures])
    else:
        strata = stratified_topics(
            StratifiedRecord(one.topic_id, one.doc_id, 0, one.grade) for one in records
        )
        scores = evaluate_sample(strata, [ranking], [stratified_measure(name) for name in measures])
    values = {}
    for name, one in zip(measures, scores, strict=True):
        assert isinstance(one, RunScores), one.reason if isinstance(one, Refusal) else one
        values[name] = one.by_topic[0].tolist()
    return values


def theirs(collection: Collection, qrels: Path, measure: str, level: int = 1) -> list[float]:
    """Return pytrec_eval's values by topic, in the order of their ids; the files are read by a second reader."""
    judged: dict[str, dict[str, int]] = {}
    for line in qrels.read_text().splitlines():
        topic, _, document, grade = line.split()
        judged.setdefault(topic, {})[document] = int(grade)
    scores: dict[str, dict[str, float]] = {}
    for line in collection.run.read_text().splitlines():
        topic, _, document, _, score, _ = line.split()
        scores.setdefault(topic, {})[document] = float(score)
    name = measure.replace("map_cut_", "map_cut.")
    found = pytrec_eval.RelevanceEvaluator(judged, {name}, relevance_level=level).evaluate(scores)
    return [found[topic][measure] for topic in sorted(judged)]


@pytest.mark.parametrize("level", [1, 2])
def test_statap_of_a_complete_sample_is_pytrec_evals_map(collection: Collection, level: int) -> None:
    spelled = "" if level == 1 else f"(rel={level})"
    for qrels in (collection.complete, collection.sampled):
        values = ours(collection, qrels, [f"statAP{spelled}", f"statAP{spelled}@20"], sample="prels")
        for found, measure in zip(values.values(), ("map", "map_cut_20"), strict=True):
            assert found == pytest.approx(theirs(collection, qrels, measure, level), abs=1e-9)


def test_ap_of_complete_judgments_is_pytrec_evals_map(collection: Collection) -> None:
    places = read_places(collection.run, "run")
    records = list(read_qrels(collection.complete, "qrels"))
    names, topic = np.unique([one.topic_id for one in records], return_inverse=True)
    labels = census(
        topic_index=topic, n_topics=names.size, grades=np.array([one.grade for one in records]), gains=[0, 1]
    )
    ranks = np.array([[places[one.topic_id].get(one.doc_id, 0) for one in records]])
    estimate = ratio_estimates(parse_ratio("AP"), labels, ranks, seed=1)[0]
    assert isinstance(estimate, Estimate)
    assert estimate.value == pytest.approx(np.mean(theirs(collection, collection.complete, "map")), abs=1e-9)
    assert estimate.standard_error == 0


def test_infap_of_complete_judgments_is_pytrec_evals_in_every_form(collection: Collection) -> None:
    forms = {
        "infAP(form=printed)": 1e-9,
        "infAP": SMOOTHING,
        "infAP(form=ht)": SMOOTHING,
        "infAP(form=difference)": SMOOTHING,
    }
    values = ours(collection, collection.complete, forms, sample="strata")
    expected = theirs(collection, collection.complete, "infAP")
    for name, error in forms.items():
        assert values[name] == pytest.approx(expected, abs=error), name
    average_precision = theirs(collection, collection.complete, "map")
    assert values["infAP(form=ht)"] == pytest.approx(average_precision, abs=1e-9)
    assert values["infAP(form=difference)"] == pytest.approx(average_precision, abs=1e-9)


@pytest.mark.parametrize("level", [1, 2])
def test_infap_of_a_part_is_pytrec_evals_in_the_printed_form(collection: Collection, level: int) -> None:
    name = f"infAP(rel={level},form=printed)" if level > 1 else "infAP(form=printed)"
    found = ours(collection, collection.sampled, [name], sample="strata")[name]
    assert found == pytest.approx(theirs(collection, collection.sampled, "infAP", level), abs=1e-9)
    # the control: what is not judged counts, so that AP is another number
    assert found != pytest.approx(theirs(collection, collection.sampled, "map", level), abs=1e-3)


def test_the_values_are_those_that_trec_eval_prints_of_its_files() -> None:
    files = trec_eval_collection()
    printed = {
        (measure, topic): float(value)
        for measure, topic, value in map(str.split, (TREC_EVAL / "out.test.aq").read_text().splitlines())
        if measure in ("map", "infAP", "map_cut_20")
    }
    statistic = ours(files, files.complete, ["statAP", "statAP@20"], sample="prels")
    inferred = ours(files, files.complete, ["infAP(form=printed)"], sample="strata")
    for measure, found in (
        ("map", statistic["statAP"]),
        ("map_cut_20", statistic["statAP@20"]),
        ("infAP", inferred["infAP(form=printed)"]),
    ):
        assert [*found, np.mean(found)] == pytest.approx(
            [printed[measure, topic] for topic in ("301", "302", "303", "all")], abs=PRINTED
        )
