"""Analyses that are made when somebody asks, by a job: what the papers' methods say, how far the tiers agree,
which verdicts other evidence would change, the runs topic by topic, and the runs without judgments.

The newest result that was made is shown, with the judgment it goes up to; asking again makes a newer one.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from analytics.frames import CampaignArrays, campaign_arrays
from analytics.services.analyses.agreement import agreement
from analytics.services.analyses.papers import papers
from analytics.services.analyses.request import AnalysisRefused, AnalysisSubject
from analytics.services.analyses.runs_alone import runs_alone
from analytics.services.analyses.sensitivity import sensitivity, under_claim
from analytics.services.analyses.topics import topics
from analytics.services.families import asked_family
from analytics.services.job_queue import newest_job, queue_work
from analytics.services.recomputation import Progress, latest_computation
from analytics.shards import TOPIC, WHOLE, refusal
from judging.models import Campaign, Judgment
from sampling.selections import NOT_BY_DOCUMENT
from touchstone.models import Job, User

__all__ = [
    "ANALYSES",
    "AnalysisRefused",
    "AnalysisState",
    "AnalysisSubject",
    "analyse",
    "analysis_of",
    "ask",
    "find",
    "job_title",
    "under_claim",
]

KIND = "analysis"


@dataclass(frozen=True)
class Analysis:
    """An analysis: who makes it, and what it is asked about. Its page bears its key.

    `title` names what a job computes; it takes the fields of the subject. `no_runs` says why no runs are named; where
    it is empty, the analysis is of two runs. With `has_usual_measure` a request that names no measure is about the one
    that was drawn for. Without `needs_judgments` it is made before anybody has judged, too. `no_claim` says why its
    result does not depend on a claim; where it is empty, both claims are made, in a family of comparisons. `shards`:
    what it has to hold at once (analytics/shards.py).
    """

    key: str
    title: str
    analyst: Callable[[Campaign, CampaignArrays, AnalysisSubject, Progress], dict[str, Any]]
    no_runs: str = ""
    has_usual_measure: bool = False
    needs_judgments: bool = True
    no_claim: str = "it makes no claim of its own"
    shards: str = TOPIC


ANALYSES: tuple[Analysis, ...] = (
    Analysis(
        "papers",
        "The papers' methods on {run} and {against}, in {measure}",
        papers,
        no_claim="the papers' methods take the topics as a sample",
        shards=WHOLE,
    ),
    Analysis(
        "agreement",
        "Agreement of the tiers",
        agreement,
        "the tiers are compared over all runs, by their own scores",
        no_claim="tests of the tiers are over topics, and adjusted for all runs",
        shards=WHOLE,
    ),
    Analysis(
        "sensitivity",
        "Which verdicts other evidence would change, in {measure}",
        sensitivity,
        "all runs are included",
        has_usual_measure=True,
        no_claim="",
        shards=WHOLE,
    ),
    Analysis(
        "topics",
        "{run} and {against} topic by topic, in {measure}",
        topics,
        has_usual_measure=True,
        no_claim="an interval is for one topic",
    ),
    Analysis(
        "no-judgments",
        "The ranking of the runs without judgments",
        runs_alone,
        "all runs are included",
        has_usual_measure=True,
        needs_judgments=False,
        no_claim="nothing is tested",
    ),
)


def analysis_of(key: str) -> Analysis:
    """Return the analysis of a key, or raise KeyError."""
    return {one.key: one for one in ANALYSES}[key]


def job_title(job: Job) -> str:
    """Return what an analysis job computes; nothing for jobs of other kinds."""
    return analysis_of(job.payload["what"]).title.format(**job.payload["asked"]) if job.kind == KIND else ""


@dataclass(frozen=True)
class AnalysisState:
    """The newest result, if one was made; the job that is at it now; the newest one that failed since."""

    result: dict[str, Any] | None = None
    made: Job | None = None
    active: Job | None = None
    failed: Job | None = None
    is_current: bool = False  # nothing was judged since, as far as the newest numbers know


def find(*, campaign: Campaign, wanted: AnalysisSubject) -> AnalysisState:
    """Return what is known: a look at a few rows."""
    known = {"payload__contains": _subject_filter(campaign, wanted)}
    newest = newest_job(KIND, **known)
    if newest is None:
        return AnalysisState()
    made = newest if newest.state == Job.State.DONE else newest_job(KIND, state=Job.State.DONE, **known)
    computed = latest_computation(campaign=campaign)
    seen = computed.last_judgment_id if computed else 0
    return AnalysisState(
        result=made.result if made else None,
        made=made,
        active=newest if newest.is_active else None,
        failed=newest if newest.state == Job.State.FAILED else None,
        is_current=made is not None and made.result["as_of"] >= seen,
    )


def ask(*, campaign: Campaign, wanted: AnalysisSubject, user: User | None) -> Job:
    """Queue the analysis, or return the job that is at it."""
    computed = latest_computation(campaign=campaign)
    same = _subject_filter(campaign, wanted)
    payload = {**same, "judgment": computed.last_judgment_id if computed else 0}
    return queue_work(KIND, payload, user, same=same)


def analyse(*, campaign: Campaign, wanted: AnalysisSubject, progress: Progress) -> dict[str, Any]:
    """Return the analysis of one snapshot, as JSON without NaN; `AnalysisRefused` if nothing was judged."""
    progress(0, 3, "reading judgments")
    analysis = analysis_of(wanted.what)
    too_many = refusal(analysis.title.format(**asdict(wanted)), analysis.shards, _n_judgments(campaign))
    if too_many:
        raise AnalysisRefused(too_many)
    arrays = campaign_arrays(campaign)
    if arrays.has_whole_topics and analysis.needs_judgments:
        raise AnalysisRefused(NOT_BY_DOCUMENT)
    if analysis.needs_judgments and arrays.judged.size == 0:
        raise AnalysisRefused("nobody has judged yet")
    progress(1, 3, "analysing")
    found = analysis.analyst(campaign, arrays, wanted, progress)
    counted = {"as_of": arrays.last_judgment_id, "n_judgments": arrays.n_judgments}
    answer: dict[str, Any] = finite_json({**_asked_fields(wanted), **counted, **found})
    return answer


def _n_judgments(campaign: Campaign) -> int:
    return Judgment.objects.filter(assessor__campaign=campaign).order_by().count()


def finite_json(value: Any) -> Any:
    """Return the value with plain numbers. Raise ValueError for NaN or an infinity: they are never stored.

    >>> finite_json({"a": (1, 2.5)})
    {'a': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {str(key): finite_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(part) for part in value]
    if hasattr(value, "tolist"):
        return finite_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"an analysis must be finite, got {value}")
    return value


def _subject_filter(campaign: Campaign, wanted: AnalysisSubject) -> dict[str, Any]:
    """Return what the payload of the subject's jobs holds; a family by its name, also where it is the declared one."""
    asked = _asked_fields(wanted)
    if "family" in asked:
        asked["family"] = asked_family(campaign, wanted.family).name
    return {"campaign": str(campaign.pk), "what": wanted.what, "asked": asked}


def _asked_fields(wanted: AnalysisSubject) -> dict[str, str]:
    """Return the fields of a subject: a family only where the result depends on one."""
    fields = asdict(wanted)
    if analysis_of(wanted.what).no_claim:
        del fields["family"]
    return fields
