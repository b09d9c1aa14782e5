"""What is said of a difference: one sentence for pages, API, commands and releases, from numbers alone.

One rule: nothing is called higher unless its p, adjusted in the declared family of comparisons, is below .05.
"""

from dataclasses import dataclass, field, replace

from analytics.estimation.claims import LIKE_THESE, Claim

LEVEL = 0.05
ADJUSTMENTS = {"holm": "adjusted by Holm", "max-t": "adjusted by step-down max-t with random signs"}
LIMITED = "limited by the judging, not by the topics"


@dataclass(frozen=True)
class ClaimTest:
    """What one claim says of a difference.

    Attributes
    ----------
    claim : Claim
    low, high : float or None
        The 95 % confidence interval; None where there is none.
    p, p_adjusted : float or None
        Of one comparison, and among those of the family; None where it was not tested, or is not of the family.
    t, degrees_of_freedom : float or None
        The paired t over topics; None where the judging limits what is known, and of the claim for these topics.
        Degrees of freedom are those of the interval; None for the normal distribution.
    effect_size : float or None
        The standardised mean difference over topics.
    effect_size_refusal : str
        Why there is none although the topics are known.
    p_randomisation : float or None
        By random signs of topics.
    between_topics : float or None
        The part of the variance that is of the topics, not of the judging.
    refusal, warning : str
        Why there is no number of this claim, or what limits its test.
    """

    claim: Claim
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    t: float | None = None
    degrees_of_freedom: float | None = None
    effect_size: float | None = None
    effect_size_refusal: str = ""
    p_randomisation: float | None = None
    between_topics: float | None = None
    refusal: str = ""
    warning: str = ""

    @property
    def significant(self) -> bool:
        """Return whether the adjusted p is below the level; what is not adjusted is not significant."""
        return self.p_adjusted is not None and self.p_adjusted < LEVEL


@dataclass(frozen=True)
class PairComparison:
    """A difference `run` minus `run_b` with both claims; `test` is the one that is made, `other` stands beside it.

    `family` is the name of the family, with `n_family` comparisons that were tested; `is_in_family`: this one belongs
    to it. `n_topics` is None where it is not known. `same` says why two runs cannot differ; `notes` are further
    sentences without a full stop.
    """

    run: str
    run_b: str
    measure: str
    value: float | None
    test: ClaimTest
    other: ClaimTest
    family: str = ""
    n_family: int = 1
    is_in_family: bool = False
    adjustment: str = "holm"
    n_topics: int | None = None
    n_items: int = 0
    noun: str = "audited items"  # what n_items counts
    refusal: str = ""
    same: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def higher(self) -> str | None:
        """Return the run with the higher value where that is significant, else None."""
        if not self.test.significant or not self.value:
            return None
        return self.run if self.value > 0 else self.run_b

    @property
    def claim(self) -> str:
        return self.test.claim.key


def sentence(pair: PairComparison) -> str:
    """Return what is said of the pair: the difference with its interval and test, and the other claim beside it."""
    if pair.value is None:
        return f"No corrected number: {pair.refusal}."
    if pair.same:
        return f"{pair.run} and {pair.run_b} do not differ in {pair.measure}: {pair.same}."
    value, run, run_b, test, other = pair.value, pair.run, pair.run_b, pair.test, pair.other
    higher = pair.higher
    if higher is not None and value < 0:
        value, run, run_b, test, other = -value, run_b, run, _reverse(test), _reverse(other)
    beside = [_beside(other, pair.n_topics), *pair.notes]
    rest = "".join(f" {words[0].upper()}{words[1:]}." for words in beside if words)
    if test.low is None or test.high is None:
        about = f"{_claim_words(test.claim, None)} there is no number: {test.refusal}"
        return f"The difference in {pair.measure} between {run} and {run_b} is {value:+.3f}; {about}.{rest}"
    inside = f"95 % confidence interval {_interval(test)}; {_test_words(test, pair)}"
    if higher is not None:
        effect = "" if test.effect_size is None else f"; standardised mean difference {test.effect_size:.2f}"
        return (
            f"{run} has a higher {pair.measure} than {run_b}: mean difference {value:+.3f} ({inside}), significant at "
            f".05{_among_words(test, pair)}{effect}.{rest}"
        )
    about = f"The difference in {pair.measure} between {run} and {run_b}, {value:+.3f} ({inside}), "
    if test.p is not None and test.p_adjusted is None:
        if pair.is_in_family:
            return (
                f"{about}is declared, but its p is not adjusted yet: the next computation has all comparisons "
                f"of the family.{rest}"
            )
        return f"{about}is not among the declared comparisons: its p is not adjusted.{rest}"
    return f"{about}is not significant at .05{_among_words(test, pair)}.{rest}"


def _reverse(test: ClaimTest) -> ClaimTest:
    """Return the test of the difference the other way round."""
    low, high = (None if end is None else 0 - end for end in (test.high, test.low))
    t, size = (None if number is None else 0 - number for number in (test.t, test.effect_size))
    return replace(test, low=low, high=high, t=t, effect_size=size)


def _interval(test: ClaimTest) -> str:
    return f"{test.low:.3f} to {test.high:.3f}"


def _test_words(test: ClaimTest, pair: PairComparison) -> str:
    """Return the test with its p, in the field's words."""
    p = "not tested" if test.p is None else p_words(test.p)
    if test.claim is not LIKE_THESE:
        topics = "these topics" if pair.n_topics is None else f"these {pair.n_topics:,} topics"
        return f"{topics} alone, {p}, n = {pair.n_items:,} {pair.noun}"
    if test.t is None or test.degrees_of_freedom is None:
        return f"{LIMITED}, {p}" if test.p is not None else p
    topics = "topics" if pair.n_topics is None else f"{pair.n_topics:,} topics"
    return f"paired t-test over {topics}, t({test.degrees_of_freedom:.0f}) = {test.t:.2f}, {p}"


def _among_words(test: ClaimTest, pair: PairComparison) -> str:
    """Return among how many comparisons p was adjusted, and how; nothing of a single one."""
    if pair.n_family < 2 or test.p_adjusted is None:
        return ""
    return f" among {pair.n_family:,} declared comparisons ({p_words(test.p_adjusted)} {ADJUSTMENTS[pair.adjustment]})"


def _claim_words(claim: Claim, n_topics: int | None) -> str:
    if claim is LIKE_THESE:
        return "for topics like these"
    return f"for these {n_topics:,} topics alone" if n_topics else "for these topics alone"


def _beside(test: ClaimTest, n_topics: int | None) -> str:
    """Return the other claim: its interval and p, or why there is none."""
    words = _claim_words(test.claim, n_topics)
    if test.low is None or test.high is None:
        return f"{words}: no number, {test.refusal}" if test.refusal else ""
    if test.low == test.high:
        return f"{words}: exactly {test.low:.3f}"
    p = "" if test.p is None else f", {p_words(test.p)}"
    return f"{words}: {_interval(test)}{p}"


def p_words(p: float) -> str:
    """Return a p as the field writes it; one that would be rounded to the level keeps its digits.

    >>> p_words(0.024777), p_words(0.371655), p_words(2e-20), p_words(0.0499), p_words(0.998)
    ('p = .025', 'p = .37', 'p < .001', 'p = .0499', 'p > .99')
    """
    if p < 0.001:
        return "p < .001"
    if p > 0.99:
        return "p > .99"
    digits = 3 if p < 0.1 else 2
    if round(p, digits) == LEVEL:
        digits = 4
    text = f"{p:.{digits}f}"
    if float(text) == LEVEL and p < LEVEL:
        return "p < .05"
    return f"p = {text.removeprefix('0')}"
