"""From the facts to numbers: confusion matrices, estimates and comparisons of a campaign, recomputed as a whole."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import numpy as np
from django.db import transaction
from django.db.models import Max, OuterRef, Subquery

from analytics.comparison import Comparison, compare, pairs_of_runs
from analytics.confusion import (
    ConfusionEstimate as Confusion,
)
from analytics.confusion import (
    assessor_counts,
    audit_counts,
    confusion_from_counts,
    shrink,
)
from analytics.correction import greg_label
from analytics.estimators import Estimate as Value
from analytics.estimators import Refusal
from analytics.frames import CampaignArrays, campaign_arrays
from analytics.inverse import matrix_inverse
from analytics.labels import naive, vote_classes
from analytics.models import Computation, ConfusionEstimate, Estimate, Flag, Method
from judging.models import Campaign, Judgment
from sampling.frames import weights_of_runs
from sampling.measures import grade_gains, parse_measure
from touchstone import jobs

MEASURES = ["P@10", "DCG@10", "RBP@20"]
FLAG_BELOW_CHANCE_OF = 0.5  # flagged: surely less often right than wrong
COMMIT_MAY_TAKE = timedelta(seconds=5)
Progress = Callable[[int, int, str], None]


def measures_of(campaign: Campaign) -> list[str]:
    """Return the measures that fit the campaign's pool: none may look deeper than was pooled."""
    depth = campaign.draw.parameters["depth"]
    asked = [campaign.draw.parameters["measure"], *MEASURES]
    names = list(dict.fromkeys(parse_measure(name).name for name in asked))
    return [name for name in names if parse_measure(name).cutoff <= depth]


def recompute(*, campaign: Campaign, progress: Progress = lambda *_: None) -> Computation:
    """Compute everything anew from one snapshot and store it as one new computation. Safe to run twice."""
    started = time.monotonic()
    progress(0, 3, "reading judgments")
    arrays = campaign_arrays(campaign)
    measures = measures_of(campaign)
    progress(1, 3, "estimating")
    counts = assessor_confusion_counts(arrays)
    rows: list[Estimate] = []
    for number, measure in enumerate(measures):
        rows += _estimates(campaign, arrays, counts, measure)
        progress(1 + number, 1 + len(measures), f"estimating {measure}")
    with transaction.atomic():
        computation = Computation.objects.create(
            campaign=campaign,
            last_judgment_id=arrays.last_judgment_id,
            n_judgments=arrays.n_judgments,
            n_items=arrays.judged.size,
            n_audited=int(arrays.audited.sum()),
            n_gold_checks=arrays.check_true.size,
            seconds=time.monotonic() - started,
        )
        for row in rows:
            row.computation = computation
        Estimate.objects.bulk_create(rows, batch_size=1000)
        _store_confusions(computation, arrays, counts)
    return computation


# -- confusion matrices -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConfusionCounts:
    """counts[assessor, true, given] from gold checks and, weighted, from audits."""

    checks: np.ndarray
    audits: np.ndarray
    n_audited: np.ndarray

    @property
    def together(self) -> np.ndarray:
        return self.checks + self.audits


def assessor_confusion_counts(arrays: CampaignArrays) -> ConfusionCounts:
    """Return what gold checks and audits say about every bronze and silver assessor."""
    n, g = len(arrays.assessors), arrays.n_grades
    checks = assessor_counts(arrays.check_assessor, arrays.check_true, arrays.check_given, n, g)
    audits = np.zeros((n, g, g))
    n_audited = np.zeros(n, dtype=np.int64)
    of_audited = arrays.audited[arrays.label_item]
    for assessor in range(n):
        mine = of_audited & (arrays.label_assessor == assessor)
        n_audited[assessor] = mine.sum()
        if mine.any():
            item = arrays.label_item[mine]
            audits[assessor] = audit_counts(
                arrays.audit_grade[item], arrays.label_grade[mine], arrays.audit_probability[item], g
            )
    return ConfusionCounts(checks, audits, n_audited)


def _store_confusions(computation: Computation, arrays: CampaignArrays, counts: ConfusionCounts) -> None:
    stored, flags = [], []
    for index, assessor in enumerate(arrays.assessors):
        together = counts.together[index]
        estimate: Confusion = confusion_from_counts(together)
        accuracy = _accuracy(together)
        stored.append(
            ConfusionEstimate(
                computation=computation,
                assessor=assessor,
                counts=together.round(6).tolist(),
                matrix=estimate.matrix,
                low=estimate.low,
                high=estimate.high,
                n_gold_checks=int(counts.checks[index].sum()),
                n_audited=int(counts.n_audited[index]),
                **dict(zip(("accuracy", "accuracy_low", "accuracy_high"), accuracy, strict=True)),
            )
        )
        if accuracy[2] is not None and accuracy[2] < FLAG_BELOW_CHANCE_OF:
            evidence = (
                f"right in {accuracy[0]:.0%} of {together.sum():.0f} gold labels; with 95 % confidence in at most "
                f"{accuracy[2]:.0%}"
            )
            flags.append(Flag(assessor=assessor, computation=computation, evidence=evidence))
    ConfusionEstimate.objects.bulk_create(stored)
    Flag.objects.bulk_create(flags)


def _accuracy(counts: np.ndarray) -> tuple[float | None, float | None, float | None]:
    """Return the share of exactly right grades with its Jeffreys interval: a two-cell confusion row."""
    total, right = float(counts.sum()), float(np.trace(counts))
    if total == 0:
        return None, None, None
    row = confusion_from_counts([[right, max(0.0, total - right)], [0.0, 0.0]])  # weighted sums round
    return right / total, row.low[0][0], row.high[0][0]


# -- estimates ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Targets:
    """The weight vectors of one measure: every run, then every pair of runs (w_a - w_b)."""

    runs: list[tuple[int, int | None]]  # run, and run_b for a pair
    frame_weights: np.ndarray  # [target, frame]
    gains: np.ndarray  # [grade]
    binary: bool
    relevant_grade: int


def _targets(campaign: Campaign, arrays: CampaignArrays, measure: str) -> Targets:
    parsed = parse_measure(measure)
    relevant = parsed.relevant_grade or campaign.scale.relevant_grade
    weights = weights_of_runs(arrays.ranks, measure, arrays.n_topics)
    pairs, pair_weights = pairs_of_runs(weights)
    return Targets(
        runs=[*((index, None) for index in range(len(arrays.runs))), *pairs],
        frame_weights=np.concatenate([weights, pair_weights]),
        gains=grade_gains(parsed, campaign.scale.gains(), relevant),
        binary=parsed.binary,
        relevant_grade=relevant,
    )


def _estimates(
    campaign: Campaign, arrays: CampaignArrays, counts: ConfusionCounts, measure: str
) -> list[Estimate]:
    targets = _targets(campaign, arrays, measure)
    methods = {
        Method.NAIVE: _naive(arrays, targets),
        Method.CORRECTED: _corrected(arrays, targets),
        Method.MATRIX_INVERSE: _matrix_inverse(arrays, targets, counts),
    }
    truth = _truth(arrays, targets)
    if truth is not None:
        methods[Method.TRUE] = truth
    rows = []
    for method, results in methods.items():
        for (run, run_b), result in zip(targets.runs, results, strict=True):
            rows.append(
                Estimate(
                    run=arrays.runs[run],
                    run_b=None if run_b is None else arrays.runs[run_b],
                    measure=measure,
                    method=method,
                    # No p from grades as given: nothing in them says how the judges err.
                    **_columns(result, tested=run_b is not None and method != Method.NAIVE),
                )
            )
    return rows


def _columns(result: Value | Refusal, *, tested: bool) -> dict:
    if isinstance(result, Refusal):
        needed = f" (about {result.needed} more needed)" if result.needed else ""
        return {"n": 0, "refusal": result.reason + needed}
    compared = compare(result) if tested and result.standard_error > 0 else None
    return {
        "value": result.value,
        "standard_error": result.standard_error,
        "low": result.low,
        "high": result.high,
        "p_value": compared.p_value if isinstance(compared, Comparison) else None,
        "degrees_of_freedom": result.degrees_of_freedom,
        "n": result.n,
        "sources": list(result.sources),
        "warning": result.warning,
    }


def _prior(arrays: CampaignArrays, targets: Targets) -> tuple[np.ndarray, np.ndarray]:
    """Return f per judged item and sum f w over the frame: the recorded guess of relevance times a relevant gain."""
    relevant_gain = float(np.mean(targets.gains[targets.relevant_grade :]))
    f = arrays.frame["prior"].to_numpy() * relevant_gain
    return f[arrays.judged], targets.frame_weights @ f


def _covered(arrays: CampaignArrays, members: np.ndarray, what: str) -> Refusal | None:
    missing = arrays.topics_without(members)
    if missing:
        return Refusal(f"{missing} of {arrays.n_topics} topics have no {what} yet", missing)
    return None


def _naive(arrays: CampaignArrays, targets: Targets) -> Sequence[Value | Refusal]:
    everything = np.ones(arrays.judged.size, dtype=bool)
    refused = _covered(arrays, everything, "judgment")
    if refused is not None:
        return [refused] * len(targets.runs)
    prior, total = _prior(arrays, targets)
    return naive(
        targets.frame_weights[:, arrays.judged],
        draw_probability=arrays.draw_probability(everything),
        label_item=arrays.label_item,
        label_grade=arrays.label_grade,
        gains=targets.gains,
        prior=prior,
        prior_total=total,
    )


def _corrected(arrays: CampaignArrays, targets: Targets) -> Sequence[Value | Refusal]:
    """GREG-label over the items that were open to the completed audits."""
    eligible = arrays.audit_probability > 0
    if not eligible.any():
        waiting = (
            f"; {arrays.n_audit_pending} selected items wait for the gold tier"
            if arrays.n_audit_pending
            else ""
        )
        return [Refusal(f"no audit is complete yet{waiting}", None)] * len(targets.runs)
    refused = _covered(arrays, eligible, "item that an audit could select")
    if refused is not None:
        return [refused] * len(targets.runs)
    prior, total = _prior(arrays, targets)
    classes = vote_classes(arrays.label_item, arrays.label_grade, arrays.judged.size)
    return greg_label(
        targets.frame_weights[:, arrays.judged[eligible]],
        draw_probability=arrays.draw_probability(eligible)[eligible],
        bronze_class=classes[eligible],
        audited=arrays.audited[eligible],
        gold_grade=arrays.audit_grade[eligible],
        audit_probability=arrays.audit_probability[eligible],
        gains=targets.gains,
        prior=prior[eligible],
        prior_total=total,
    )


def _matrix_inverse(
    arrays: CampaignArrays, targets: Targets, counts: ConfusionCounts
) -> Sequence[Value | Refusal]:
    """The papers' correction: every assessor's own (shrunk) matrix, or one pooled matrix where some cannot be used."""
    everything = np.ones(arrays.judged.size, dtype=bool)
    refused = _covered(arrays, everything, "judgment")
    table, grades, gains = counts.together, arrays.label_grade, targets.gains
    if targets.binary:  # the papers' binary form: relevant or not
        relevant = targets.relevant_grade
        table, grades, gains = _binary(table, relevant), grades >= relevant, np.array([0.0, 1.0])
    shrunk = shrink(table) if table.size else Refusal("nobody has judged yet")
    if isinstance(shrunk, Refusal):
        refused = refused or shrunk
    if refused is not None or isinstance(shrunk, Refusal):
        return [refused or Refusal("not estimable")] * len(targets.runs)
    prior, total = _prior(arrays, targets)
    given = partial(
        matrix_inverse,
        targets.frame_weights[:, arrays.judged],
        draw_probability=arrays.draw_probability(everything),
        label_item=arrays.label_item,
        label_grade=grades.astype(np.int64),
        gains=gains,
        prior=prior,
        prior_total=total,
        rng=np.random.default_rng(arrays.last_judgment_id),
    )
    own = given(
        label_assessor=arrays.label_assessor, matrices=shrunk.matrices, gold_per_grade=shrunk.n_per_grade
    )
    if not all(isinstance(result, Refusal) for result in own):
        return own
    joined = table.sum(axis=0)
    pooled = given(
        label_assessor=np.zeros_like(arrays.label_assessor),
        matrices=((joined + 0.5) / (joined + 0.5).sum(axis=1, keepdims=True))[None],
        gold_per_grade=joined.sum(axis=1)[None],
    )
    note = f"one matrix for all assessors: {own[0].reason}" if isinstance(own[0], Refusal) else ""
    return [
        r if isinstance(r, Refusal) else replace(r, warning=f"{note} {r.warning}".strip()) for r in pooled
    ]


def _binary(counts: np.ndarray, relevant_grade: int) -> np.ndarray:
    """Return counts[assessor, true, given] with the grades joined to not relevant and relevant."""
    edges = [0, relevant_grade]
    return np.add.reduceat(np.add.reduceat(counts, edges, axis=1), edges, axis=2)


def _truth(arrays: CampaignArrays, targets: Targets) -> list[Value | Refusal] | None:
    """Return the true values when the gold answers of the whole frame are known (the demo), else None."""
    if (arrays.gold_grade < 0).any():
        return None
    values = targets.frame_weights @ targets.gains[arrays.gold_grade]
    return [
        Value(float(value), 0.0, float(value), float(value), None, int(np.count_nonzero(weights)), ())
        for value, weights in zip(values, targets.frame_weights, strict=True)
    ]


# -- when ---------------------------------------------------------------------------------------------------


def queue_recomputation(*, campaign: Campaign) -> None:
    """Queue a recomputation; one that already waits or runs is enough, the next tick sees what it missed."""
    jobs.enqueue(kind="estimate", payload={"campaign": str(campaign.pk)}, active_key=str(campaign.pk))


def start_due_recomputations() -> None:
    """Queue a recomputation of every drawn campaign with judgments or audits its newest computation may have missed.

    Rows become visible in the order of their commits, not of their ids: what was written in the last seconds before
    a computation is therefore looked at once more.
    """
    newest = Judgment.objects.filter(item__campaign=OuterRef("pk"), slot__isnull=False).order_by("-id")
    latest = Computation.objects.filter(campaign=OuterRef("pk")).order_by("-id")
    campaigns = Campaign.objects.filter(draw__isnull=False).annotate(
        newest=Subquery(newest.values("id")[:1]),
        newest_at=Subquery(newest.values("created_at")[:1]),
        seen=Subquery(latest.values("last_judgment_id")[:1]),
        computed_at=Subquery(latest.values("created_at")[:1]),
        audited_at=Max("audits__created_at"),
    )
    for campaign in campaigns:
        if campaign.newest is None:
            continue
        late = campaign.computed_at is None or campaign.newest_at > campaign.computed_at - COMMIT_MAY_TAKE
        audited = not late and campaign.audited_at is not None and campaign.audited_at > campaign.computed_at
        if late or audited or campaign.newest > campaign.seen:
            queue_recomputation(campaign=campaign)


def latest_computation(*, campaign: Campaign) -> Computation | None:
    return campaign.computations.order_by("-id").first()
