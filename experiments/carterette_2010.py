"""What erring assessors do to a ranking of systems: Carterette and Soboroff (2010) on collections like the track's.

    python experiments/carterette_2010.py                            # the tables as text, about six minutes
    python experiments/carterette_2010.py --topics 150 --seeds 4 --trials 4      # a first look, half a minute
    python experiments/carterette_2010.py --figures docs/images      # writes carterette-models.svg and two more
    python experiments/carterette_2010.py --prels prels.20001-60000.gz           # figures of the real judgments too

Paper: B. Carterette, I. Soboroff: The Effect of Assessor Errors on IR System Evaluation, SIGIR 2010. The log it rests
on and the runs are not public, so the collections are simulated (experiments/papers/track_collection.py), and a tau
depends on how far apart the simulated systems lie: taus are printed beside the paper's and those of an independent
simulation, and not checked. What must hold whatever the generator are the orders, which are checked; the program ends
with status 1, and says why, when one does not hold. `--prels` takes the file of judgments of the Million Query track of
2009 and checks counts and sums of it.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.parts.erring import (
    MODELS,
    POLICIES,
    UNINFORMED,
    Outcome,
    Track,
    bad_topic_curves,
    confirmed,
    flipped,
    judged_again,
    linear_fit,
    outcome,
    tau_grid,
)
from experiments.parts.erring_pictures import bad_topics_picture, grid_picture, models_picture
from experiments.parts.million_query import prels_rows
from experiments.parts.rows import Report, Row, as_json, as_text, failures, row
from judging.erring_assessors import erring_assessor
from sampling.arrays import FloatArray

HEADINGS = {
    "tau": "Figures 2 and 3: Kendall's tau with the true labels' ranking",
    "labels": "What the labels are: share judged relevant, mean inclusion probability of these (section 4.1)",
    "orders": "Orders that hold whatever the generator",
    "again": "Section 4.1: judging again after the optimist",
    "grid": "Figure 4: tau by the prior's parameters a and b, one trial a collection",
    "bad": "Figure 5: tau as topics are replaced by an erring double",
    "prels": "The judgments of the Million Query track of 2009",
}
PRINTED_FATIGUE = "fatigued:.05:1"
OTHERS = (PRINTED_FATIGUE, "sticky:.04", "sticky:.5")
PAPER_TAU = dict(zip(MODELS, (0.35, 0.33, 0.72, 0.92, 0.81, 0.90, 0.90, 0.84), strict=True))
# An independent simulation: 638 topics, 8 seeds
SIMULATED_TAU = {
    **dict(zip(MODELS, (0.38, 0.32, 0.89, 0.92, 0.88, 0.97, 0.92, 0.93), strict=True)),
    **dict(zip(OTHERS, (0.66, 0.98, 0.87), strict=True)),
}
PAPER_CHANCE = {"optimist:1:16": 0.09, "pessimist:16:1": 0.12}
SIMULATED_CHANCE = {"optimist:1:16": 0.060, "pessimist:16:1": 0.074}
OPTIMIST, PESSIMIST, DISGRUNTLED, LAZY = "optimist:1:16", "pessimist:16:1", "disgruntled:1:16", "lazy:1:16"
FLIP = 0.2  # the equal probability of a wrong label
CONFIRMATIONS = 12  # trials of a second vote, over all seeds together
MARGIN = 0.04  # of tau, by which influence times error beats relevant ones at random
AGAIN = 0.05  # share of the labels that are judged again, rightly
POWERS = tuple(2**power for power in range(11))  # of a and b in Figure 4
SPARSE_POWERS = POWERS[::2]
SHARES = tuple(np.linspace(0, 1, 11).tolist())  # of bad topics
PAPER_LIMIT = 232 / 638
STRAIGHT = 0.95  # R^2 of a line
MIXTURE, RANDOM = "all eight", "random alone"
BAD_KINDS = {
    MIXTURE: MODELS,
    "optimists alone": (OPTIMIST,),
    "pessimists alone": (PESSIMIST,),
    RANDOM: (UNINFORMED[0],),
}


# ---- the eight models -----------------------------------------------------------------------------------------


Outcomes = dict[str, list[Outcome]]  # by model, one for each collection


def mean(values: Iterable[float] | FloatArray) -> float:
    return float(np.mean(np.asarray(list(values))))


def all_outcomes(tracks: Sequence[Track], n_trials: int) -> Outcomes:
    return {
        model: [outcome(track, model, seed, n_trials) for seed, track in enumerate(tracks)]
        for model in (*MODELS, *OTHERS)
    }


def mean_tau(found: Outcomes, model: str) -> float:
    return mean(one.taus.mean() for one in found[model])


def tau_rows(found: Outcomes) -> list[Row]:
    """The paper's tau, that of the independent simulation, ours with its spread over collections."""
    rows = []
    for model in found:
        means = [one.taus.mean() for one in found[model]]
        spread = f", spread {np.std(means, ddof=1):.3f}" if len(means) > 1 else ""
        note = f"independent simulation {SIMULATED_TAU[model]:.2f}{spread}"
        if model == PRINTED_FATIGUE:
            note += "; the paper's parameters, with which no reading of the text gives its .90"
        if model.startswith("sticky"):
            note += "; not in the paper, fits its log"
        rows.append(row(model, PAPER_TAU.get(model), mean_tau(found, model), note=note))
    return rows


def label_rows(found: Outcomes, tracks: Sequence[Track]) -> list[Row]:
    """Shares and chances of the true labels, and of every model's."""
    truth = np.concatenate([label for track in tracks for label in track.truth])
    chances = np.concatenate([track.chances() for track in tracks])
    empty = mean(not one.any() for track in tracks for one in track.truth)
    rows = [
        row("true labels: share relevant", 0.26, mean(truth)),
        row("true labels: mean probability of these", None, mean(chances[truth == 1])),
        row("documents drawn with probability below .01", 0.1, mean(chances < 0.01)),
        row("topics without a relevant document", 95 / 638, empty),
    ]
    for model, outcomes in found.items():
        share = mean(one.share_relevant for one in outcomes)
        chance = mean(one.mean_chance for one in outcomes)
        note = f"independent simulation {SIMULATED_CHANCE[model]:.3f}" if model in SIMULATED_CHANCE else ""
        rows.append(row(f"{model}: share relevant", None, share))
        rows.append(row(f"{model}: mean probability", PAPER_CHANCE.get(model), chance, note=note))
    return rows


# ---- orders ---------------------------------------------------------------------------------------------------


def order_rows(found: Outcomes, tracks: Sequence[Track]) -> list[Row]:
    """What must hold: gaps between means over the collections."""
    informed = {model: mean_tau(found, model) for model in MODELS if model not in UNINFORMED}
    worst = min(informed, key=lambda model: informed[model])
    guessing = max(mean_tau(found, model) for model in UNINFORMED)
    alarms, misses = (
        mean(
            track.tau(flipped(track, truth, FLIP, np.random.default_rng([5, seed])))
            for seed, track in enumerate(tracks)
        )
        for truth in (0, 1)
    )  # fmt: skip
    chance = {model: mean(one.mean_chance for one in found[model]) for model in (OPTIMIST, PESSIMIST)}
    return [
        row("worst informed model less the better of random and alternating", None, informed[worst] - guessing,
            least=0.25, note=f"the worst is {worst}"),
        row("equal flip probability .2: misses less false alarms", None, misses - alarms, least=1e-9,
            note=f"tau {misses:.3f} and {alarms:.3f}"),
        row("lazy less disgruntled", 0.09, informed[LAZY] - informed[DISGRUNTLED], least=1e-9),
        row("mean probability of the judged relevant: pessimist less optimist", 0.03,
            chance[PESSIMIST] - chance[OPTIMIST], least=1e-9),
    ]  # fmt: skip


# ---- judging again --------------------------------------------------------------------------------------------


def again_rows(tracks: Sequence[Track]) -> list[Row]:
    """A second vote on rare relevant labels, as in the paper; a share of all labels judged again rightly, by policy."""
    assessor = erring_assessor(OPTIMIST)
    first, second = [], []
    for trial in range(max(CONFIRMATIONS, len(tracks))):
        track, rng = tracks[trial % len(tracks)], np.random.default_rng([6, trial])
        labels = track.labels(assessor, rng)
        first.append(track.tau(labels))
        second.append(track.tau(confirmed(track, labels, assessor, rng)))
    taus: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    before = []
    for seed, track in enumerate(tracks):
        rng = np.random.default_rng([7, seed])
        labels = track.labels(assessor, rng)
        before.append(track.tau(labels))
        for policy, priority in POLICIES.items():
            taus[policy].append(track.tau(judged_again(track, labels, priority(track, labels, rng), AGAIN)))
    means = {policy: mean(values) for policy, values in taus.items()}
    at_random, lowest, influence = means.values()
    simulated = dict(zip(POLICIES, (0.79, 0.884, 0.90), strict=True))
    return [
        row("as judged", 0.72, mean(first), note="independent simulation .886"),
        row("relevant with probability below .01 only if said twice", 0.75, mean(second),
            note="independent simulation .913"),
        row("what the second vote gains", 0.03, mean(second) - mean(first), least=1e-9,
            note=f"mean of {len(first)} trials"),
        row("before 5 % are judged again rightly", None, mean(before)),
        *(row(f"5 %, {policy}", None, value, note=f"independent simulation {simulated[policy]:.3g}, 150 topics")
          for policy, value in means.items()),
        row("influence times error less relevant ones at random", None, influence - at_random, least=MARGIN),
        row("influence times error less lowest probability", None, influence - lowest),
    ]  # fmt: skip


# ---- Figures 4 and 5 ------------------------------------------------------------------------------------------


Grids = dict[str, FloatArray]  # by "optimist" and "pessimist", [a, b]


def all_grids(tracks: Sequence[Track], powers: Sequence[int]) -> Grids:
    """Return tau by a and b, one trial a collection, mean over the collections."""
    return {
        key: np.mean([tau_grid(track, key, powers) for track in tracks], axis=0)
        for key in ("optimist", "pessimist")
    }


def grid_rows(grids: Grids) -> list[Row]:
    """How the two contours of Figure 4 compare, over the 36 cells of the powers of four."""
    step = (grids["optimist"].shape[0] - 1) // (len(SPARSE_POWERS) - 1)
    optimist, pessimist = (grids[key][::step, ::step] for key in ("optimist", "pessimist"))
    swapped = int((pessimist > optimist.T).sum())
    return [
        row("cells with pessimist(a, b) above optimist(b, a), of 36", None, swapped, least=34),
        row("cells with pessimist(a, b) above optimist(a, b), of 36", None, int((pessimist > optimist).sum()),
            note="independent simulation 23: equal parameters are no equal errors"),
        row("mean tau of the optimists", None, mean(optimist.ravel()), note="independent simulation .58"),
        row("mean tau of the pessimists", None, mean(pessimist.ravel()), note="independent simulation .75"),
    ]  # fmt: skip


Curves = dict[str, FloatArray]  # by kind of assessors, [trial, share]


def all_curves(tracks: Sequence[Track], n_trials: int) -> Curves:
    """Return tau by the share of bad topics, trials of all collections below each other."""
    return {
        kind: np.concatenate(
            [
                bad_topic_curves(track, SHARES, models, np.random.default_rng([8, seed]), n_trials)
                for seed, track in enumerate(tracks)
            ]
        )
        for kind, models in BAD_KINDS.items()
    }


def crossing(taus: Sequence[float], level: float = 0.9) -> float:
    """Return the share of bad topics at which a falling curve passes the level; 1 if it does not.

    >>> round(crossing([1.0, 0.95, 0.85, *[0.5] * 8]), 6)
    0.15
    """
    for place in range(1, len(taus)):
        if taus[place] < level:
            before, after = taus[place - 1], taus[place]
            part = (before - level) / (before - after)
            return float(SHARES[place - 1] + part * (SHARES[place] - SHARES[place - 1]))
    return 1.0


def bad_rows(curves: Curves) -> list[Row]:
    """Straight for the mixture, not for those who guess; where tau passes .9."""
    means = {kind: values.mean(axis=0).tolist() for kind, values in curves.items()}
    rows = []
    for kind, taus in means.items():
        least, most = STRAIGHT if kind == MIXTURE else None, STRAIGHT if kind == RANDOM else None
        rows.append(
            row(f"{kind}: R^2 of a straight line", None, linear_fit(SHARES, taus), least=least, most=most)
        )
    note = 'the paper\'s "over 40 %" is 232 of the 543 topics with a relevant document'
    rows.append(row(f"{MIXTURE}: share of bad topics where tau passes .9", PAPER_LIMIT, crossing(means[MIXTURE]),
                    note=note))  # fmt: skip
    rows += [
        row(f"{MIXTURE}: tau with {share:.0%} bad topics", None, tau)
        for share, tau in zip(SHARES, means[MIXTURE], strict=True)
        if share > 0
    ]
    return rows


# ---- the program ----------------------------------------------------------------------------------------------


def report(n_topics: int, n_seeds: int, n_trials: int, folder: Path | None = None) -> Report:
    """Return all rows; with a folder, write the pictures there. The same arguments give the same numbers."""
    tracks = [Track.of(n_topics, seed) for seed in range(n_seeds)]
    found = all_outcomes(tracks, n_trials)
    grids = all_grids(tracks, POWERS)
    curves = all_curves(tracks, max(1, n_trials // 4))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        pictures = {
            "models": models_picture(tracks[0].true_scores, {model: found[model][0] for model in MODELS}),
            "grid": grid_picture(grids, POWERS),
            "bad-topics": bad_topics_picture(curves, SHARES),
        }
        for name, picture in pictures.items():
            (folder / f"carterette-{name}.svg").write_text(picture.standalone_svg(), encoding="utf-8")
    return {
        "tau": tau_rows(found),
        "labels": label_rows(found, tracks),
        "orders": order_rows(found, tracks),
        "again": again_rows(tracks),
        "grid": grid_rows(grids),
        "bad": bad_rows(curves),
    }


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when every order holds, else 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=638)
    parser.add_argument("--seeds", type=int, default=8, help="collections")
    parser.add_argument("--trials", type=int, default=25, help="of each behaviour that draws, a collection")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="write the figures as SVG files")
    parser.add_argument("--prels", type=Path, nargs="+", metavar="FILE", help="files of the track of 2009")
    given = parser.parse_args(arguments)
    if min(given.topics, given.seeds, given.trials) < 1:
        parser.error(
            f"topics, seeds and trials must be at least 1, got {given.topics}, {given.seeds} and {given.trials}"
        )

    made = report(given.topics, given.seeds, given.trials, given.figures)
    if given.prels:
        made["prels"] = prels_rows(given.prels)
    print(json.dumps(as_json(made), indent=1) if given.json else as_text(HEADINGS, made))
    wrong = failures(made)
    for sentence in wrong:
        print(f"does not hold: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
