"""statAP as a measure of the registry: on a release a value without an interval, beside AP that has one."""

import json
from collections import defaultdict
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from ratio_samples import AP
from small_campaign import TOPICS, doc_id
from small_release import made_once, unpacked

from analytics.estimation.estimate import Refusal
from analytics.estimation.pseudolabels import PseudoLabels, pseudo_labels
from analytics.estimation.ratios import ratio_estimates, ratio_values
from analytics.estimation.samples import Frame
from analytics.releases.verify_facts import read_facts
from sampling.measures.registry import parse_measure, parse_ratio, reported_measures

pytestmark = pytest.mark.django_db
RANKING = {
    topic: [doc_id(place, d) for d in (1, 3, 5, 7, 9, 11, 13, 0, 2, 4)] for place, topic in enumerate(TOPICS)
}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return unpacked(made_once(), tmp_path)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "mine.run"
    lines = [
        f"{topic} Q0 {doc} 0 {-rank} mine\n"
        for topic, docs in RANKING.items()
        for rank, doc in enumerate(docs)
    ]
    path.write_text("".join(lines))
    return path


def output_of(*arguments: object) -> str:
    out = StringIO()
    call_command("evaluate", *map(str, arguments), stdout=out)
    return out.getvalue()


def statap_by_formula(folder: Path) -> float:
    """Return (1/R) sum x (1 + A) / (pi rank), the mean over topics, from the facts of a release; x is a mean label."""
    about = json.loads((folder / "estimates.json").read_text())
    facts = read_facts(folder, about, with_runs=False)
    labels = defaultdict(list)
    for item, grade in zip(facts.label_item.tolist(), facts.label_grade.tolist(), strict=True):
        labels[item].append(grade >= about["scale"]["relevant_grade"])
    chance = facts.first_probability.sum(axis=0)[facts.item]
    weights = np.array([np.mean(labels[item]) for item in range(facts.item.size)]) / chance
    pair_of = {place: pair for pair, place in facts.places.items()}
    weight_of = dict(zip((pair_of[place] for place in facts.item.tolist()), weights.tolist(), strict=True))
    values = []
    for topic, docs in RANKING.items():
        above = numerator = 0.0
        for rank, doc in enumerate(docs, 1):
            weight = weight_of.get((topic, doc), 0.0)
            numerator, above = numerator + weight * (1 + above) / rank, above + weight
        total = sum(weight for (of, _), weight in weight_of.items() if of == topic)
        values.append(numerator / total if total else 0.0)
    return float(np.mean(values))


def test_a_release_gives_its_value_alone(release: Path, run: Path) -> None:
    found = json.loads(output_of(release, run, "statAP", "--output", "json"))["measures"][0]
    assert set(found["estimate"]) == {"value", "no_interval"}
    assert found["estimate"]["value"] == pytest.approx(statap_by_formula(release), abs=1e-12)
    assert "no interval of statAP holds" in found["estimate"]["no_interval"]
    assert found["corrected"]["refusal"] == "it takes the grades as they are given"


def test_the_table_shows_the_value_without_an_interval_and_says_why(release: Path, run: Path) -> None:
    lines = output_of(release, run, "AP@10", "statAP@10").splitlines()
    row = next(line for line in lines if line.startswith("statAP@10"))
    assert "[" not in row
    assert any(line.startswith("statAP@10 estimate: no interval of statAP@10 holds") for line in lines)


def test_the_prels_of_a_release_are_read_like_those_of_others(release: Path, run: Path) -> None:
    """The grades of prels are those of the qrels, one an item; the value is computed from them by hand."""
    prels = release / "prels.txt"
    found = json.loads(output_of(prels, run, "statAP", "--format", "prels", "--output", "json"))
    rows = [line.split() for line in prels.read_text().splitlines()]
    weights = {(topic, doc): (int(grade) > 0) / float(chance) for topic, doc, grade, _, chance in rows}
    values = []
    for topic in dict.fromkeys(row[0] for row in rows):
        above = numerator = 0.0
        for rank, doc in enumerate(RANKING[topic], 1):
            weight = weights.get((topic, doc), 0.0)
            numerator, above = numerator + weight * (1 + above) / rank, above + weight
        total = sum(weight for (of, _), weight in weights.items() if of == topic)
        values.append(numerator / total if total else 0.0)
    assert found["measures"][0]["values"]["mine"] == pytest.approx(np.mean(values), abs=1e-12)


def test_it_is_of_the_kind_of_ratios_and_no_campaign_reports_it() -> None:
    measure = parse_measure("statAP(rel=2)@20")
    assert (measure.name, measure.kind.key) == ("statAP(rel=2)@20", "ratio")
    assert not any(name.startswith("statAP") for name in reported_measures("P@10", 100))


def labels_of(prediction: float) -> tuple[PseudoLabels, np.ndarray]:
    rng = np.random.default_rng(2)
    frame = Frame(2, np.repeat([0, 1], 20), np.arange(40), rng.uniform(0.1, 1, 40))
    ranks = np.stack([np.tile(np.arange(1, 21), 2), np.tile(np.arange(20, 0, -1), 2)])
    label = (rng.random(40) < 0.4).astype(float)
    return pseudo_labels(frame, prediction=np.full(40, prediction), label=label), ranks


def test_its_intervals_are_refused_for_every_run_and_pair() -> None:
    labels, ranks = labels_of(0.0)
    found = ratio_estimates(parse_ratio("statAP"), labels, ranks, seed=1)
    assert len(found) == 3
    assert all(isinstance(one, Refusal) and "statAP is a value alone" in one.reason for one in found)


@pytest.mark.parametrize("name", ["statAP", "micro statAP"])
def test_its_value_is_that_of_ap_without_predictions(name: str) -> None:
    labels, ranks = labels_of(0.0)
    expected = ratio_values(AP if name == "statAP" else parse_ratio("micro AP"), labels, ranks)
    assert ratio_values(parse_ratio(name), labels, ranks) == pytest.approx(expected, abs=1e-15)
    assert np.all(expected > 0)
