"""The forecast a manager sees before a judgment is spent: at once for small pools, by a job for large ones."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from analytics.estimation.graded_labels import stairs
from analytics.estimation.one_step_limits import AuditSize, refusal_by_size
from analytics.services.job_queue import newest_job, queue_work
from analytics.services.outlook import errors_for, measured_topics
from judging.models import Campaign
from sampling.designs import depth_pool
from sampling.frames import FrameRefused
from sampling.measures.kinds import Ratio
from sampling.outlook import USUAL_RATES
from sampling.questions import Design, QuestionRefused
from sampling.services.calibrating import n_gold_there
from sampling.services.forecasting import Preview, Progress, designed_population, preview
from sampling.services.outlook import planned_audit
from sampling.services.population import Population, sizes
from sampling.services.topic_population import TopicPopulation
from sampling.sizes import IdenticalSystemsError
from sampling.strata import stratified_probabilities
from touchstone.models import Job, User

Rates = tuple[float, float]  # misses and false alarms, assumed where no gold has measured them

LARGEST_AT_ONCE = 300_000  # lines of runs that a request may wait for: about two seconds
LARGEST_PLAYED = 10_000  # items drawn, whose plays a request may wait for: about two seconds
LARGEST_CONSENSUS = 30_000  # the same where the consensus of the runs is fitted first


@dataclass(frozen=True)
class CompletePool:
    """What the same budget buys in the traditional way: every document down to a depth.

    `left_out` is the largest share of a run's weight, among the runs of the question, that is never judged.
    """

    depth: int
    n_items: int
    left_out: float


@dataclass(frozen=True)
class Forecast:
    """A preview; or the reason why there is none; or the job that makes it (its newest, in any state)."""

    preview: Preview | None = None
    complete_pool: CompletePool | None = None
    refusal: str = ""
    job: Job | None = None
    needs_job: bool = False


def rank_rows(campaign: Campaign, depth: int) -> int:
    """Return how many lines of runs a pool of this depth reads, at most."""
    runs = campaign.collection.runs.values_list("n_lines", "n_topics")
    return sum(min(n_lines, n_topics * depth) for n_lines, n_topics in runs)


def is_made_at_once(campaign: Campaign, design: Design) -> bool:
    """Return whether a request makes the forecast itself."""
    most = min(LARGEST_AT_ONCE, LARGEST_CONSENSUS) if design.prior == "experts" else LARGEST_AT_ONCE
    return design.budget <= LARGEST_PLAYED and rank_rows(campaign, design.depth) <= most


def forecast(*, campaign: Campaign, design: Design, rates: Rates = USUAL_RATES) -> Forecast:
    """Return the forecast of a small pool, or what the newest job of a large one says."""
    if is_made_at_once(campaign, design):
        try:
            shown, pool = compute(campaign=campaign, design=design, rates=rates)
        except (FrameRefused, QuestionRefused) as error:
            return Forecast(refusal=reason(error))
        return Forecast(preview=shown, complete_pool=pool)
    job = _newest(campaign, design, rates)
    if job is None or job.state == Job.State.CANCELLED:
        return Forecast(needs_job=True)
    if job.state == Job.State.FAILED:
        return Forecast(refusal=job.error, job=job, needs_job=True)
    if job.is_active:
        return Forecast(job=job, needs_job=True)
    return _from_json(job.result, job)


def compute(
    *,
    campaign: Campaign,
    design: Design,
    rates: Rates = USUAL_RATES,
    progress: Progress = lambda *_: None,
) -> tuple[Preview, CompletePool | None]:
    """Return the preview, and what the budget buys without a sample.

    FrameRefused or QuestionRefused: the design cannot be carried out.
    """
    population = designed_population(campaign, design)
    errors = errors_for(campaign, design, rates)
    shown = preview(
        campaign=campaign,
        design=design,
        population=population,
        errors=errors,
        topics=measured_topics(campaign, design),
        progress=progress,
    )
    if isinstance(population, TopicPopulation):
        return shown, None
    shown = replace(shown, limit=_limit(population))
    if design.selection_kind.has_exact_counts:
        _require_exact_counts(population)
    return shown, _complete_pool(population)


def _require_exact_counts(population: Population) -> None:
    """Refuse a budget that has too few items for the topics."""
    shares = sizes(population)
    try:
        budget = min(population.design.budget, population.n_items)
        stratified_probabilities(shares, population.pooled.topic_index, budget)
    except ValueError as error:
        raise FrameRefused(str(error)) from error


def _limit(population: Population) -> str:
    """Return why the budget, as gold labels, would give no interval of a ratio; empty where it would, and of a sum."""
    measure = population.measure
    if not isinstance(measure.kind, Ratio):
        return ""
    size = AuditSize(
        n_labels=min(population.design.budget, population.n_items),
        n_items=population.n_items,
        n_topics=len(population.topics),
        n_relevant=float(population.design_prior.sum()),
        n_stairs=stairs(population.gains).steps.size,
    )
    refusal = refusal_by_size(measure, size)
    return "" if refusal is None or refusal.needed == 0 else refusal.reason


def _complete_pool(population: Population) -> CompletePool | None:
    """Return what the budget buys without a sample; of a ratio nothing, for it needs the whole pool."""
    if not population.measure.kind.is_sum:
        return None
    try:
        pool = depth_pool(
            population.pooled.returned, population.weights.along, budget=population.design.budget
        )
    except ValueError:  # the budget does not pay for the first rank of every run
        return None
    return CompletePool(pool.depth, pool.n_items, float(pool.left_out[population.rows].max()))


def reason(error: Exception) -> str:
    """Return why a design is refused, and what to do where the reason itself does not say it."""
    if isinstance(error.__cause__, IdenticalSystemsError) or isinstance(error, IdenticalSystemsError):
        return f"{error}. Choose other runs, or a measure with a deeper cutoff"
    return str(error)


# -- by a job -----------------------------------------------------------------------------------------------


def queue_forecast(
    *, campaign: Campaign, design: Design, user: User | None, rates: Rates = USUAL_RATES
) -> Job | None:
    """Queue the job of a large pool, or return the one that is there: queued, running or done. None: none is needed."""
    if is_made_at_once(campaign, design):
        return None
    newest = _newest(campaign, design, rates)
    if newest is not None and (newest.is_active or newest.state == Job.State.DONE):
        return newest
    return queue_work("forecast", _payload(campaign, design, rates), user)


def as_json(shown: Preview, pool: CompletePool | None) -> dict[str, Any]:
    return {"preview": shown.as_json(), "complete_pool": asdict(pool) if pool else None}


def _from_json(result: dict[str, Any], job: Job) -> Forecast:
    try:
        pool = CompletePool(**result["complete_pool"]) if result["complete_pool"] else None
        return Forecast(preview=Preview(**result["preview"]), complete_pool=pool, job=job)
    except (KeyError, TypeError):  # of an older version
        return Forecast(needs_job=True)


def _newest(campaign: Campaign, design: Design, rates: Rates) -> Job | None:
    return newest_job("forecast", payload=_payload(campaign, design, rates))


def _payload(campaign: Campaign, design: Design, rates: Rates) -> dict[str, Any]:
    """Return what the job is told. A forecast holds for the runs, scores and batches there were, and for what
    gold has said of the assessors: they belong to it.
    """
    collection, plan = campaign.collection, planned_audit(campaign)
    return {
        "campaign": str(campaign.pk),
        "design": design.parameters(),
        "rates": list(rates),
        "audit": asdict(plan) if plan else None,
        "labels": campaign.judgments_per_item,
        "batches": campaign.draws.count(),
        "runs": list(collection.runs.order_by("pk").values_list("pk", flat=True)),
        "gold": n_gold_there(campaign, design),
        "scores": list(collection.score_lists.filter(name=design.scores).values_list("pk", flat=True)),
        "topics": collection.topics.count(),
        "errors": how_known(campaign, design, rates),
    }


def how_known(campaign: Campaign, design: Design, rates: Rates = USUAL_RATES) -> dict[str, Any]:
    """Return where the assessors' errors are known from now, and what they and the spread between topics are."""
    try:
        errors, topics = errors_for(campaign, design, rates), measured_topics(campaign, design)
    except (QuestionRefused, ValueError):  # what it says is for the forecast itself to say
        return {}
    between = topics and f"{topics.variance:.3g}"
    return {"from": errors.origin, "given": errors.matrix.round(6).tolist(), "topics": between}
