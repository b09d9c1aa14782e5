"""What several judges say together: one grade of many labels, and how far they agree."""

from typing import Any

import numpy as np
import polars as pl

from analytics.aggregation.dawid_skene import dawid_skene
from analytics.aggregation.grade_tables import NO_GRADE
from analytics.aggregation.rules import aggregation_keys, aggregation_rule_of
from analytics.agreement.alpha import krippendorff_alpha
from analytics.agreement.tiers import cohen_kappa, scott_pi
from analytics.estimation.estimate import Refusal
from analytics.estimation.samples import Labels
from touchstone_ir.columns import InputRefused
from touchstone_ir.readers import read_qrels
from touchstone_ir.results import Result
from touchstone_ir.samples import PAIR

KAPPAS = {"cohen": cohen_kappa, "scott": scott_pi}
KINDS = ("alpha", "alpha-ordinal", "alpha-interval", *KAPPAS)


def aggregate(judgments: Any, *, rule: str = "median", relevant: int = 1) -> pl.DataFrame:
    """Return one grade of every pair: topic, doc, grade, certainty.

    Parameters
    ----------
    judgments : table or path
        With a column assessor; each has one grade of a pair.
    rule : str
        "median" (the lower one), "majority", "dawid-skene" or "supermajority".
    relevant : int
        The lowest grade that counts as relevant.

    Returns
    -------
    polars.DataFrame
        `certainty` is the share of the pair's labels that say the grade; by Dawid and Skene the model's probability.

    Raises
    ------
    InputRefused, ValueError
        Another rule, a model that cannot be fitted, judgments without assessors.

    Examples
    --------
    >>> labels = {"topic": ["1"] * 3, "doc": ["a"] * 3, "assessor": ["x", "y", "z"], "grade": [0, 1, 1]}
    >>> aggregate(labels).select("grade", certainty=pl.col("certainty").round(3)).row(0)
    (1, 0.667)
    """
    if rule not in aggregation_keys():
        raise InputRefused(f"rule must be one of {', '.join(aggregation_keys())}, got {rule!r}")
    pairs, labels, _ = _labels(judgments, relevant)
    grades = aggregation_rule_of(rule).grades(labels)
    if isinstance(grades, Refusal):
        raise InputRefused(grades.reason)
    table = labels.table()
    certainty = table[np.arange(labels.n_items), np.maximum(grades, 0)] / labels.counts
    if rule == "dawid-skene":
        fit = dawid_skene(labels)
        if not isinstance(fit, Refusal):
            certainty = fit.posterior.max(axis=1)
    found = pairs.with_columns(grade=grades, certainty=certainty)
    return found.filter(pl.col("grade") != NO_GRADE)


def agreement(judgments: Any, *, kind: str = "alpha") -> Result:
    """Return how far the assessors agree beyond chance, with a 95 % confidence interval where there is one.

    Parameters
    ----------
    judgments : table or path
    kind : str
        "alpha" (Krippendorff's, nominal), "alpha-ordinal", "alpha-interval": one row for all; "cohen" or "scott": a
        row a pair of assessors.

    Raises
    ------
    InputRefused, ValueError
        Another kind, judgments without assessors.

    Examples
    --------
    >>> labels = {"topic": ["1"] * 4, "doc": ["a", "a", "b", "b"], "assessor": ["x", "y"] * 2, "grade": [0, 0, 1, 1]}
    >>> agreement(labels).frame["value"].to_list()
    [1.0]
    """
    if kind not in KINDS:
        raise InputRefused(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    _, labels, names = _labels(judgments, 1)
    if kind in KAPPAS:
        return Result("agreement", pl.DataFrame(_kappas(labels, names, kind), infer_schema_length=None))
    metric: Any = kind.removeprefix("alpha").removeprefix("-") or "nominal"
    found = krippendorff_alpha(labels.item, labels.grade, metric=metric, n_grades=labels.n_grades)
    row: dict[str, Any] = {"kind": kind, "value": None, "low": None, "high": None, "n": 0, "refusal": ""}
    if isinstance(found, Refusal):
        row["refusal"] = found.reason
    else:
        row |= {"value": found.value, "n": found.n_documents}
        if isinstance(found.interval, Refusal):
            row["refusal"] = found.interval.reason
        else:
            row |= {"low": found.interval[0], "high": found.interval[1]}
    return Result("agreement", pl.DataFrame([row]))


def _kappas(labels: Labels, names: list[str], kind: str) -> list[dict[str, Any]]:
    """Return a row for every pair of assessors who judged documents in common."""
    given = np.full((labels.n_items, labels.n_assessors), -1, dtype=np.int64)
    given[labels.item, labels.assessor] = labels.grade
    rows = []
    for a in range(labels.n_assessors):
        for b in range(a + 1, labels.n_assessors):
            both = (given[:, a] >= 0) & (given[:, b] >= 0)
            table = np.zeros((labels.n_grades, labels.n_grades))
            np.add.at(table, (given[both, a], given[both, b]), 1)
            found = KAPPAS[kind](table)
            refusal = found.reason if isinstance(found, Refusal) else ""
            value = None if isinstance(found, Refusal) else found.value
            p = None if isinstance(found, Refusal) else found.p_value
            rows.append(
                {
                    "kind": kind,
                    "assessor": names[a],
                    "other": names[b],
                    "value": value,
                    "p": p,
                    "n": int(both.sum()),
                    "refusal": refusal,
                }
            )
    if not rows:
        raise InputRefused("agreement needs at least two assessors")
    return rows


def _labels(judgments: Any, relevant: int) -> tuple[pl.DataFrame, Labels, list[str]]:
    table = read_qrels(judgments)
    if "assessor" not in table.columns:
        raise InputRefused("judgments: there is no column assessor (or worker)")
    table = table.filter(pl.col("grade").is_not_null())
    pairs = table.select(PAIR).unique(maintain_order=True)
    item = table.join(pairs.with_row_index("item"), on=PAIR, how="left", maintain_order="left")["item"]
    names = sorted(table["assessor"].fill_null("").unique())
    place = {name: number for number, name in enumerate(names)}
    assessor = table["assessor"].fill_null("").replace_strict(place, return_dtype=pl.Int64)
    grade = table["grade"].to_numpy()
    labels = Labels(
        item.to_numpy().astype(np.int64),
        assessor.to_numpy(),
        grade,
        n_items=pairs.height,
        n_assessors=len(names),
        n_grades=max(int(grade.max(initial=1)), relevant) + 1,
        relevant_grade=relevant,
    )
    return pairs, labels, names
