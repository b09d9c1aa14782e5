"""What runs alone, or a few judgments, say of a ranking of systems: Carterette and Allan (2007) on runs with qrels.

    python experiments/carterette_2007.py FOLDER --qrels qrels.txt            # FOLDER/runs has the runs; minutes
    python experiments/carterette_2007.py FOLDER --qrels qrels.txt --manual citya1 CLARTM    # which are manual
    python experiments/carterette_2007.py FOLDER --qrels qrels.txt --subsets 0    # without Figure 4 and Table 6

Paper: B. Carterette, J. Allan: Research Methodology in Studies of Assessor Effort for Information Retrieval Evaluation,
RIAO 2007. Its six collections (the ad hoc tracks of TREC-3 to TREC-8) are not public; the paper's values stand beside
ours where the folder bears the name of one ("trec-8", "TREC3"). Files may be compressed. What the paper says and does
not define is read as the notes say.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.lowcost.run_folder import DEPTH, read_folder
from experiments.parts.few_judgments import Study, explained_deviance, pearson, shares_by_bin
from experiments.parts.few_judgments_claims import claims
from experiments.parts.few_judgments_paper import collection_of, contradictions, paper_value
from experiments.parts.few_judgments_subsets import figure4_rows, subset_taus, table6_rows
from experiments.parts.rows import Report, Row, as_json, as_text, row
from judging.textfiles import TrecFormatError
from sampling.arrays import FloatArray
from sampling.experts import manual_weights

HEADINGS = {
    "table1": "Table 1: the collection",
    "figure1": "Figure 1: runs ranked without judgments",
    "table2": "Table 2: share of relevant documents by probability",
    "table3": "Table 3: Kendall's tau with the ranking by MAP, without judgments",
    "figure2": "Figure 2: manual runs weigh more",
    "table4": "Table 4: similarity of the runs",
    "text51": "Section 5.1: correlations",
    "table5": "Table 5: lists of other documents, each as relevant as the one in its place",
    "text52": "Section 5.2: similarity among relevant documents over that among others",
    "figure3": "Figure 3: iterative reweighting",
    "text61": "Section 6.1: weights, and the judged documents alone",
    "figure4": "Figure 4: mean tau of random subsets of the runs",
    "table6": "Table 6: few judgments and none on subsets",
    "claims": "What the paper says of its collections, on this one (NO: does not come out)",
    "contradictions": "What does not come out of the paper itself: its words beside its own tables and definitions",
}
MANUAL_WEIGHTS = (8.0, 16.0)
SIZES = (2, 4, 6, 8, 10)  # of the subsets


def collection_rows(study: Study, collection: str, is_manual: Sequence[bool]) -> list[Row]:
    """Table 1."""
    topics = study.folder.topics
    return [
        row(name, paper_value(collection, name), float(number))
        for name, number in (
            ("topics", len(topics)),
            ("runs", len(study.folder.runs)),
            ("manual runs", sum(is_manual)),
            ("documents a topic", np.mean([len(topic.doc_ids) for topic in topics])),
            ("relevant documents a topic", np.mean([topic.is_relevant.sum() for topic in topics])),
        )
    ]


def ranking_rows(study: Study, scores: FloatArray, paper: float | None, addition: str = "") -> list[Row]:
    """EMAP and MAP of every run, and tau."""
    name = "tau of EMAP with MAP" + addition
    order = np.argsort(-scores, kind="stable")
    return [
        *(row(study.folder.runs[one], None, scores[one], note=f"MAP {study.scores[one]:.6f}") for one in order),
        row(name, paper, study.tau(scores)),
    ]  # fmt: skip


def defined(name: str, paper: float | None, computed: float, note: str = "") -> Row:
    """Return a row; without a number where a correlation or a ratio has none."""
    if math.isfinite(computed):
        return row(name, paper, computed, note=note)
    return Row(name, paper, None, note="not defined here")


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
    paper = paper_value(collection, "manual")
    if not any(is_manual):
        return [Row("tau", paper, None, note="no run is named as manual")]
    rows = []
    for weight in MANUAL_WEIGHTS:
        scores = study.weighted(manual_weights(is_manual, weight))
        rows += ranking_rows(study, scores, paper, f", manual runs weigh {weight:g}")
    return rows


def similarity_rows(study: Study, collection: str, is_manual: Sequence[bool]) -> list[Row]:
    """Table 4, over all documents, the relevant ones and the others; of all runs, automatic and manual ones."""
    every = study.similarity()
    all_runs, manual = np.ones(every.size, dtype=bool), np.array(is_manual)
    columns = [("d", every, all_runs)]
    if manual.any() and not manual.all():
        columns += [("d automatic", every, ~manual), ("d manual", every, manual)]
    columns += [
        ("d rel", study.similarity(lambda topic: topic.is_relevant), all_runs),
        ("d non", study.similarity(lambda topic: ~topic.is_relevant), all_runs),
    ]
    rows = []
    for key, values, chosen in columns:
        rows.append(defined(f"mean {key}", paper_value(collection, key), float(values[chosen].mean())))
        name = f"correlation of {key} with MAP"
        correlation = pearson(values[chosen], study.scores[chosen])
        rows.append(defined(name, paper_value(collection, f"rho({key})"), correlation))
    return rows


def correlation_rows(study: Study, collection: str) -> list[Row]:
    """Section 5.1."""
    return [
        row("n_ij with p_i - p_j", paper_value(collection, "n and p"), study.preference_correlation(),
            note="mean over topics; the paper's is a mean over its collections"),
        row("d with EMAP", paper_value(collection, "d and EMAP"), pearson(study.similarity(), study.expected),
            note="the paper's is a mean over its collections"),
    ]  # fmt: skip


def replacement_rows(studies: Mapping[str, Study], collection: str) -> list[Row]:
    """Table 5: the k-th relevant document of a list becomes the pool's k-th by id, or one drawn for the list."""
    rows = []
    for key, study in studies.items():
        d = study.similarity()
        rows.append(row(f"{key}: mean d", paper_value(collection, f"{key} d"), float(d.mean())))
        name = f"{key}: correlation of d with MAP"
        rows.append(defined(name, paper_value(collection, f"{key} rho"), study.correlation(d)))
    return rows


def ratio_rows(study: Study, studies: Mapping[str, Study], collection: str) -> list[Row]:
    """Section 5.2: d rel over d non, as the lists are and with other documents."""
    relevant, others = paper_value(collection, "d rel"), paper_value(collection, "d non")
    whole = None if relevant is None or others is None else relevant / others
    random = paper_value(collection, "random ratio")
    return [
        defined("d rel over d non", whole, similarity_ratio(study), "the paper: about 2"),
        defined("random: d rel over d non", random, similarity_ratio(studies["random"]), "the paper: nearly 3"),
        defined("deterministic: d rel over d non", None, similarity_ratio(studies["deterministic"]),
                "the paper: below 1"),
    ]  # fmt: skip


def similarity_ratio(study: Study) -> float:
    """Return mean d among relevant documents over that among the others; NaN where the latter is 0."""
    relevant, others = (
        float(study.similarity(documents).mean())
        for documents in (lambda topic: topic.is_relevant, lambda topic: ~topic.is_relevant)
    )
    return relevant / others if others > 0 else math.nan


def weight_rows(study: Study, collection: str, is_manual: Sequence[bool]) -> list[Row]:
    """Section 6.1: the weights of the runs, and MAP of the judged documents alone."""
    found, _ = study.reweighted
    rows = [
        row("documents judged", None, sum(len(labels) for labels in found.judged)),
        row("of these relevant", None, sum(sum(labels.values()) for labels in found.judged)),
    ]
    for name, weight in zip(study.folder.runs, found.weights, strict=True):
        rows.append(row(f"weight of {name}", None, weight))
    for name, chosen in (("automatic", ~np.array(is_manual)), ("manual", np.array(is_manual))):
        if any(is_manual) and chosen.any():
            paper, mean = paper_value(collection, f"weight {name}"), float(found.weights[chosen].mean())
            note = "the paper's is of all its collections"
            rows.append(row(f"mean weight of {name} runs", paper, mean, note=note))
    return [
        *rows,
        row("tau of the weights with MAP", None, study.tau(found.weights), note="the paper: at most about .3"),
        defined("correlation of the weights with MAP", None, study.correlation(found.weights)),
        row("tau, MAP of the judged alone", None, study.tau(study.judged_alone(found)),
            note="the paper: quite high"),
    ]  # fmt: skip


def report(study: Study, collection: str, given: argparse.Namespace) -> Report:
    """Return all rows; the same arguments give the same numbers."""
    is_manual = [name in given.manual for name in study.folder.runs]
    seed, n_runs = given.seed, len(study.folder.runs)
    replaced = {
        "random": study.replaced(np.random.default_rng([seed, 5])),
        "deterministic": study.replaced(None),
    }
    by_size = {
        size: subset_taus(study, size, given.subsets, seed)
        for size in given.sizes
        if given.subsets and size < n_runs
    }
    preferences, reweighted = (paper_value(collection, key) for key in ("preferences", "reweighted"))
    made: Report = {
        "table1": collection_rows(study, collection, is_manual),
        "figure1": ranking_rows(study, study.expected, preferences),
        "table2": calibration_rows(study, collection),
        "table3": pseudo_rows(study, collection, given.draws, seed),
        "figure2": manual_rows(study, collection, is_manual),
        "table4": similarity_rows(study, collection, is_manual),
        "text51": correlation_rows(study, collection),
        "table5": replacement_rows(replaced, collection),
        "text52": ratio_rows(study, replaced, collection),
        "figure3": ranking_rows(study, study.reweighted[1], reweighted, ", reweighted"),
        "text61": weight_rows(study, collection, is_manual),
        "figure4": figure4_rows(study, by_size),
        "table6": table6_rows(by_size, collection),
    }
    return {**made, "claims": claims(made), "contradictions": contradictions()}


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
    parser.add_argument("--subsets", type=int, default=50, help="of the runs, of each size; 0: none")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="of the subsets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if min(given.depth, given.draws) < 1:
        parser.error(f"depth and draws must be at least 1, got {given.depth} and {given.draws}")
    if given.subsets < 0 or min(given.sizes) < 2:
        parser.error(
            f"subsets must be at least 0 and sizes at least 2, got {given.subsets} and {given.sizes}"
        )
    try:
        folder = read_folder(given.folder, given.qrels, given.depth)
    except (OSError, ValueError, TrecFormatError) as error:
        parser.error(str(error))
    if len(folder.runs) < 2:
        parser.error(f"a ranking needs at least 2 runs, got {len(folder.runs)}")
    missing = sorted(set(given.manual) - set(folder.runs))
    if missing:
        parser.error(f"no run is named {missing[0]!r}")
    made = report(Study(folder), collection_of(given.folder.name), given)
    print(json.dumps(as_json(made), indent=1) if given.json else as_text(HEADINGS, made, significant=6))
    return 0


if __name__ == "__main__":
    sys.exit(main())
