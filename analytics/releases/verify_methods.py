"""The methods that a release's numbers are computed again by: one table, a row a method.

Part of every release, beside verify.py, which reads it; NumPy is all it needs. A new method is a function here and an
entry in METHODS; a method that is not there is named among what was not computed again.
"""

from collections.abc import Callable
from dataclasses import dataclass

if __package__:
    from analytics.releases.verify_complete import gold_gains, judged_gains
    from analytics.releases.verify_estimates import Method, WeightTable, naive, true
    from analytics.releases.verify_facts import Facts, Floats, Row
    from analytics.releases.verify_gold import audit_estimates
    from analytics.releases.verify_one_step import Difference, Ranked, differences_of
    from analytics.releases.verify_ratios import LabelsOf, corrected_labels, naive_labels, true_labels
    from analytics.releases.verify_replacement import distinct, importance
    from analytics.releases.verify_topics import answers_of_topics
else:  # in a release, the files lie beside each other
    from verify_complete import gold_gains, judged_gains  # type: ignore
    from verify_estimates import Method, WeightTable, naive, true  # type: ignore
    from verify_facts import Facts, Floats, Row  # type: ignore
    from verify_gold import audit_estimates  # type: ignore
    from verify_one_step import Difference, Ranked, differences_of  # type: ignore
    from verify_ratios import LabelsOf, corrected_labels, naive_labels, true_labels  # type: ignore
    from verify_replacement import distinct, importance  # type: ignore
    from verify_topics import answers_of_topics  # type: ignore

__all__ = ["METHODS", "MethodForms", "answers_of_topics"]
Linear = Callable[[WeightTable], Method]


@dataclass(frozen=True)
class MethodForms:
    """What a method makes of each kind of measure; where it makes nothing, every number of that kind is refused.

    Attributes
    ----------
    linear : callable, optional
        Of the runs' weights in a sum over documents: the numbers of any target.
    repeated : callable, optional
        The same for a complete draw with replacement; also for an incomplete one, where there is no `linear`.
    labels : callable, optional
        Of the facts, the gains by grade, the predictions, and those of gold on every stair: the labels of a ratio.
    gains : callable, optional
        Of the facts and what every grade gives: the gain of every pair, for measures of completely judged ranks.
    over_topics : bool
        Whether those have an interval over topics.
    needs_gold : bool
        Whether it needs the right grade of every pair.
    predicts_gold : bool
        Whether it takes the predictions of gold gains, where the release has them.
    differences : callable, optional
        Of the facts, what is told of a ratio, and the ranks of its runs: differences of two runs from few gold labels.
    """

    linear: Linear | None = None
    repeated: Linear | None = None
    labels: LabelsOf | None = None
    gains: Callable[[Facts, Floats], Floats] | None = None
    over_topics: bool = True
    needs_gold: bool = False
    predicts_gold: bool = False
    differences: Callable[[Facts, Row, Ranked], Difference | None] | None = None

    def linear_of(self, draw: Row) -> Linear | None:
        """Return what serves sums over documents of this draw."""
        is_repeated = draw["selection"] == "replacement" and (draw["complete"] or self.linear is None)
        return self.repeated if is_repeated and self.repeated is not None else self.linear


METHODS = {
    "naive": MethodForms(naive, distinct, naive_labels, judged_gains),
    "corrected": MethodForms(
        audit_estimates, labels=corrected_labels, predicts_gold=True, differences=differences_of
    ),
    "importance": MethodForms(repeated=importance),
    "true": MethodForms(true, labels=true_labels, gains=gold_gains, over_topics=False, needs_gold=True),
}
