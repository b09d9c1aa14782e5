"""What a comparison claims, and among which comparisons: the choice that every number of a difference answers to.

One claim is about the topics at hand, the other about topics like these. Pages, API, commands and releases read CLAIMS;
a family of comparisons is written as one text, and read here alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

QUESTION, ALL, BASELINE, RUNS = "question", "all", "baseline:", "runs:"


@dataclass(frozen=True)
class Claim:
    """A row of the table of claims.

    Attributes
    ----------
    key : str
        In addresses, answers and files; never changed.
    label : str
        Its name on a page.
    help : str
        What it says, as a full sentence without the last full stop.
    """

    key: str
    label: str
    help: str


LIKE_THESE = Claim(
    key="topics-like-these",
    label="Topics like these",
    help="The topics are a sample of those that could have been asked; the interval holds their choice and the judging",
)
THESE = Claim(
    key="these-topics",
    label="These topics",
    help="Only the topics at hand: the interval holds the draw of documents and the errors of judging",
)
CLAIMS: tuple[Claim, ...] = (LIKE_THESE, THESE)  # the first is the default


def claim_of(key: str) -> Claim:
    """Return the claim of a key; ValueError with the keys that there are.

    >>> claim_of("these-topics").label
    'These topics'
    """
    known = {claim.key: claim for claim in CLAIMS}
    if key not in known:
        raise ValueError(f"claim must be {' or '.join(known)}, got {key}")
    return known[key]


def other_claim(claim: Claim) -> Claim:
    """Return the claim that is printed beside this one.

    >>> other_claim(LIKE_THESE).key
    'these-topics'
    """
    return THESE if claim is LIKE_THESE else LIKE_THESE


@dataclass(frozen=True)
class Family:
    """The comparisons among which p-values are adjusted.

    Attributes
    ----------
    name : str
        As it is written: "question", "all", "baseline:<run>", "runs:<a>,<b>".
    runs : tuple of str
        The runs that it takes in.
    baseline : str
        The run with which each other one is compared; empty: every pair of the runs.
    pooled : tuple of str
        Of a question about one pair the runs that were pooled for it, as far as they are known: they are ranked.
    """

    name: str
    runs: tuple[str, ...]
    baseline: str = ""
    pooled: tuple[str, ...] = field(default=(), compare=False)

    @property
    def ranked_runs(self) -> frozenset[str]:
        """Return the runs that are ranked where the family is asked for; a later run is none of them."""
        return frozenset((*self.runs, *self.pooled))

    @cached_property
    def pairs(self) -> frozenset[frozenset[str]]:
        """Return the pairs of runs, whichever way round."""
        firsts = (self.baseline,) if self.baseline else self.runs
        return frozenset(frozenset((a, b)) for a in firsts for b in self.runs if a != b)

    def __contains__(self, pair: tuple[str, str]) -> bool:
        return frozenset(pair) in self.pairs


def family_of(name: str, runs: Sequence[str]) -> Family:
    """Return the family of a name among the runs that there are; that of the question is not named here.

    >>> len(family_of("baseline:bm25", ["bm25", "rm3", "dense"]).pairs)
    2

    Raises
    ------
    ValueError
        A name of another form, a run that is not there or is named twice, fewer than two runs.
    """
    if name == ALL:
        named = tuple(runs)
    elif name.startswith(BASELINE):
        named = _known_runs([name.removeprefix(BASELINE)], runs)
        return _of_two(Family(name, tuple(runs), named[0]))
    elif name.startswith(RUNS):
        named = _known_runs(_named_runs(name.removeprefix(RUNS), runs), runs)
    else:
        forms = f"{QUESTION}, {ALL}, {BASELINE}<run> or {RUNS}<run>,<run>"
        raise ValueError(f"family must be {forms}, got {name}")
    return _of_two(Family(name, named))


def _named_runs(text: str, runs: Sequence[str]) -> list[str]:
    """Return the names between commas; a run's own name may hold commas, and then counts as a whole.

    >>> _named_runs("bm25,k=1,rm3", ["bm25", "bm25,k=1", "rm3"])
    ['bm25,k=1', 'rm3']
    """
    parts, known, found = text.split(","), set(runs), []
    most = 1 + max((run.count(",") for run in runs), default=0)
    start = 0
    while start < len(parts):
        ends = range(min(len(parts), start + most), start + 1, -1)
        end = next((end for end in ends if ",".join(parts[start:end]) in known), start + 1)
        found.append(",".join(parts[start:end]))
        start = end
    return found


def _known_runs(named: Sequence[str], runs: Sequence[str]) -> tuple[str, ...]:
    for run in named:
        if run not in runs:
            raise ValueError(f"family names the run {run or '(none)'}, which is not there")
    if len(set(named)) < len(named):
        raise ValueError("family names a run twice: a run against itself is no comparison")
    return tuple(named)


def _of_two(family: Family) -> Family:
    if not family.pairs:
        raise ValueError(f"family {family.name} has no pair of runs: at least 2 runs are needed")
    return family
