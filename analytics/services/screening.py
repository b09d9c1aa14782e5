"""Screening a campaign's log: stored with a computation, and read again for pages and the API."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import CharField, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast

from analytics.frames import ScreeningEvidence, screening_evidence
from analytics.models import AssessorScreening, Computation, Flag, Screening
from analytics.screening.kinds import ACCURACY, CHANCE, CHANGE, FLAG_KINDS, LESS_ACCURATE, flag_kind
from analytics.screening.profiles import Overview, Profiles, Quartiles, overview, profiles
from analytics.screening.screens import Screening as Result
from analytics.screening.screens import screen
from analytics.services.careless_work import pace_flags
from judging.models import Assessor, Campaign
from judging.services.campaigns import set_status
from touchstone import jobs
from touchstone.models import Event, Job

KIND = "screening"
# What a computation flags by itself: from known answers, and from agreement with the others.
OF_COMPUTATION = (ACCURACY.key, LESS_ACCURATE.key, CHANGE.key, CHANCE.key)
Progress = Callable[[int, int, str], None]


def screen_campaign(*, campaign: Campaign, progress: Progress = lambda *_: None) -> Screening | None:
    """Screen the log of this moment, and store it with the newest computation; None where there is none.

    Safe to run twice: a computation is screened once.
    """
    started = time.monotonic()
    computation = campaign.computations.order_by("-id").first()
    if computation is None:
        return None
    stored = Screening.objects.filter(computation=computation).first()
    if stored is not None:
        return stored
    progress(0, 3, "reading judgments")
    evidence = screening_evidence(campaign)
    progress(1, 3, "screening")
    result = screen(evidence.log, has_random_order=campaign.has_random_order)
    drawn = profiles(evidence.log, result.residuals)
    shown = overview(evidence.log, evidence.grade, evidence.n_grades)
    progress(2, 3, "storing")
    with transaction.atomic():
        made = Screening.objects.create(
            computation=computation,
            n_judgments=evidence.log.assessor.size,
            overview=_overview_json(shown, evidence),
            seconds=time.monotonic() - started,
        )
        AssessorScreening.objects.bulk_create(_assessor_rows(made, evidence, result, drawn), batch_size=500)
        flags = _flags(computation, evidence, result) + pace_flags(computation, campaign, evidence.assessors)
        Flag.objects.bulk_create(flags, batch_size=1000)
        _pause_flagged(campaign)
    progress(3, 3, "done")
    return made


def _flags(computation: Computation, evidence: ScreeningEvidence, result: Result) -> list[Flag]:
    rows = []
    for one, key in result.flags():
        finding, p = result.findings[key], float(result.adjusted[key][one])
        effect = float(finding.effect[one])
        topics = [evidence.topic_ids[topic] for topic in finding.topics.get(one, ())]
        rows.append(
            Flag(
                assessor=evidence.assessors[one],
                computation=computation,
                kind=key,
                p_adjusted=p,
                effect=effect,
                topics=topics,
                evidence=flag_kind(key).sentence(effect, p, len(topics)),
            )
        )
    return rows


def _assessor_rows(
    made: Screening, evidence: ScreeningEvidence, result: Result, drawn: Profiles
) -> list[AssessorScreening]:
    log = evidence.log
    bounds = np.searchsorted(log.session_assessor, np.arange(log.n_assessors + 1))
    columns = (log.session_topic, log.sizes, log.n_relevant, drawn.fast, drawn.auc)
    rows = []
    for one, assessor in enumerate(evidence.assessors):
        own = slice(bounds[one], bounds[one + 1])
        topics = [
            [evidence.topic_ids[topic], n, n_relevant, _number(fast), _number(auc)]
            for topic, n, n_relevant, fast, auc in zip(*(part[own].tolist() for part in columns), strict=True)
        ]
        profile = {
            "seconds": _numbers(drawn.seconds[one]),
            "relevant": _numbers(drawn.relevant[one]),
            "topics": topics,
        }
        rows.append(
            AssessorScreening(
                screening=made, assessor=assessor, tests=_tests_json(result, one), profile=profile
            )
        )
    return rows


def _tests_json(result: Result, one: int) -> dict[str, Any]:
    tests: dict[str, Any] = {}
    for key, finding in result.findings.items():
        if one in finding.refusals:
            tests[key] = {"refusal": finding.refusals[one]}
        else:
            tests[key] = {
                "p": float(finding.p[one]),
                "p_adjusted": float(result.adjusted[key][one]),
                "effect": _number(finding.effect[one]),
            }
    return tests


def _overview_json(shown: Overview, evidence: ScreeningEvidence) -> dict[str, Any]:
    of_assessors = _quartiles_json(shown.by_assessor)
    return {
        "first_position": shown.first_position.tolist(),
        "by_position": _quartiles_json(shown.by_position),
        "by_grade": _quartiles_json(shown.by_grade),
        "assessors": {
            str(assessor.pk): {"seconds": of_assessors[one], "shares": _numbers(shown.grade_share[one])}
            for one, assessor in enumerate(evidence.assessors)
        },
    }


def _quartiles_json(found: Quartiles) -> list[list[float | None]]:
    columns = (found.low, found.median, found.high)
    return [[n, *(_number(column[place]) for column in columns)] for place, n in enumerate(found.n.tolist())]


def _number(value: float) -> float | None:
    """Return a number that JSON can hold; None for NaN."""
    return round(float(value), 6) if math.isfinite(value) else None


def _numbers(values: np.ndarray) -> list[float | None]:
    return [_number(value) for value in values.tolist()]


def _pause_flagged(campaign: Campaign) -> None:
    """Pause whom a flag below the campaign's limit speaks against; nobody where no limit is set.

    Whom a manager has resumed since is not paused again.
    """
    if campaign.pause_below is None:
        return
    pauses = Event.objects.filter(
        subject=f"campaign:{campaign.pk}", verb=f"set {Assessor.Status.SUSPENDED}", actor=None
    )
    before = set(pauses.values_list("detail__assessor", flat=True))
    against = current_flags(campaign).filter(
        p_adjusted__lt=campaign.pause_below, assessor__status=Assessor.Status.ACTIVE
    )
    for flag in against.select_related("assessor__campaign"):
        if flag.assessor.user_id not in before:
            before.add(flag.assessor.user_id)
            set_status(
                assessor=flag.assessor,
                status=Assessor.Status.SUSPENDED,
                actor=None,
                test=flag.kind,
                p_adjusted=flag.p_adjusted,
            )


# -- when ---------------------------------------------------------------------------------------------------


def queue_screening(*, campaign: Campaign) -> None:
    """Queue a screening; one that already waits or runs is enough, the next tick sees what it missed."""
    jobs.enqueue(kind=KIND, payload={"campaign": str(campaign.pk)}, active_key=str(campaign.pk))


def start_due_screenings() -> None:
    """Queue a screening of every campaign whose newest computation has none, once for each computation."""
    newest = Computation.objects.filter(campaign=OuterRef("pk")).order_by("-id")
    queued = Job.objects.filter(
        kind=KIND,
        active_key=Cast(OuterRef("pk"), CharField()),
        created_at__gte=OuterRef("computed_at"),
    )
    due = (
        Campaign.objects.filter(deleted_at=None, collection__deleted_at=None)
        .annotate(
            computation=Subquery(newest.values("pk")[:1]),
            computed_at=Subquery(newest.values("created_at")[:1]),
        )
        .filter(computation__isnull=False)
        .exclude(Exists(Screening.objects.filter(computation=OuterRef("computation"))))
        .exclude(Exists(queued))
    )
    for campaign in due:
        queue_screening(campaign=campaign)


# -- reading it -----------------------------------------------------------------------------------------------


def newest_screening_of(campaign: Any) -> QuerySet[Any]:
    """Return the key of the campaign's newest screening, for a subquery too."""
    screenings = Screening.objects.filter(computation__campaign=campaign)
    return screenings.order_by("-computation_id").values("pk")[:1]


def latest_screening(*, campaign: Campaign) -> Screening | None:
    return Screening.objects.filter(pk__in=newest_screening_of(campaign)).first()


def current_flags(campaign: Campaign) -> QuerySet[Flag]:
    """Return the flags that stand: what the newest computation says, and the newest screening; the worst first."""
    computations = Computation.objects.filter(campaign=campaign).order_by("-id")
    screened = computations.filter(screening__isnull=False)
    return Flag.objects.filter(
        Q(kind__in=OF_COMPUTATION, computation=Subquery(computations.values("pk")[:1]))
        | (~Q(kind__in=OF_COMPUTATION) & Q(computation=Subquery(screened.values("pk")[:1])))
    ).order_by(F("p_adjusted").asc(nulls_last=True), "pk")


def screen_answers(tests: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every test of the log with what it says of an assessor, or why there is none."""
    return [{"kind": kind, **tests[kind.key]} for kind in FLAG_KINDS if kind.key in tests]
