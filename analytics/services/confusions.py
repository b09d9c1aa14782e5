"""How assessors err, by assessor and by group, from gold checks and audits: counted, stored, flagged.

Counts are sums over the log of judgments: whoever counts again from the log gets the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy

from analytics.estimation.comparison import holm
from analytics.estimation.confusion import ConfusionEstimate as Confusion
from analytics.estimation.confusion import (
    assessor_counts,
    confusions_from_counts,
    drift_p_values,
    grouped_audit_counts,
)
from analytics.estimation.estimate import Refusal
from analytics.frames import CampaignArrays, Ints
from analytics.models import Computation, ConfusionEstimate, Flag
from analytics.papers.assumption import AuditedLabels, assumption_result, assumption_sentences
from analytics.screening.kinds import ACCURACY, CHANGE, LESS_ACCURATE
from analytics.screening.known import less_accurate
from analytics.services.label_classes import joined_grades
from judging.models import Campaign
from sampling.selections import NOT_BY_DOCUMENT

FLAG_BELOW_CHANCE_OF = 0.5  # flagged: surely less often right than wrong
SURE = 0.05  # of Holm's adjusted p over all assessors
N_PERIODS = 4
ONE_DAY = 86_400  # seconds
Scope = ConfusionEstimate.Scope


@dataclass(frozen=True)
class ConfusionCounts:
    """counts[assessor, true, given] from gold checks and, weighted, from audits."""

    checks: np.ndarray
    audits: np.ndarray
    n_audited: np.ndarray

    @property
    def total(self) -> np.ndarray:
        return np.asarray(self.checks + self.audits)

    def without_audits(self) -> "ConfusionCounts":
        """Return what gold checks alone say: for what must not know of an audit."""
        return ConfusionCounts(self.checks, np.zeros_like(self.audits), np.zeros_like(self.n_audited))


@dataclass(frozen=True)
class _AuditLabels:
    """The labels of audited items: who gave which grade, what gold says, and with what chance that is known."""

    label: Ints  # places among the labels
    item: Ints  # places among the judged items
    gold: Ints
    given: Ints
    probability: np.ndarray


def _audit_labels(arrays: CampaignArrays) -> _AuditLabels:
    """Return the audited labels; of whole topics none, as their errors within a topic are no independent counts."""
    return _at_labels(arrays, np.flatnonzero(arrays.audited_alone[arrays.label_item]))


def _not_checked(arrays: CampaignArrays, audited: _AuditLabels) -> _AuditLabels:
    """Return the labels that no gold check counts already."""
    is_check = np.isin(arrays.label_judgment[audited.label], arrays.check_judgment)
    return _at_labels(arrays, audited.label[~is_check])


def _at_labels(arrays: CampaignArrays, label: Ints) -> _AuditLabels:
    item = arrays.label_item[label]
    return _AuditLabels(
        label, item, arrays.audit_grade[item], arrays.label_grade[label], arrays.audit_probability[item]
    )


def _counts(
    arrays: CampaignArrays, checks: Ints | None, audited: _AuditLabels, group: Ints, n: int
) -> ConfusionCounts:
    """Return the counts of every group; `checks` and `group` say where gold checks and audited labels belong."""
    g = arrays.n_grades
    of_checks = np.zeros((n, g, g))
    if checks is not None:
        of_checks = assessor_counts(checks, arrays.check_true, arrays.check_given, n, g)
    of_audits = grouped_audit_counts(group, audited.gold, audited.given, audited.probability, n, g)
    return ConfusionCounts(of_checks, of_audits, np.bincount(group, minlength=n))


def assessor_confusion_counts(arrays: CampaignArrays) -> ConfusionCounts:
    """Return what gold checks and audits say about every bronze and silver assessor."""
    audited = _not_checked(arrays, _audit_labels(arrays))
    who = arrays.label_assessor[audited.label]
    return _counts(arrays, arrays.check_assessor, audited, who, len(arrays.assessors))


# -- groups -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    scope: Scope
    keys: list[str]
    labels: list[str]
    counts: ConfusionCounts


def _groups(arrays: CampaignArrays, counts: ConfusionCounts) -> Iterator[_Group]:
    """Yield the groups that have any gold; a group's counts are sums of effective counts."""
    audited = _audit_labels(arrays)
    everybody = ConfusionCounts(*(part.sum(axis=0, keepdims=True) for part in _parts(counts)))
    yield _Group(Scope.POOLED, ["all"], ["all assessors"], everybody)
    tiers = sorted({assessor.tier for assessor in arrays.assessors})
    tier = np.array([tiers.index(assessor.tier) for assessor in arrays.assessors], dtype=np.int64)
    of_tiers = ConfusionCounts(
        *(
            np.stack([part[tier == place].sum(axis=0) for place in range(len(tiers))])
            for part in _parts(counts)
        )
    )
    yield _Group(Scope.TIER, tiers, tiers, of_tiers)
    yield from _by_popularity(arrays, audited)
    yield from _by_period(arrays, _not_checked(arrays, audited))
    yield from _by_topic(arrays, audited)


def _parts(counts: ConfusionCounts) -> tuple[np.ndarray, ...]:
    return counts.checks, counts.audits, counts.n_audited


def _by_popularity(arrays: CampaignArrays, audited: _AuditLabels) -> Iterator[_Group]:
    """Yield thirds of the audited labels by how many runs return their document: errors often depend on that.

    Gold checks are left out: they are chosen, not drawn.
    """
    if not audited.label.size:
        return
    returned_by = np.bincount(arrays.returned.item, minlength=arrays.frame.height)[
        arrays.judged[audited.item]
    ]
    edges = np.unique(np.quantile(returned_by, [1 / 3, 2 / 3], method="inverted_cdf"))
    third = np.searchsorted(edges, returned_by, side="left")
    kinds, group = np.unique(third, return_inverse=True)
    labels = []
    for kind in range(kinds.size):
        inside = returned_by[group == kind]
        few, many = int(inside.min()), int(inside.max())
        labels.append(f"returned by {few} runs" if few == many else f"returned by {few} to {many} runs")
    found = _counts(arrays, None, audited, group, kinds.size)
    yield _Group(Scope.POPULARITY, [str(kind + 1) for kind in range(kinds.size)], labels, found)


def _by_period(arrays: CampaignArrays, audited: _AuditLabels) -> Iterator[_Group]:
    """Yield quarters of the gold labels by when they were given."""
    times = np.concatenate([arrays.check_time, arrays.label_time[audited.label]])
    if times.size < N_PERIODS or times.min() == times.max():
        return
    edges = np.unique(np.quantile(times, np.arange(1, N_PERIODS) / N_PERIODS))
    period = np.searchsorted(edges, times, side="right")
    kinds, group = np.unique(period, return_inverse=True)
    form = "%H:%M:%S" if np.ptp(times) < ONE_DAY else "%Y-%m-%d"
    moments = [times[group == kind] for kind in range(kinds.size)]
    labels = [f"{_time_text(m.min(), form)} to {_time_text(m.max(), form)}" for m in moments]
    n_checks = arrays.check_time.size
    found = _counts(arrays, group[:n_checks], audited, group[n_checks:], kinds.size)
    yield _Group(Scope.PERIOD, [str(kind + 1) for kind in range(kinds.size)], labels, found)


def _time_text(seconds: float, form: str) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def _by_topic(arrays: CampaignArrays, audited: _AuditLabels) -> Iterator[_Group]:
    topics, group = np.unique(arrays.topic_index[arrays.judged[audited.item]], return_inverse=True)
    if not topics.size:
        return
    names = [arrays.draw.parameters["topics"][topic] for topic in topics]
    yield _Group(Scope.TOPIC, names, names, _counts(arrays, None, audited, group, topics.size))


def _aggregates(arrays: CampaignArrays, computation: Computation) -> Iterator[_Group]:
    """Yield how the joined grades of items err, by each way of joining that was computed."""
    g = arrays.n_grades
    ways = joined_grades(arrays, computation.campaign)
    item = np.flatnonzero(arrays.audited_alone)
    if not item.size or not ways:
        return
    gold, probability = arrays.audit_grade[item], arrays.audit_probability[item]
    tables = [_shared_counts(shares[item], gold, probability) for _, shares in ways.values()]
    found = ConfusionCounts(np.zeros((len(ways), g, g)), np.stack(tables), np.full(len(ways), item.size))
    yield _Group(Scope.AGGREGATE, list(ways), [words for words, _ in ways.values()], found)


def _shared_counts(shares: np.ndarray, gold: Ints, probability: np.ndarray) -> np.ndarray:
    """Return effective counts[true, given] of items whose given grade may be a tie, shared by several."""
    n_grades = shares.shape[1]
    weighted = np.zeros((n_grades, n_grades))
    np.add.at(weighted, gold, shares / probability[:, None])
    squares = np.bincount(gold, 1 / probability**2, n_grades)
    totals = weighted.sum(axis=1)
    size = np.divide(totals, squares, out=np.zeros(n_grades), where=squares > 0)
    return np.asarray(weighted * size[:, None])


# -- the papers' assumption ----------------------------------------------------------------------------------


def assumption(arrays: CampaignArrays, campaign: Campaign) -> dict[str, Any]:
    """Return the test that judges err alike on all documents of one grade, for relevant and not, with its words."""
    audited = _audit_labels(arrays)
    if not audited.label.size:
        return {"words": "", "refusal": NOT_BY_DOCUMENT if arrays.has_whole_topics else arrays.no_audit()}
    relevant = campaign.scale.relevant_grade
    places = arrays.judged[audited.item]
    returned_by = np.bincount(arrays.returned.item, minlength=arrays.frame.height)[places]
    found = assumption_result(
        AuditedLabels(
            gold_grade=(audited.gold >= relevant).astype(np.int64),
            given_grade=(audited.given >= relevant).astype(np.int64),
            audit_probability=audited.probability,
            gains=np.array([0.0, 1.0]),
            item_index=audited.item,
        ),
        log_runs=np.log(np.maximum(returned_by, 1)),
        rng=np.random.default_rng(arrays.last_judgment_id),
        topic_index=arrays.topic_index[places],
    )
    words = " ".join(assumption_sentences(found))
    if isinstance(found, Refusal):
        return {"words": words, "refusal": found.reason}
    return found.as_json() | {"words": words}


# -- storing ------------------------------------------------------------------------------------------------


def store(computation: Computation, arrays: CampaignArrays, counts: ConfusionCounts) -> None:
    """Store the matrices of every assessor and group, and flag whom the manager should look at."""
    who, n = arrays.assessors, len(arrays.assessors)
    people = _Group(Scope.ASSESSOR, [str(a.pk) for a in who], [""] * n, counts)
    rows = _rows(computation, people) if n else []
    drift = drift_p_values(
        arrays.check_assessor, arrays.check_true, arrays.check_given, arrays.check_time, n, arrays.n_grades
    )
    for row, assessor, p in zip(rows, who, drift, strict=True):
        row.assessor = assessor
        row.drift_p_value = None if np.isnan(p) else float(p)
    _flag(computation, rows)
    for group in [*_groups(arrays, counts), *_aggregates(arrays, computation)] if n else []:
        rows += _rows(computation, group)
    ConfusionEstimate.objects.bulk_create(rows, batch_size=1000)


def _rows(computation: Computation, group: _Group) -> list[ConfusionEstimate]:
    together = group.counts.total
    right = np.trace(together, axis1=1, axis2=2)
    wrong = np.maximum(0.0, together.sum(axis=(1, 2)) - right)  # weighted sums round
    table = np.zeros((len(together), 2, 2))
    table[:, 0] = np.stack([right, wrong], axis=1)
    return [
        ConfusionEstimate(
            computation=computation,
            scope=group.scope,
            key=key[:100],
            label=label[:200],
            counts=counts.round(6).tolist(),
            matrix=estimate.matrix,
            low=estimate.low,
            high=estimate.high,
            n_gold_checks=int(checks.sum()),
            n_audited=int(n_audited),
            **_accuracy(share),
        )
        for key, label, counts, estimate, checks, n_audited, share in zip(
            group.keys,
            group.labels,
            together,
            confusions_from_counts(together),
            group.counts.checks,
            group.counts.n_audited,
            confusions_from_counts(table),
            strict=True,
        )
    ]


def _accuracy(share: Confusion) -> dict[str, float]:
    """Return the share of exactly right grades with its Jeffreys interval: a two-cell confusion row."""
    value, low, high = share.matrix[0], share.low[0], share.high[0]
    if value is None or low is None or high is None:
        return {}
    return {"accuracy": value[0], "accuracy_low": low[0], "accuracy_high": high[0]}


def _flag(computation: Computation, rows: list[ConfusionEstimate]) -> None:
    """Store the evidence against assessors: mostly wrong, worse than the others, or not erring alike all the time."""
    flags = (_wrong_flags, _less_accurate_flags, _change_flags)
    Flag.objects.bulk_create([flag for kind in flags for flag in kind(computation, rows)])


def _wrong_flags(computation: Computation, rows: list[ConfusionEstimate]) -> Iterator[Flag]:
    """Yield a flag for who is surely wrong more often than right; its p is adjusted by Holm for all assessors."""
    known = [row for row in rows if row.accuracy is not None]
    for row, p in zip(known, holm(_chances_of_half(known)), strict=True):
        if row.accuracy_high is not None and row.accuracy_high < FLAG_BELOW_CHANCE_OF:
            evidence = (
                f"right in {row.accuracy:.0%} of {row.n_labels:,} labels of documents with a gold grade; at most "
                f"{row.accuracy_high:.0%} with 95 % confidence"
            )
            yield Flag(
                assessor=row.assessor,
                computation=computation,
                kind=ACCURACY.key,
                p_adjusted=min(1.0, float(p)),
                effect=row.accuracy,
                evidence=evidence,
            )


def _less_accurate_flags(computation: Computation, rows: list[ConfusionEstimate]) -> Iterator[Flag]:
    """Yield a flag for who is right less often than others of their tier, adjusted by Holm for all of the tier."""
    of_tiers: dict[str, list[ConfusionEstimate]] = {}
    for row in rows:
        if row.accuracy is not None and row.assessor is not None:
            of_tiers.setdefault(row.assessor.tier, []).append(row)
    for tier in of_tiers.values():
        p_values = less_accurate([row.counts for row in tier])
        tested = np.flatnonzero(~np.isnan(p_values))
        for place, p in zip(tested.tolist(), holm(p_values[tested]).tolist(), strict=True):
            accuracy = tier[place].accuracy
            if p < SURE and accuracy is not None:
                yield Flag(
                    assessor=tier[place].assessor,
                    computation=computation,
                    kind=LESS_ACCURATE.key,
                    p_adjusted=min(1.0, p),
                    effect=accuracy,
                    evidence=LESS_ACCURATE.sentence(accuracy, p),
                )


def _chances_of_half(rows: list[ConfusionEstimate]) -> np.ndarray:
    """Return by row the chance, by Jeffreys' posterior, that the assessor is right at least half of the time."""
    total = np.array([sum(map(sum, row.counts)) for row in rows])
    right = np.array([sum(line[grade] for grade, line in enumerate(row.counts)) for row in rows])
    return np.asarray(
        scipy.stats.beta.sf(FLAG_BELOW_CHANCE_OF, right + 0.5, np.maximum(0.0, total - right) + 0.5)
    )


def _change_flags(computation: Computation, rows: list[ConfusionEstimate]) -> Iterator[Flag]:
    """Yield a flag for whose answers on gold checks change with time, adjusted by Holm for all assessors."""
    tested = [row for row in rows if row.drift_p_value is not None]
    p_values = [row.drift_p_value for row in tested if row.drift_p_value is not None]
    for row, p in zip(tested, holm(p_values) if tested else [], strict=True):
        if p < SURE:
            yield Flag(
                assessor=row.assessor,
                computation=computation,
                kind=CHANGE.key,
                p_adjusted=min(1.0, float(p)),
                evidence=f"the accuracy on gold checks changes over time (p = {p:.2g}, adjusted for all assessors)",
            )
