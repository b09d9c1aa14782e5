"""Real crowds with expert gold: how workers err, how good aggregated labels are, and corrected prevalence.

    .venv/bin/python experiments/real_crowds.py --data <folder with the two sets> [--audits 500] [--json]

The folder holds `trec2011_crowd_vuurens` (relevance, two grades; NIST's "partly" and "highly" are one) and
`gal_AdultContent2` (web pages G, P, R, X as grades 0 to 3). Labels are read by the product's own reader of crowd
files; where a worker labelled an item twice, the last label counts, as `manage.py import_judgments --repeats last`
has it. Models are fitted to all labels, gold unseen; gold is for judging them only, but for "gold-anchored", which sees
four fifths of the gold and is judged on the fifth part, five times.

Prevalence: the population is every item with labels and gold, N in all, so that the truth is known. Seeded audits
(each item with probability m/N) take turns, and each grade's share is estimated from the audit and all labels.
"""

import argparse
import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.aggregation.dawid_skene import Aggregation, dawid_skene, majority, one_coin, spammers
from analytics.estimation.confusion import assessor_counts, confusion_from_counts, shrink
from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.samples import AuditSample, Labels
from analytics.papers.inverse import matrix_inverse
from experiments.papers.aggregation import aggregate_confusion
from judging.judgment_tables import read_crowd_labels

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MODELS: dict[str, Callable[..., Any]] = {
    "majority": majority,
    "one-coin": one_coin,
    "spammers": spammers,
    "Dawid-Skene": dawid_skene,
}
FOLDS, STEPS = 5, 10


@dataclass(frozen=True)
class Crowd:
    """Labels of all items, and the gold of some."""

    name: str
    item: Ints
    assessor: Ints
    grade: Ints
    gold_item: Ints
    gold_grade: Ints
    n_items: int
    n_assessors: int
    n_grades: int
    n_repeats: int

    def fit(self, model: Callable[..., Any], **options: Any) -> Aggregation:
        sizes = {"n_items": self.n_items, "n_assessors": self.n_assessors, "n_grades": self.n_grades}
        fitted = model(Labels(self.item, self.assessor, self.grade, **sizes), **options)
        if isinstance(fitted, Refusal):
            raise SystemExit(f"{self.name}: {fitted.reason}")
        return fitted  # type: ignore[no-any-return]


# -- reading ------------------------------------------------------------------------------------------------


def lines(path: Path) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield [field.strip() for field in line.rstrip("\n").split("\t")]


def crowd_of(name: str, rows: list[tuple[str, str, str, int]], gold: dict[tuple[str, str], int]) -> Crowd:
    """Return the set from (topic, document, worker, grade) and gold by (topic, document)."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["topic_id", "doc_id", "worker", "label"])
    writer.writerows(rows)
    source = io.BytesIO(text.getvalue().encode())
    last = {
        (record.topic_id, record.doc_id, record.assessor): record.grade
        for record in read_crowd_labels(source, name, allows_repeats=True)
    }
    items = {pair: place for place, pair in enumerate(dict.fromkeys(key[:2] for key in last))}
    workers = {worker: place for place, worker in enumerate(dict.fromkeys(key[2] for key in last))}
    known = [(items[pair], grade) for pair, grade in gold.items() if pair in items]
    gold_item, gold_grade = np.array(known, dtype=np.int64).T
    grades = np.array(list(last.values()), dtype=np.int64)
    return Crowd(
        name,
        np.array([items[key[:2]] for key in last], dtype=np.int64),
        np.array([workers[key[2]] for key in last], dtype=np.int64),
        grades,
        gold_item,
        gold_grade,
        len(items),
        len(workers),
        int(max(grades.max(), gold_grade.max())) + 1,
        len(rows) - len(last),
    )


def trec(folder: Path, everybody: bool) -> Crowd:
    def pair(question: str) -> tuple[str, str]:
        topic, _, document = question.partition("_")
        return topic, document

    rows = [
        (*pair(question), f"own-{worker}", int(label))
        for _, question, worker, label in lines(folder / "votes.tsv.gz")
    ]
    if everybody:
        others = lines(folder / "otherparticipantsvotes.tsv.gz")
        rows += [(*pair(question), worker, int(label)) for question, worker, label in others]
    gold = {pair(question): min(int(grade), 1) for question, grade in lines(folder / "gold_nist.tsv.gz")}
    return crowd_of("TREC 2011, all participants" if everybody else "TREC 2011, one team", rows, gold)


def adult(folder: Path) -> Crowd:
    grades = {code: grade for grade, code in enumerate("GPRX")}

    def page(address: str) -> tuple[str, str]:
        return "adult", address.removeprefix("http://").removeprefix("www.").rstrip("/").lower()

    rows = [(*page(url), worker, grades[code]) for worker, url, code in lines(folder / "labels.txt.gz")]
    gold = {page(url): grades[code] for url, code in lines(folder / "gold.txt.gz")}
    return crowd_of("AdultContent2", rows, gold)


# -- how workers err ----------------------------------------------------------------------------------------


def confusions(crowd: Crowd) -> dict[str, Any]:
    """Return the pooled matrix of all labels of gold items, and what shrinking makes of the workers' own."""
    true = np.full(crowd.n_items, -1)
    true[crowd.gold_item] = crowd.gold_grade
    known = true[crowd.item] >= 0
    counts = assessor_counts(
        crowd.assessor[known], true[crowd.item][known], crowd.grade[known], crowd.n_assessors, crowd.n_grades
    )
    together, own = confusion_from_counts(counts.sum(axis=0)), shrink(counts)
    per_worker = counts.sum(axis=(1, 2))
    report: dict[str, Any] = {
        "gold_labels": int(known.sum()),
        "workers_with_gold": int((per_worker > 0).sum()),
        "median_gold_labels_of_a_worker": float(np.median(per_worker[per_worker > 0])),
        "pooled": together.matrix,
        "labels_by_true_grade": together.n_per_grade,
    }
    if isinstance(own, Refusal):
        return report | {"shrunk": own.reason}
    right = np.diagonal(own.matrices, axis1=1, axis2=2)[per_worker > 0]
    report["strength"] = own.strength.tolist()
    report["right_at_10_50_90_percent_of_workers"] = np.quantile(right, [0.1, 0.5, 0.9], axis=0).T.tolist()
    return report


# -- how good aggregated labels are -------------------------------------------------------------------------


def accuracy(counts: Floats) -> dict[str, float]:
    rows = counts / counts.sum(axis=1, keepdims=True)
    return {
        "accuracy": float(np.trace(counts) / counts.sum()),
        "balanced_accuracy": float(np.diagonal(rows).mean()),
    }


def accuracies(crowd: Crowd, fits: dict[str, Aggregation]) -> dict[str, Any]:
    gold_tied = {name: float(fit.is_tied[crowd.gold_item].mean()) for name, fit in fits.items()}
    report = {
        name: accuracy(aggregate_confusion(fit, crowd.gold_item, crowd.gold_grade))
        | {"tied": gold_tied[name], "passes": fit.iterations, "warning": fit.warning}
        for name, fit in fits.items()
    }
    fold = np.random.default_rng(0).permutation(crowd.gold_item.size) % FOLDS
    counts = np.zeros((crowd.n_grades, crowd.n_grades))
    for part in range(FOLDS):
        seen, held_out = fold != part, fold == part
        anchored = crowd.fit(
            dawid_skene, known_item=crowd.gold_item[seen], known_grade=crowd.gold_grade[seen]
        )
        counts += aggregate_confusion(anchored, crowd.gold_item[held_out], crowd.gold_grade[held_out])
    return report | {"Dawid-Skene, gold-anchored": accuracy(counts)}


# -- prevalence ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Population:
    """The items with labels and gold: their labels renumbered, vote shares and Dawid-Skene posteriors."""

    gold: Ints
    label_item: Ints
    label_grade: Ints
    shares: Floats
    posterior: Floats

    @property
    def n_grades(self) -> int:
        return int(self.shares.shape[1])


def population_of(crowd: Crowd, fits: dict[str, Aggregation]) -> Population:
    place = np.full(crowd.n_items, -1)
    place[crowd.gold_item] = np.arange(crowd.gold_item.size)
    mine = place[crowd.item] >= 0
    return Population(
        crowd.gold_grade,
        place[crowd.item[mine]],
        crowd.grade[mine],
        fits["majority"].posterior[crowd.gold_item],
        fits["Dawid-Skene"].posterior[crowd.gold_item],
    )


def by_inverse(people: Population, audited: NDArray[np.bool_], gain: Floats, seed: int) -> Estimate | Refusal:
    """Return the matrix inverse with one matrix for all, from the audited items; an item's labels share one vote."""
    n_items, n_grades = people.shares.shape
    counts = np.zeros((n_grades, n_grades))
    np.add.at(counts, people.gold[audited], people.shares[audited])
    gold = counts.sum(axis=1)
    if (gold == 0).any():
        return Refusal(f"no gold label of true grade {int(np.argmin(gold))}")
    nobody = np.zeros(people.label_item.size, dtype=np.int64)
    labels = Labels(
        people.label_item, nobody, people.label_grade, n_items=n_items, n_assessors=1, n_grades=n_grades
    )
    return matrix_inverse(
        np.full(n_items, 1 / n_items),
        labels,
        draw_probability=np.ones(n_items),
        matrices=(counts / gold[:, None])[None],
        gold_per_grade=gold[None],
        gains=gain,
        rng=np.random.default_rng(seed),
    )[0]


def by_greg(people: Population, audited: NDArray[np.bool_], gain: Floats, score: Floats, pi: float) -> Any:
    n_items = people.gold.size
    audit = AuditSample(
        draw_probability=np.ones(n_items),
        bronze_class=np.rint(score * STEPS).astype(np.int64),
        audited=audited,
        gold_grade=people.gold,
        audit_probability=np.full(n_items, pi),
        n_grades=people.n_grades,
    )
    return correct(np.full(n_items, 1 / n_items), audit, gain).estimates[0]


def one_audit(people: Population, pi: float, seed: int, inverse: bool) -> dict[str, list[Any]]:
    """Return every method's result for every grade."""
    audited = np.random.default_rng(seed).random(people.gold.size) < pi
    results: dict[str, list[Any]] = {}
    for grade in range(people.n_grades):
        gain = np.eye(people.n_grades)[grade]
        by_method = {
            "gold alone": by_greg(people, audited, gain, np.zeros(people.gold.size), pi),
            "GREG, vote share": by_greg(people, audited, gain, people.shares[:, grade], pi),
            "GREG, Dawid-Skene": by_greg(people, audited, gain, people.posterior[:, grade], pi),
        }
        if inverse:
            by_method["matrix inverse"] = by_inverse(people, audited, gain, seed)
        for method, result in by_method.items():
            results.setdefault(method, []).append(result)
    return results


def prevalence(people: Population, m: int, n_audits: int) -> dict[str, Any]:
    """Return truth, the estimates of one audit, and coverage, width and bias over all audits, by grade."""
    n_items, pi = people.gold.size, m / people.gold.size
    truth = np.bincount(people.gold, minlength=people.n_grades) / n_items
    audits = [one_audit(people, pi, seed, inverse=True) for seed in range(n_audits)]
    best = people.shares >= people.shares.max(axis=1, keepdims=True) - 1e-9
    report: dict[str, Any] = {
        "N": n_items,
        "m": m,
        "audits": n_audits,
        "truth": truth.tolist(),
        "raw majority": (best / best.sum(axis=1, keepdims=True)).mean(axis=0).tolist(),
        "Dawid-Skene posterior mean": people.posterior.mean(axis=0).tolist(),
    }
    for method in audits[0]:
        report[method] = [
            _summary([audit[method][grade] for audit in audits], truth[grade])
            for grade in range(people.n_grades)
        ]
    return report


def _summary(results: list[Any], truth: float) -> dict[str, Any]:
    usable = [result for result in results if isinstance(result, Estimate)]
    first = results[0]
    summary: dict[str, Any] = {
        "refused": len(results) - len(usable),
        "first_audit": (
            [first.value, first.low, first.high] if isinstance(first, Estimate) else first.reason
        ),
    }
    if usable:
        values = np.array([result.value for result in usable])
        summary |= {
            "bias": float(values.mean() - truth),
            "coverage": float(np.mean([result.low <= truth <= result.high for result in usable])),
            "width": float(np.mean([result.high - result.low for result in usable])),
        }
    return summary


# -- output -------------------------------------------------------------------------------------------------


def words(report: dict[str, Any]) -> Iterator[str]:
    for name, data in report.items():
        yield f"\n{name}: {data['labels']:,} labels of {data['items']:,} items by {data['workers']} workers"
        yield f"  repeated labels (the last counts): {data['repeats']}; items with gold: {data['gold']}"
        errors = data["confusion"]
        yield f"  gold labels of a worker, median: {errors['median_gold_labels_of_a_worker']:g}; pooled matrix:"
        for grade, row in enumerate(errors["pooled"]):
            yield f"    true {grade}: " + " ".join(f"{share:.3f}" for share in row)
        yield f"  strength of shrinking by grade: {np.round(errors['strength'], 2).tolist()}"
        for model, figures in data["accuracy"].items():
            tied = f", tied {figures['tied']:.3f}" if "tied" in figures else ""
            kind = f"balanced {figures['balanced_accuracy']:.3f}"
            yield f"  {model:27} accuracy {figures['accuracy']:.3f}, {kind}{tied}  {figures.get('warning', '')}"
        for part in data["prevalence"]:
            yield f"  prevalence, {part['m']} of {part['N']} audited, {part['audits']} audits"
            for line in ("truth", "raw majority", "Dawid-Skene posterior mean"):
                yield f"    {line:27} " + "  ".join(f"{share:.3f}" for share in part[line])
            for method in ("gold alone", "GREG, vote share", "GREG, Dawid-Skene", "matrix inverse"):
                yield f"    {method:27} " + "  ".join(_cell(cell) for cell in part[method])


def _cell(cell: dict[str, Any]) -> str:
    if "coverage" not in cell:
        return f"refused {cell['refused']}"
    refused = f", refused {cell['refused']}" if cell["refused"] else ""
    first = cell["first_audit"]
    shown = f"{first[0]:.3f} ({first[1]:.3f}, {first[2]:.3f})" if isinstance(first, list) else "refused"
    return f"{shown} [covers {cell['coverage']:.3f}, width {cell['width']:.3f}, bias {cell['bias']:+.3f}{refused}]"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the two sets")
    parser.add_argument("--audits", type=int, default=500, help="seeded audits of each size (default: 500)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200], help="m (default: 100 200)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    crowds = [
        trec(given.data / "trec2011_crowd_vuurens", everybody=False),
        trec(given.data / "trec2011_crowd_vuurens", everybody=True),
        adult(given.data / "gal_AdultContent2"),
    ]
    report = {}
    for crowd in crowds:
        fits = {name: crowd.fit(model) for name, model in MODELS.items()}
        people = population_of(crowd, fits)
        report[crowd.name] = {
            "labels": crowd.item.size,
            "items": crowd.n_items,
            "workers": crowd.n_assessors,
            "gold": crowd.gold_item.size,
            "repeats": crowd.n_repeats,
            "confusion": confusions(crowd),
            "accuracy": accuracies(crowd, fits),
            "prevalence": [prevalence(people, m, given.audits) for m in given.sizes],
        }
    print(json.dumps(report, indent=1) if given.json else "\n".join(words(report)))


if __name__ == "__main__":
    main()
