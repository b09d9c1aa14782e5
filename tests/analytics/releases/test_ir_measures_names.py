"""Every name of ir_measures in a release gives, of its qrels, our value of its qrels."""

import json

import ir_measures
import pytest
from release_runs import grades_of, judged_of, run_of
from run_samples import ranked_documents
from small_release import made_once, unpacked

from sampling.measures.scoring import evaluate_topics, measure_on_scale

pytestmark = pytest.mark.django_db
ASKED = ("P(rel=3)@5", "RBP@10", "RBP(p=0.5)@5", "RBP(p=0.8,rel=3)@10", "AP", "nDCG", "Judged@5")


def theirs(name, qrels, scores):
    """Return the values of ir_measures by topic; of RBP by its reading of the name: its package is not here."""
    measure = ir_measures.parse_measure(name)
    if measure.NAME != "RBP":
        return {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, scores)}
    p, rel, cutoff = (measure[key] for key in ("p", "rel", "cutoff"))
    found = {}
    for topic, ranked in scores.items():
        order = sorted(ranked, key=lambda document: -ranked[document])[:cutoff]
        gains = [float(qrels[topic].get(document, 0) >= rel) for document in order]
        found[topic] = (1 - p) * sum(gain * p**place for place, gain in enumerate(gains))
    return found


@pytest.mark.parametrize("relevant_grade", [1, 2])
def test_every_name_gives_there_what_it_gives_here(relevant_grade, tmp_path):
    folder = unpacked(made_once(relevant_grade=relevant_grade), tmp_path)
    about = json.loads((folder / "estimates.json").read_text())
    gains = about["gains_of_scale"]
    named = {name: one["ir_measures"] for name, one in about["measures"].items()}
    named |= {name: measure_on_scale(name, gains, relevant_grade).ir_measures for name in ASKED}
    qrels, compared = grades_of(folder), 0
    for run_id in ("run0", "run1", "run2"):
        ranking = run_of(folder, run_id)
        scores = {
            topic: {d: -float(rank) for rank, d in enumerate(found)} for topic, found in ranking.items()
        }
        for name, other in named.items():
            measure = measure_on_scale(name, gains, relevant_grade)
            assert measure.ir_measures == other
            if not other:
                continue
            ours = evaluate_topics(ranked_documents(ranking), judged_of(qrels), [measure])
            values = theirs(other, qrels, scores)
            assert [values[topic] for topic in ours.topic_ids] == pytest.approx(
                ours.values[0].tolist(), abs=1e-9
            ), name
            compared += 1
    assert compared >= 3 * (3 + len(ASKED))
    assert all("rel=" in named[name] for name in ASKED if name.startswith("RBP"))
    # the control: without rel, ir_measures takes the grades of RBP for gains, and there is another value
    assert "rel" not in ir_measures.parse_measure("RBP(p=0.8)@10").params
    told = (folder / "README.md").read_text()
    assert all(name in told for name in about["measures"])
    if relevant_grade == 2:
        assert "P@10 (in ir_measures P(rel=2)@10)" in told
