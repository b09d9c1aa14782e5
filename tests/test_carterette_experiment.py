"""experiments/carterette_2010.py: the orders hold on small collections, and one that does not hold is noticed.

Absolute taus depend on the generator and are not tested.
"""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from experiments import carterette_2010
from experiments.papers.track_collection import mean_scores
from experiments.parts.erring import Outcome, Track, linear_fit
from experiments.parts.million_query import prels_rows
from experiments.parts.rows import as_text, failures, row

KEYS = ["tau", "labels", "orders", "again", "grid", "bad"]


@pytest.fixture(scope="module")
def tracks():
    return [Track.of(150, seed) for seed in range(4)]


@pytest.fixture(scope="module")
def found(tracks):
    return carterette_2010.all_outcomes(tracks, 2)


@pytest.fixture(scope="module")
def grids(tracks):
    return carterette_2010.all_grids(tracks, carterette_2010.SPARSE_POWERS)


@pytest.fixture(scope="module")
def curves(tracks):
    return carterette_2010.all_curves(tracks, 3)


def by_name(rows):
    return {line.name: line.computed for line in rows}


def planted(part, rows):
    return [sentence.split(":")[0] for sentence in failures({part: rows})]


def test_the_scores_are_those_of_the_products_function(tracks):
    track = tracks[0]
    rng = np.random.default_rng(1)
    labels = [rng.integers(0, 2, truth.size) for truth in track.truth]
    labels[3][:] = 0
    samples = [topic.with_labels(given) for topic, given in zip(track.topics, labels, strict=True)]
    assert track.scores(labels) == pytest.approx(mean_scores(samples), rel=1e-12)


def test_collections_have_the_tracks_shares(found, tracks):
    shares = by_name(carterette_2010.label_rows(found, tracks))
    assert shares["true labels: share relevant"] == pytest.approx(0.26, abs=0.03)
    assert shares["documents drawn with probability below .01"] == pytest.approx(0.12, abs=0.03)
    assert shares["topics without a relevant document"] == pytest.approx(0.15, abs=0.05)


def test_the_orders_hold(found, tracks):
    assert failures({"orders": carterette_2010.order_rows(found, tracks)}) == []


def test_judging_again_helps_and_influence_times_error_helps_most(tracks):
    assert failures({"again": carterette_2010.again_rows(tracks)}) == []


def test_a_pessimist_harms_less_than_an_optimist_of_swapped_parameters(grids):
    assert failures({"grid": carterette_2010.grid_rows(grids)}) == []


def test_tau_falls_on_a_straight_line_for_a_mixture_and_not_for_guessing(curves):
    assert failures({"bad": carterette_2010.bad_rows(curves)}) == []


# ---- a wrong order is noticed ---------------------------------------------------------------------------------


def test_swapped_outcomes_are_noticed(found, tracks):
    swapped = found | {"lazy:1:16": found["disgruntled:1:16"], "disgruntled:1:16": found["lazy:1:16"]}
    assert planted("orders", carterette_2010.order_rows(swapped, tracks)) == ["orders, lazy less disgruntled"]
    guessing = found | {"pessimist:16:1": found["random:1:8"]}
    assert "orders, worst informed model less the better of random and alternating" in planted(
        "orders", carterette_2010.order_rows(guessing, tracks)
    )


def test_swapped_contours_and_curves_are_noticed(grids, curves):
    swapped = {"optimist": grids["pessimist"], "pessimist": grids["optimist"]}
    assert len(planted("grid", carterette_2010.grid_rows(swapped))) == 1
    mixture, alone = curves[carterette_2010.MIXTURE], curves[carterette_2010.RANDOM]
    wrong = {carterette_2010.MIXTURE: alone, carterette_2010.RANDOM: mixture}
    assert len(planted("bad", carterette_2010.bad_rows(curves | wrong))) == 2


def test_a_policy_that_follows_no_error_is_noticed(tracks, monkeypatch):
    name = "influence times error probability"
    monkeypatch.setitem(
        carterette_2010.POLICIES, name, lambda track, labels, rng: rng.random(track.chances().size)
    )
    assert planted("again", carterette_2010.again_rows(tracks)) == [
        "again, influence times error less relevant ones at random"
    ]


def test_bounds_of_a_row_are_checked_and_said():
    low = row("gap", None, 0.1, least=0.25)
    assert (low.ok, row("gap", None, 0.3, least=0.25, most=0.4).ok) == (False, True)
    assert failures({"orders": [low]}) == ["orders, gap: computed 0.1, must be at least 0.25"]
    assert "NO: at least 0.25" in as_text({"orders": "Orders"}, {"orders": [low]})


def test_the_share_where_tau_passes_a_level():
    assert carterette_2010.crossing([1.0] * 11) == 1
    assert linear_fit([0, 1, 2], [1, 0.5, 0]) == pytest.approx(1)


# ---- the program ----------------------------------------------------------------------------------------------


def test_the_program_prints_json_and_writes_pictures(capsys, tmp_path):
    arguments = ["--topics", "15", "--seeds", "2", "--trials", "2"]
    texts = []
    for _ in range(2):
        carterette_2010.main([*arguments, "--json", "--figures", str(tmp_path)])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    made = json.loads(texts[0])
    assert list(made) == KEYS
    assert all(np.isfinite(line["computed"]) for lines in made.values() for line in lines)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["carterette-bad-topics.svg", "carterette-grid.svg", "carterette-models.svg"]
    for path in tmp_path.iterdir():
        root = ET.fromstring(path.read_text())  # noqa: S314 (our own)
        assert root.find("{http://www.w3.org/2000/svg}title").text


@pytest.mark.parametrize("option", ["--topics", "--seeds", "--trials"])
def test_impossible_arguments_are_refused(option, capsys):
    with pytest.raises(SystemExit):
        carterette_2010.main([option, "0"])
    assert "must be at least 1" in capsys.readouterr().err


def test_sums_of_a_file_of_judgments(tmp_path):
    file = tmp_path / "prels.txt"
    file.write_text("20001 d1 1 1 .5\n20001 d2 2 0 .25\n20001 d3 0 1 .1\n20002 d1 0 2 1\n")
    rows = prels_rows([file])
    sums = by_name(rows)
    assert sums["topics"] == 2
    assert sums["relevant"] == 2
    assert sums["topics without a relevant document"] == 1
    assert sums["sum of R-hat"] == 6
    assert sums["sum of R-hat, methods 0 and 2 at probability 1"] == 3
    assert all(line.ok is False for line in rows)


def test_the_spread_of_an_outcome_is_over_trials(found):
    one = found["random:1:8"][0]
    assert isinstance(one, Outcome)
    assert one.taus.shape == (2,)
    assert found["lazy:1:16"][0].taus.shape == (1,)
