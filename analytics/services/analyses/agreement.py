"""How far the tiers agree: about documents, and about which run is better."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any, Literal

import numpy as np

from analytics.agreement.alpha import krippendorff_alpha
from analytics.agreement.overlap import overlap
from analytics.agreement.rankings import TopicScores, compare_tiers, scores_by_topic
from analytics.agreement.tiers import (
    Kappa,
    LabelTables,
    cohen_kappa,
    kappa_histogram,
    kappas_by_topic,
    label_tables,
    scott_pi,
)
from analytics.estimation.comparison import holm
from analytics.estimation.estimate import Floats, Refusal
from analytics.frames import CampaignArrays, Ints
from analytics.services.analyses.assessor_pairs import disagreeing_assessors
from analytics.services.analyses.request import AnalysisRefused, AnalysisSubject
from analytics.services.recomputation import Progress
from judging.models import Campaign
from sampling.audit_plan import middle_grades

Score = Literal["infNDCG", "infAP"]
SCORES: tuple[Score, ...] = ("infNDCG", "infAP")
ScoresOfTiers = dict[str, TopicScores | Refusal]  # by the tier's name
SHOWN_FLIPS = 30
UNJUDGED = -1


@dataclass(frozen=True)
class Tier:
    """What a tier says of the judged items: one grade each, -1 where nothing, and the chance that it was asked."""

    name: str
    grade: Ints  # [judged]
    probability: Floats  # [judged], 0 where it could not be asked

    @property
    def members(self) -> np.ndarray:
        return np.asarray((self.grade != UNJUDGED) & (self.probability > 0))


def agreement(
    campaign: Campaign, arrays: CampaignArrays, wanted: AnalysisSubject, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Return what each pair of tiers says of the same documents, and how each orders the runs."""
    tiers = tiers_of(arrays)
    if arrays.judged.size == 0:
        raise AnalysisRefused("nobody has judged yet")
    pairs = [_pair(arrays, one, other) for one, other in combinations(tiers, 2)]
    progress(2, 4, "scoring the runs by each tier")
    scores = {score: _scores_of_tiers(campaign, arrays, tiers, score) for score in SCORES}
    rankings = list(_rankings(arrays, tiers, scores))
    return {
        "n_grades": arrays.n_grades,
        "n_items": int(arrays.judged.size),
        "tiers": [{"name": tier.name, "n": int(tier.members.sum())} for tier in tiers],
        "pairs": pairs,
        "alphas": list(_alphas(arrays)),
        "rankings": rankings,
        "scored": [_tier_scores(arrays, score, by_tier) for score, by_tier in scores.items()],
        "assessors": disagreeing_assessors(campaign, arrays),
    }


def tiers_of(arrays: CampaignArrays) -> list[Tier]:
    """Return gold and silver (their audits) and bronze (the ordinary judgments: of several the lower median)."""
    silver = np.full(arrays.judged.size, UNJUDGED, dtype=np.int64)
    # Of several silver labels the first assessor's counts: written last.
    order = np.argsort(arrays.silver_label_assessor, kind="stable")[::-1]
    silver[arrays.silver_label_item[order]] = arrays.silver_label_grade[order]
    bronze = middle_grades(arrays.label_item, arrays.label_grade, arrays.judged.size)
    return [
        Tier("gold", np.where(arrays.audited, arrays.audit_grade, UNJUDGED), arrays.audit_probability),
        Tier("silver", silver, arrays.silver_probability),
        Tier("bronze", bronze, np.ones(arrays.judged.size)),
    ]


# -- the same documents -------------------------------------------------------------------------------------


def _pair(arrays: CampaignArrays, one: Tier, other: Tier) -> dict[str, Any]:
    """Return the tables of two tiers, weighted to the pool: audits of different tiers are independent."""
    named = {"of": [one.name, other.name]}
    empty = next((tier.name for tier in (one, other) if not tier.members.any()), "")
    if empty:
        return {**named, "refusal": f"no judgment of the {empty} tier counts here yet"}
    both = one.members & other.members
    everything = np.ones(arrays.judged.size, dtype=bool)
    chance = arrays.draw_probability(everything) * one.probability * other.probability
    usable = both & (chance > 0)
    a, b = one.grade[usable], other.grade[usable]
    tables = label_tables(a, b, arrays.n_grades, weight=1 / chance[usable])
    if isinstance(tables, Refusal):
        return {**named, "refusal": tables.reason}
    topic = arrays.topic_index[arrays.judged[usable]]
    overlaps = (overlap(a, b, arrays.relevant_grade, weight=weight) for weight in (None, 1 / chance[usable]))
    histogram = kappa_histogram(kappas_by_topic(a, b, topic, arrays.n_topics, arrays.n_grades))
    return {
        **named,
        "refusal": "",
        "n": int(usable.sum()),
        "counts": tables.counts,
        "b_given_a": [_row(row) for row in tables.b_given_a],
        "a_given_b": [_row(row) for row in tables.a_given_b],
        "overall_a": tables.overall_a,
        "overall_b": tables.overall_b,
        "overlap": [_overlap_row(found) for found in overlaps],
        "kappas": list(_kappas(tables, int(usable.sum()))),
        "histogram": {
            "edges": histogram.edges,
            "counts": histogram.counts,
            "refused": histogram.refused,
            "significant": histogram.significant,
        },
    }


def _overlap_row(found: float | Refusal) -> dict[str, Any]:
    return {"refusal": found.reason} if isinstance(found, Refusal) else {"refusal": "", "value": found}


def _row(row: tuple[float, ...] | Refusal) -> dict[str, Any]:
    return {"refusal": row.reason} if isinstance(row, Refusal) else {"refusal": "", "shares": row}


def _kappas(tables: LabelTables, n: int) -> Iterator[dict[str, Any]]:
    found: dict[str, Kappa | Refusal] = {
        "Scott's pi (Siegel and Castellan), these documents": scott_pi(tables.counts),
        "Scott's pi, weighted to the pool": scott_pi(tables.weighted, n=n),
        "Cohen's kappa, these documents": cohen_kappa(tables.counts),
        "Cohen's kappa, weighted to the pool": cohen_kappa(tables.weighted, n=n),
    }
    for name, kappa in found.items():
        if isinstance(kappa, Refusal):
            yield {"name": name, "refusal": kappa.reason}
        else:
            # Of weighted tables the test is not one: their documents do not count alike.
            p = kappa.p_value if "these" in name else None
            yield {
                "name": name,
                "refusal": "",
                "value": kappa.value,
                "observed": kappa.observed,
                "p_value": p,
            }


# -- all judges ---------------------------------------------------------------------------------------------


def _alphas(arrays: CampaignArrays) -> Iterator[dict[str, Any]]:
    """Yield Krippendorff's alpha of the ordinary judgments, and of these with the tiers' audits as more judges."""
    audited = np.flatnonzero(arrays.audited)
    item = [arrays.label_item, arrays.silver_label_item, audited]
    grade = [arrays.label_grade, arrays.silver_label_grade, arrays.audit_grade[audited]]
    for name, n_kinds in (("bronze assessors among themselves", 1), ("all assessors of all tiers", 3)):
        found = krippendorff_alpha(
            np.concatenate(item[:n_kinds]),
            np.concatenate(grade[:n_kinds]),
            metric="ordinal",
            n_grades=arrays.n_grades,
        )
        if isinstance(found, Refusal):
            yield {"of": name, "refusal": found.reason}
            continue
        ends = found.interval
        yield {
            "of": name,
            "refusal": "",
            "value": found.value,
            "low": None if isinstance(ends, Refusal) else ends[0],
            "high": None if isinstance(ends, Refusal) else ends[1],
            "note": ends.reason if isinstance(ends, Refusal) else "",
            "n_documents": found.n_documents,
            "n_labels": found.n_labels,
        }


# -- the order of the runs ----------------------------------------------------------------------------------


def _rankings(
    arrays: CampaignArrays, tiers: list[Tier], scores: dict[Score, ScoresOfTiers]
) -> Iterator[dict[str, Any]]:
    for score, by_tier in scores.items():
        for one, other in combinations(tiers, 2):
            yield {
                "of": [one.name, other.name],
                "score": score,
                **_compare(arrays, by_tier[one.name], by_tier[other.name]),
            }


def _scores_of_tiers(
    campaign: Campaign, arrays: CampaignArrays, tiers: list[Tier], score: Score
) -> ScoresOfTiers:
    gains = np.asarray(campaign.scale.gains(), dtype=np.float64)
    stratum = tiers[-1].grade
    return {
        tier.name: _scores(arrays, tier, score, stratum, gains, campaign.scale.relevant_grade)
        for tier in tiers
    }


def _tier_scores(arrays: CampaignArrays, score: Score, by_tier: ScoresOfTiers) -> dict[str, Any]:
    """Return every run's mean by each tier that can score, over the topics that all of these can."""
    known = {name: found for name, found in by_tier.items() if isinstance(found, TopicScores)}
    shared = reduce(np.intersect1d, [found.topics for found in known.values()]) if known else np.zeros(0)
    if len(known) < 2 or not shared.size:
        return {"score": score, "refusal": "no two tiers can score the runs over the same topics"}
    means = {
        name: found.values[:, np.isin(found.topics, shared)].mean(axis=1) for name, found in known.items()
    }
    order = np.argsort(next(iter(means.values())), kind="stable")
    return {
        "score": score,
        "refusal": "",
        "n_topics": int(shared.size),
        "runs": [arrays.runs[place].run_id for place in order.tolist()],
        "means": {name: mean[order] for name, mean in means.items()},
    }


def _scores(
    arrays: CampaignArrays, tier: Tier, score: Score, stratum: Ints, gains: Floats, relevant_grade: int
) -> TopicScores | Refusal:
    """Return every run's scores by topic from one tier, with the chance that a document was drawn and asked about."""
    open_to = tier.probability > 0
    if not tier.members.any():
        return Refusal(f"no judgment of the {tier.name} tier counts here yet")
    uncovered = arrays.not_covered(open_to, f"document that the {tier.name} tier could have judged")
    if uncovered is not None:
        return Refusal(*uncovered)
    places = arrays.judged[open_to]
    chance = arrays.draw_probability(open_to)[open_to] * tier.probability[open_to]
    given = {"gains": gains} if score == "infNDCG" else {"relevant_grade": relevant_grade}
    return scores_by_topic(
        score,
        arrays.topic_index[places],
        arrays.ranks_at(places),
        tier.grade[open_to],
        stratum[open_to],
        arrays.n_topics,
        inclusion_probability=chance,
        **given,
    )


def _compare(
    arrays: CampaignArrays, reference: TopicScores | Refusal, other: TopicScores | Refusal
) -> dict[str, Any]:
    if isinstance(reference, Refusal) or isinstance(other, Refusal):
        refusal = reference if isinstance(reference, Refusal) else other
        return {"refusal": refusal.reason if isinstance(refusal, Refusal) else ""}
    found = compare_tiers(reference, other)
    if isinstance(found, Refusal):
        return {"refusal": found.reason}
    order = found.ranking
    if isinstance(order, Refusal):
        return {"refusal": order.reason}
    names = [run.run_id for run in arrays.runs]
    return {
        "refusal": "",
        "n_topics": found.n_topics,
        "tau": order.tau,
        "tau_b": None if isinstance(order.tau_b, Refusal) else order.tau_b,
        "tau_ap": order.tau_ap,
        "n_flipped": len(order.flipped),
        "flipped": [[names[better], names[worse]] for better, worse in order.flipped[:SHOWN_FLIPS]],
        "tied_pairs": order.tied_pairs,
        "runs": _by_run(names, found.mean_reference, found.mean_other, list(found.tests)),
        "warnings": sorted({*reference.warnings, *other.warnings})[:5],
    }


def _by_run(names: list[str], reference: Any, other: Any, tests: list[Any]) -> list[dict[str, Any]]:
    """Return each run's two means with Wilcoxon's p, adjusted by Holm for all runs that could be tested."""
    known = [place for place, test in enumerate(tests) if not isinstance(test, Refusal)]
    adjusted = dict(zip(known, holm([tests[place].p_value for place in known]), strict=True)) if known else {}
    return [
        {
            "run": name,
            "reference": reference[place],
            "other": other[place],
            "p_value": tests[place].p_value if place in adjusted else None,
            "holm": float(adjusted[place]) if place in adjusted else None,
            "refusal": "" if place in adjusted else tests[place].reason,
        }
        for place, name in enumerate(names)
    ]
