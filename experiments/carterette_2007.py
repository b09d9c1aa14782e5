"""What runs alone, or a few judgments, say of a ranking of systems: Carterette and Allan (2007) on runs with qrels.

    python experiments/carterette_2007.py FOLDER --qrels qrels.txt            # FOLDER/runs has the runs; half a minute
    python experiments/carterette_2007.py FOLDER --qrels qrels.txt --manual citya1 CLARTM    # which are manual

Paper: B. Carterette, J. Allan: Research Methodology in Studies of Assessor Effort for Information Retrieval Evaluation,
RIAO 2007. Its six collections (the ad hoc tracks of TREC-3 to TREC-8) are not public; the paper's values stand beside
ours where the folder bears the name of one ("trec-8", "TREC3"). Files may be compressed. What the paper says and does
not define is read as the notes say.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.lowcost.run_folder import DEPTH, read_folder
from experiments.parts.few_judgments import Study, explained_deviance, pearson, replaced, shares_by_bin
from experiments.parts.rows import Report, Row, as_json, as_text, row
from judging.textfiles import TrecFormatError
from sampling.experts import manual_weights
from sampling.similarity import mean_similarity, similarities

HEADINGS = {
    "figure1": "Figure 1: runs ranked without judgments",
    "table2": "Table 2: share of relevant documents by probability",
    "table3": "Table 3: Kendall's tau with the ranking by MAP, without judgments",
    "figure2": "Figure 2: manual runs weigh more",
    "table4": "Table 4: similarity of the runs",
    "text51": "Section 5.1: correlations",
    "table5": "Table 5: lists of other documents, each as relevant as the one in its place",
    "figure3": "Figure 3 and section 6.1: iterative reweighting",
}
COLLECTIONS = ("3", "4", "5", "6", "7", "8")  # of TREC
PAPER: dict[str, tuple[float | None, ...]] = {
    "preferences": (0.528, 0.591, 0.355, 0.425, 0.416, 0.500),
    "uniform": (0.430, None, 0.487, 0.408, 0.369, 0.459),
    "popular": (0.482, None, 0.571, 0.491, 0.423, 0.534),
    "manual": (0.621, 0.633, 0.635, 0.635, 0.666, 0.691),
    "p from 0.2 to 0.3": (0.104, None, 0.016, 0.042, 0.019, 0.003),
    "p from 0.3 to 0.4": (0.059, 0.039, 0.026, 0.012, 0.013, 0.011),
    "p from 0.4 to 0.5": (0.134, 0.029, 0.061, 0.012, 0.035, 0.024),
    "p from 0.5 to 0.6": (0.109, 0.076, 0.052, 0.037, 0.028, 0.025),
    "p from 0.6 to 0.7": (0.189, 0.113, 0.067, 0.055, 0.060, 0.042),
    "p from 0.7 to 0.8": (0.233, 0.164, 0.107, 0.076, 0.074, 0.070),
    "p from 0.8 to 0.9": (0.322, 0.274, 0.141, 0.109, 0.101, 0.102),
    "p from 0.9 to 1.0": (0.545, 0.469, 0.293, 0.255, 0.243, 0.233),
    "R2": (0.123, 0.120, 0.066, 0.079, 0.085, 0.096),
    "deviance": (0.118, 0.143, 0.100, 0.148, 0.149, 0.172),
    "d": (0.216, 0.124, 0.160, 0.128, 0.185, 0.208),
    "rho(d)": (0.776, 0.838, 0.577, 0.646, 0.605, 0.748),
    "d rel": (0.324, 0.214, 0.261, 0.231, 0.325, 0.326),
    "rho(d rel)": (0.718, 0.820, 0.640, 0.743, 0.649, 0.757),
    "d non": (0.150, 0.092, 0.129, 0.103, 0.150, 0.171),
    "rho(d non)": (0.706, 0.766, 0.492, 0.552, 0.505, 0.690),
    "random d": (0.063, 0.046, 0.043, 0.048, 0.054, 0.056),
    "random rho": (0.967, 0.964, 0.934, 0.848, 0.932, 0.932),
    "deterministic d": (0.750, 0.672, 0.803, 0.772, 0.780, 0.792),
    "deterministic rho": (0.605, 0.327, 0.059, 0.219, -0.049, 0.159),
    "n and p": (0.999,) * 6,
    "d and EMAP": (0.988,) * 6,
}
MANUAL_WEIGHTS = (8.0, 16.0)


def paper_value(collection: str, key: str) -> float | None:
    """Return what the paper says of a collection; None for one that it does not have.

    >>> paper_value("8", "preferences"), paper_value("", "preferences")
    (0.5, None)
    """
    return PAPER[key][COLLECTIONS.index(collection)] if collection in COLLECTIONS and key in PAPER else None


def collection_of(name: str) -> str:
    """Return the number of the track that the folder is named after, or an empty text.

    >>> collection_of("TREC-8"), collection_of("trec3"), collection_of("clef")
    ('8', '3', '')
    """
    match = re.fullmatch(r"trec[-_ ]?([3-8])", name.lower())
    return match[1] if match else ""


def ranking_rows(study: Study, collection: str) -> list[Row]:
    """EMAP and MAP of every run, and tau."""
    order = np.argsort(-study.expected, kind="stable")
    return [
        *(row(study.folder.runs[one], None, study.expected[one], note=f"MAP {study.scores[one]:.6f}") for one in order),
        row("tau of EMAP with MAP", paper_value(collection, "preferences"), study.tau(study.expected)),
    ]  # fmt: skip


def calibration_rows(study: Study, collection: str) -> list[Row]:
    """Table 2, over the documents of all pools."""
    p = expit(study.thetas)
    rows = [
        row(name, paper_value(collection, name), share, note=f"{count} documents")
        for name, share, count in shares_by_bin(p, study.labels)
    ]
    squared = pearson(p, study.labels.astype(np.float64)) ** 2
    return [
        *rows,
        row("R^2", paper_value(collection, "R2"), squared, note="squared correlation of p and relevance"),
        row("deviance", paper_value(collection, "deviance"), explained_deviance(study.thetas, study.labels),
            note="1 less that of a logistic regression on theta over that of the intercept"),
        row("sum of p over number of documents", None, float(p.mean()), expected=0.5, tolerance=1e-9),
    ]  # fmt: skip


def pseudo_rows(study: Study, collection: str, n_draws: int, seed: int) -> list[Row]:
    """Table 3: the consensus beside judgments drawn at random."""
    rows = [row("preferences", paper_value(collection, "preferences"), study.tau(study.expected))]
    for whole in (True, False):
        for key, by_popularity in (("uniform", False), ("popular", True)):
            taus = study.pseudo_taus(n_draws, seed, by_popularity=by_popularity, whole=whole)
            name = f"pseudo-judgments, {key}" + ("" if whole else ", first ranks scored alone")
            note = f"{n_draws} draws, standard deviation {taus.std():.3f}"
            paper = paper_value(collection, key) if whole else None
            rows.append(row(name, paper, float(taus.mean()), note=note))
    return rows


def manual_rows(study: Study, collection: str, is_manual: Sequence[bool]) -> list[Row]:
    """Figure 2; without manual runs there is nothing to weigh."""
    if not any(is_manual):
        return [Row("tau", paper_value(collection, "manual"), None, note="no run is named as manual")]
    return [
        row(f"tau, manual runs weigh {weight:g}", paper_value(collection, "manual"),
            study.tau(study.weighted(manual_weights(is_manual, weight))), note="the paper: 8 to 16")
        for weight in MANUAL_WEIGHTS
    ]  # fmt: skip


def similarity_rows(study: Study, collection: str) -> list[Row]:
    """Table 4, over all documents, the relevant ones and the others."""
    rows = []
    for key, values in (
        ("d", study.similarity()),
        ("d rel", study.similarity(lambda topic: topic.is_relevant)),
        ("d non", study.similarity(lambda topic: ~topic.is_relevant)),
    ):
        rows.append(row(f"mean {key}", paper_value(collection, key), float(values.mean())))
        name = f"correlation of {key} with MAP"
        rows.append(row(name, paper_value(collection, f"rho({key})"), study.correlation(values)))
    return rows


def correlation_rows(study: Study, collection: str) -> list[Row]:
    """Section 5.1."""
    return [
        row("n_ij with p_i - p_j", paper_value(collection, "n and p"), study.preference_correlation(),
            note="mean over topics; the paper's is a mean over its collections"),
        row("d with EMAP", paper_value(collection, "d and EMAP"), pearson(study.similarity(), study.expected),
            note="the paper's is a mean over its collections"),
    ]  # fmt: skip


def replacement_rows(study: Study, collection: str, seed: int) -> list[Row]:
    """Table 5: the k-th relevant document of a list becomes the pool's k-th by id, or one drawn for the list."""
    rows = []
    for key, rng in (("random", np.random.default_rng([seed, 5])), ("deterministic", None)):
        d = mean_similarity([similarities(replaced(topic, rng)) for topic in study.folder.topics])
        rows.append(row(f"{key}: mean d", paper_value(collection, f"{key} d"), float(d.mean())))
        name = f"{key}: correlation of d with MAP"
        rows.append(row(name, paper_value(collection, f"{key} rho"), study.correlation(d)))
    return rows


def reweighting_rows(study: Study, is_manual: Sequence[bool]) -> list[Row]:
    """Figure 3, weights, and MAP of the judged documents alone."""
    found, scores = study.reweighted()
    n_judged = sum(len(labels) for labels in found.judged)
    n_relevant = sum(sum(labels.values()) for labels in found.judged)
    weights = [
        row(f"weight of {name}", None, weight)
        for name, weight in zip(study.folder.runs, found.weights, strict=True)
    ]
    means = []
    for name, chosen in (("automatic", ~np.array(is_manual)), ("manual", np.array(is_manual))):
        if any(is_manual) and chosen.any():
            means.append(row(f"mean weight of {name} runs", None, float(found.weights[chosen].mean()),
                             note="the paper: automatic .454, manual .961"))  # fmt: skip
    return [
        row("documents judged", None, n_judged),
        row("of these relevant", None, n_relevant),
        *weights,
        *means,
        row("tau, reweighted", None, study.tau(scores)),
        row("tau, MAP of the judged alone", None, study.tau(study.judged_alone(found))),
    ]


def report(study: Study, collection: str, manual: Sequence[str], n_draws: int, seed: int) -> Report:
    """Return all rows; the same arguments give the same numbers."""
    is_manual = [name in manual for name in study.folder.runs]
    return {
        "figure1": ranking_rows(study, collection),
        "table2": calibration_rows(study, collection),
        "table3": pseudo_rows(study, collection, n_draws, seed),
        "figure2": manual_rows(study, collection, is_manual),
        "table4": similarity_rows(study, collection),
        "text51": correlation_rows(study, collection),
        "table5": replacement_rows(study, collection, seed),
        "figure3": reweighting_rows(study, is_manual),
    }


def main(arguments: list[str] | None = None) -> int:
    """Return 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="has the runs in FOLDER/runs")
    parser.add_argument("--qrels", required=True, metavar="NAME", help="a file of the folder")
    parser.add_argument("--depth", type=int, default=DEPTH, help="of the pools")
    parser.add_argument(
        "--manual", nargs="+", default=[], metavar="RUN", help="names of files of manual runs"
    )
    parser.add_argument("--draws", type=int, default=100, help="of pseudo-judgments")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if min(given.depth, given.draws) < 1:
        parser.error(f"depth and draws must be at least 1, got {given.depth} and {given.draws}")
    try:
        folder = read_folder(given.folder, given.qrels, given.depth)
    except (OSError, ValueError, TrecFormatError) as error:
        parser.error(str(error))
    if len(folder.runs) < 2:
        parser.error(f"a ranking needs at least 2 runs, got {len(folder.runs)}")
    missing = sorted(set(given.manual) - set(folder.runs))
    if missing:
        parser.error(f"no run is named {missing[0]!r}")
    made = report(Study(folder), collection_of(given.folder.name), given.manual, given.draws, given.seed)
    print(json.dumps(as_json(made), indent=1) if given.json else as_text(HEADINGS, made, significant=6))
    return 0


if __name__ == "__main__":
    sys.exit(main())
