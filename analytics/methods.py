"""All methods of estimation. Pages, API, charts, papers' table, releases, docs and models read METHODS.

A new method is a file with its `estimate` and an entry in METHODS: no other file lists their keys or asks for one of
them. What pages do with a method follows from what it declares.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from analytics import shards
from analytics.estimation import audit_correction, naive, replacement, truth
from analytics.estimation.estimate import Refusal
from analytics.estimation.evidence import Evidence, MethodEstimates, Targets, none_of
from analytics.papers import assessor_matrices
from sampling.measures.families import Measure
from sampling.measures.kinds import Complete, Kind, Linear, Ratio
from sampling.selections import NOT_BY_DOCUMENT


@dataclass(frozen=True)
class Method:
    """A method of estimating a measure of a run, or a difference of two runs.

    Attributes
    ----------
    key : str
        In addresses, files and the database; never changed.
    label : str
        Its name where it stands alone.
    short : str
        Its name in a sentence, a table's heading or a legend.
    credit : str
        Whose method it is, with equations.
    help : str
        What it assumes and what its number is worth: full sentences without the last full stop.
    kinds : tuple of kinds of measures
        Those that it serves. Measures of other kinds get its refusal.
    estimate : callable
        Evidence and targets to estimates, of arrays alone.
    is_tested : bool
        Its differences have p-values and confidence sequences. One method's do: its numbers are the ones to report.
    has_topic_interval : bool
        It can take the topics as a sample.
    is_ranked : bool
        Runs can be ranked by its values.
    is_exact : bool
        Its numbers have no error.
    assumes_equal_errors : bool
        It is right only if an assessor has the same error rates on all documents of a grade; the test of this
        assumption is shown beside it.
    kinds_of_topics : tuple of kinds of measures
        Those that it serves where whole topics were drawn; without any it needs documents that were drawn one by one.
    shards : str
        What it has to hold at once: see analytics/shards.py. One that takes all judgments at once has its refusal where
        there are too many.
    applies : callable
        Whether it has anything to say of this evidence; elsewhere it is left out.
    """

    key: str
    label: str
    short: str
    credit: str
    help: str
    kinds: tuple[type[Kind], ...]
    estimate: Callable[[Evidence, Any], MethodEstimates]
    is_tested: bool = False
    has_topic_interval: bool = False
    is_ranked: bool = False
    is_exact: bool = False
    assumes_equal_errors: bool = False
    kinds_of_topics: tuple[type[Kind], ...] = ()
    shards: str = shards.TOPIC
    applies: Callable[[Evidence], bool] = lambda _: True

    @property
    def is_reported(self) -> bool:
        """Return whether its numbers are the ones to report."""
        return self is REPORTED

    def refusal(self, measure: Measure[Kind], *, has_whole_topics: bool = False) -> Refusal | None:
        """Return why it has no number of this measure, or None if it serves the measure's kind."""
        if has_whole_topics and not self.kinds_of_topics:
            return Refusal(NOT_BY_DOCUMENT)
        if isinstance(measure.kind, self.kinds_of_topics if has_whole_topics else self.kinds):
            return None
        served = " or ".join(kind.noun for kind in self.kinds)
        return Refusal(f"{measure.name} is {measure.kind.noun}: {self.short} serves {served} alone")

    def is_shown(self, measure: Measure[Kind]) -> bool:
        """Return whether pages show it for the measure: it serves the measure, or its refusal has to be known."""
        return self.is_reported or self.refusal(measure) is None

    def answer(self, evidence: Evidence, targets: Targets) -> MethodEstimates:
        """Return its estimates of the targets, or its refusal of their kind of measure or of so many judgments."""
        refusal = self.refusal(targets.measure, has_whole_topics=evidence.whole_topics is not None)
        too_many = shards.refusal(self.label, self.shards, evidence.labels.item.size)
        if refusal is None and too_many:
            refusal = Refusal(too_many)
        return self.estimate(evidence, targets) if refusal is None else none_of(targets, refusal)


NAIVE = Method(
    key="naive",
    label="Naive (grades as given)",
    short="naive",
    credit="",
    help="Every grade counts as given; the interval ignores assessor errors",
    kinds=(Linear, Ratio, Complete),
    estimate=naive.estimate,
    has_topic_interval=True,
    is_ranked=True,
    kinds_of_topics=(Linear, Ratio, Complete),
)
CORRECTED = Method(
    key="corrected",
    label="Corrected by the audit",
    short="corrected",
    credit="Touchstone",
    help="The number to report: the audit corrects assessor errors, whatever they depend on",
    kinds=(Linear, Ratio),
    estimate=audit_correction.estimate,
    shards=shards.PASSES,
    is_tested=True,
    has_topic_interval=True,
    is_ranked=True,
    kinds_of_topics=(Linear, Ratio, Complete),
)
MATRIX_INVERSE = Method(
    key="matrix-inverse",
    label="Matrix inverse (the papers' method)",
    short="matrix inverse",
    credit="c = inverse of J_a times v, for every assessor; generalises Goldberg et al. (2017), Eq 18",
    help="Not the reported number: it assumes equal error rates on all documents of a grade, unlike real assessors",
    kinds=(Linear,),
    estimate=assessor_matrices.estimate,
    shards=shards.PASSES,
    assumes_equal_errors=True,
)
IMPORTANCE = Method(
    key="importance",
    label="Importance sampling (the paper's Eq 3 to 6)",
    short="importance sampling",
    credit="Schnabel et al. (2016), Eq 3 to 6",
    help="The paper's number for draws with replacement, kept for comparison",
    kinds=(Linear,),
    estimate=replacement.estimate,
    applies=replacement.is_drawn_with_replacement,
)
TRUTH = Method(
    key="true",
    label="True value (all gold known)",
    short="true value",
    credit="",
    help="Known only because the demo's author graded everything",
    kinds=(Linear, Ratio, Complete),
    estimate=truth.estimate,
    is_exact=True,
    kinds_of_topics=(Linear, Ratio, Complete),
    applies=truth.is_known,
)
METHODS: tuple[Method, ...] = (NAIVE, CORRECTED, MATRIX_INVERSE, IMPORTANCE, TRUTH)
REPORTED = CORRECTED


def method_of(key: str) -> Method:
    """Return the method of a key, or raise KeyError.

    >>> method_of("true").label
    'True value (all gold known)'
    """
    return {method.key: method for method in METHODS}[key]


def choices(methods: Iterable[Method] | None = None) -> list[tuple[str, str]]:
    """Return key and label of the methods, default all, as a model's or a form's field takes them."""
    return [(method.key, method.label) for method in (METHODS if methods is None else methods)]


def reported_first(methods: Iterable[Method] | None = None) -> list[Method]:
    """Return the methods with the one to report before the others.

    >>> [method.key for method in reported_first()][:2]
    ['corrected', 'naive']
    """
    return sorted(METHODS if methods is None else methods, key=lambda method: method is not REPORTED)


def ranked_methods() -> list[Method]:
    """Return the methods by whose values runs are ranked, the one to report first."""
    return reported_first(method for method in METHODS if method.is_ranked)
