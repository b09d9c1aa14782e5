"""Aggregation rules: how the several grades of an item become the one that a release publishes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analytics.aggregation.dawid_skene import dawid_skene
from analytics.aggregation.grade_tables import NO_GRADE, Ints, lower_medians, majorities, supermajorities
from analytics.estimation.estimate import Refusal
from analytics.estimation.samples import Labels
from judging.label_aggregation import LOWER_MEDIAN


@dataclass(frozen=True)
class AggregationRule:
    """One rule.

    Attributes
    ----------
    key : str
        As stored, and as the API and the command spell it; at most 40 characters.
    label : str
        Its name on the screen.
    help : str
        The rule in words, for headings and data sheets: "The grade of an item is ...".
    grades : callable
        From labels the grade of every item, `NO_GRADE` where it has none; or the refusal of a model that cannot be
        fitted.
    """

    key: str
    label: str
    help: str
    grades: Callable[[Labels], Ints | Refusal]


def _median(labels: Labels) -> Ints:
    return lower_medians(labels.table())


def _majority(labels: Labels) -> Ints:
    return majorities(labels.table())


def _supermajority(labels: Labels) -> Ints:
    return supermajorities(labels.table(), labels.relevant_grade)


def _dawid_skene(labels: Labels) -> Ints | Refusal:
    """Return the likeliest grades; the model sees no item without a label."""
    grades = np.full(labels.n_items, NO_GRADE, dtype=np.int64)
    labelled = np.unique(labels.item)
    if not labelled.size:
        return grades
    fit = dawid_skene(labels.of_items(labelled))
    if isinstance(fit, Refusal):
        return fit
    grades[labelled] = fit.posterior.argmax(axis=1)
    return grades


# The first is the default.
AGGREGATION_RULES = (
    AggregationRule("median", "Lower median", LOWER_MEDIAN, _median),
    AggregationRule(
        "majority",
        "Majority",
        "the grade that most assessors gave last, of several the lowest",
        _majority,
    ),
    AggregationRule(
        "dawid-skene",
        "Dawid-Skene",
        "the likeliest grade by the model of Dawid and Skene, which learns each assessor's errors from the latest "
        "grades of all",
        _dawid_skene,
    ),
    AggregationRule(
        "supermajority",
        "Supermajority",
        "relevant if more than two thirds of the assessors gave a relevant grade last, and then the lower median of "
        "these relevant grades; else the lower median of the grades that are not relevant",
        _supermajority,
    ),
)
DEFAULT_RULE = AGGREGATION_RULES[0].key


def aggregation_keys() -> list[str]:
    return [rule.key for rule in AGGREGATION_RULES]


def aggregation_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(rule.key, rule.label) for rule in AGGREGATION_RULES]


def aggregation_rule_of(key: str) -> AggregationRule:
    """Return the rule of a key; ValueError where there is none.

    >>> aggregation_rule_of("majority").help
    'the grade that most assessors gave last, of several the lowest'
    """
    for rule in AGGREGATION_RULES:
        if rule.key == key:
            return rule
    raise ValueError(f"the aggregation rule must be one of {aggregation_keys()}, got {key!r}")
