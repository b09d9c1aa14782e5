"""Pairs of runs of a folder, judged by a minimal test collection until it stops: was the sign right?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from analytics.lowcost.run_folder import read_places
from judging.trec import read_qrels
from sampling.arrays import FloatArray
from sampling.experts import Preferences, RankedPool, consensus
from sampling.minimal import ModelTopic, StoppingRule, next_document, shift_to_prevalence
from sampling.minimal_collection import AVERAGE_PRECISION, collect, total_difference

Lists = dict[str, list[str]]  # of one run: by topic the documents, from the first rank on


@dataclass(frozen=True)
class Folder:
    """Runs by name, cut at the depth, and by topic the documents that the qrels call relevant.

    `others` are in no pair, but take part in the consensus.
    """

    runs: dict[str, Lists]
    others: dict[str, Lists]
    relevant: dict[str, frozenset[str]]


def read_folder(folder: Path, qrels: str, depth: int, without: Sequence[str] = ()) -> Folder:
    """Return the runs of `folder`/runs and the qrels; runs whose file name has one of the words are `others`."""
    files = sorted((folder / "runs").iterdir())
    apart = {file for file in files if any(word in file.name for word in without)}
    if len(files) - len(apart) < 2:
        raise ValueError(
            f"{folder / 'runs'} must have at least 2 runs for pairs, found {len(files) - len(apart)}"
        )
    relevant: dict[str, set[str]] = {}
    with (folder / qrels).open("rb") as source:
        for record in read_qrels(source, qrels):
            of_topic = relevant.setdefault(record.topic_id, set())
            if record.grade > 0:
                of_topic.add(record.doc_id)
    read = {file: read_lists(file, depth) for file in files}
    return Folder(
        {file.name.removesuffix(".gz"): lists for file, lists in read.items() if file not in apart},
        {file.name.removesuffix(".gz"): lists for file, lists in read.items() if file in apart},
        {topic: frozenset(documents) for topic, documents in relevant.items()},
    )


def read_lists(file: Path, depth: int) -> Lists:
    """Return the first documents of each topic, in the order of an import."""
    return {
        topic: [document for document in sorted(ranks, key=ranks.__getitem__) if ranks[document] <= depth]
        for topic, ranks in read_places(file, file.name).items()
    }


def rank_table(lists: Sequence[Sequence[str]], documents: Sequence[str]) -> FloatArray:
    """Return ranks [run, document]; infinite where a run does not return the document."""
    place = {document: index for index, document in enumerate(documents)}
    ranks = np.full((len(lists), len(documents)), np.inf)
    for row, one in zip(ranks, lists, strict=True):
        row[[place[document] for document in one]] = np.arange(1, len(one) + 1)
    return ranks


def pool(lists: Iterable[Sequence[str]]) -> list[str]:
    return sorted({document for one in lists for document in one})


def priors(runs: Iterable[Lists], topics: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return by topic what the runs together say of each document that one returns; no judgment is used."""
    given, by_topic = list(runs), {}
    for topic in topics:
        lists = [run.get(topic, []) for run in given]
        documents = pool(lists)
        if documents:
            ranks = RankedPool.of(rank_table(lists, documents))
            chances = consensus(Preferences.of(ranks)).probability.tolist()
            by_topic[topic] = dict(zip(documents, chances, strict=True))
    return by_topic


# ---- pairs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairTopic:
    """What two runs return of a topic: their ranks, the truth, and the consensus of all runs, or of those in pairs."""

    ranks: FloatArray
    labels: FloatArray
    consensus: FloatArray
    paired_consensus: FloatArray


@dataclass(frozen=True)
class Pair:
    first: str
    second: str
    topics: tuple[PairTopic, ...]

    def truth(self, measure: str = "AP") -> float:
        """Return the first run's mean less the second's, everything judged, R counted in what the two return."""
        topics = [ModelTopic.of(topic.ranks, topic.labels) for topic in self.topics]
        return total_difference(topics, measure=measure).expected / len(topics)


def pairs_of(folder: Folder) -> list[Pair]:
    """Return every pair of runs, by name; topics of which neither returns anything are left out."""
    together = priors([*folder.runs.values(), *folder.others.values()], folder.relevant)
    paired = priors(folder.runs.values(), folder.relevant) if folder.others else together
    found = []
    for first, second in combinations(folder.runs, 2):
        topics = []
        for topic in sorted(together):
            lists = [folder.runs[run].get(topic, []) for run in (first, second)]
            documents = pool(lists)
            if documents:
                labels = np.array([float(document in folder.relevant[topic]) for document in documents])
                chances = [np.array([of[topic][one] for one in documents]) for of in (together, paired)]
                topics.append(PairTopic(rank_table(lists, documents), labels, *chances))
        found.append(Pair(first, second, tuple(topics)))
    return found


# ---- judging ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A prior and a rule: `probability` for every document, or None for the consensus shifted to the prevalence.

    With `learns` the probability is the share relevant among the judged, after each judgment. With `only_paired` the
    consensus is that of the runs in pairs.
    """

    name: str
    rule: StoppingRule
    probability: float | None = None
    is_random: bool = False
    learns: bool = False
    only_paired: bool = False
    measure: str = "AP"

    def chances(self, topic: PairTopic, mean: float) -> FloatArray:
        if self.probability is not None:
            return np.full(topic.labels.size, mean)
        return shift_to_prevalence(topic.paired_consensus if self.only_paired else topic.consensus, mean)

    def model(self, topic: PairTopic) -> ModelTopic:
        mean = self.rule.prevalence if self.probability is None else self.probability
        return ModelTopic.of(topic.ranks, self.chances(topic, mean))


AS_PRINTED = StoppingRule(n_first=0)
NEVER = StoppingRule(n_first=10**9)  # only a certain sign stops
PRODUCT = Setting("consensus, mean .05", StoppingRule())
SETTINGS = (
    Setting("p = .5, no first look", AS_PRINTED, 0.5),
    Setting("p = .2, no first look", AS_PRINTED, 0.2),
    Setting("p = .05, no first look", AS_PRINTED, 0.05),
    Setting("p = .05, no first look, random order", AS_PRINTED, 0.05, is_random=True),
    Setting("p = share of the judged", StoppingRule(), 0.05, learns=True),
    Setting("consensus, mean .1", StoppingRule(prevalence=0.1)),
    Setting("consensus of the runs in pairs, mean .05", StoppingRule(), only_paired=True),
    PRODUCT,
    Setting("consensus, mean .05, random order", StoppingRule(), is_random=True),
    Setting("DCG, until the sign is certain", NEVER, measure="DCG"),
)


@dataclass(frozen=True)
class Outcome:
    """What a pair came to: the model's probability that the first run is worse, and whether its sign is wrong."""

    pair: Pair
    truth: float
    n_judged: int
    worse_probability: float
    is_wrong: bool
    has_sign: bool  # False: everything was judged before the rule was reached


def outcome(pair: Pair, setting: Setting, seed: int) -> Outcome:
    """Judge the pair with the true labels until the rule stops."""
    topics = [setting.model(topic) for topic in pair.topics]
    labels = [topic.labels for topic in pair.topics]
    topics_after: Sequence[ModelTopic]
    if setting.learns:
        topics_after, n_judged, has_sign = judge_learning(pair, topics, setting)
    else:
        sequence = places_at_random(labels, seed) if setting.is_random else None
        made = collect(topics, labels, setting.rule, sequence=sequence, measure=setting.measure)
        topics_after, n_judged, has_sign = made.topics, len(made.places), made.has_signs
    difference, truth = total_difference(topics_after, measure=setting.measure), pair.truth(setting.measure)
    is_wrong = has_sign and difference.expected * truth < 0
    return Outcome(pair, truth, n_judged, difference.worse_probability, is_wrong, has_sign)


def places_at_random(labels: Sequence[FloatArray], seed: int) -> list[tuple[int, int]]:
    """Return every topic and document once."""
    places = [(index, document) for index, one in enumerate(labels) for document in range(one.size)]
    return [places[k] for k in np.random.default_rng(seed).permutation(len(places)).tolist()]


Judging = tuple[
    Sequence[ModelTopic], int, bool
]  # the topics after it, how many judgments, whether the rule stopped it


def judge_learning(pair: Pair, topics: list[ModelTopic], setting: Setting) -> Judging:
    """Judge what tells most, and shift the prior to (relevant + 1) / (judged + 2) after every judgment.

    A trap: what is judged was chosen as likely, so the share is too high for the rest.
    """
    rule, n_judged, n_relevant = setting.rule, 0, 0.0
    while True:
        has_signs = n_judged >= rule.n_first and rule.is_reached([total_difference(topics)], n_judged)
        place = next_document(
            [AVERAGE_PRECISION.spread(topic) for topic in topics], [t.is_judged for t in topics]
        )
        if has_signs or place is None:
            return topics, n_judged, has_signs
        index, document = place
        label = float(pair.topics[index].labels[document])
        topics[index] = topics[index].with_judgment(document, bool(label))
        n_judged, n_relevant = n_judged + 1, n_relevant + label
        share = (n_relevant + 1) / (n_judged + 2)
        topics = [
            replace(
                one, probability=np.where(one.is_judged, one.probability, setting.chances(of_pair, share))
            )
            for one, of_pair in zip(topics, pair.topics, strict=True)
        ]


def outcomes(pairs: Sequence[Pair], setting: Setting, seed: int) -> list[Outcome]:
    return [outcome(pair, setting, seed + index) for index, pair in enumerate(pairs)]
