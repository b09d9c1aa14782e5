"""Just the judgments it lacks: the smallest top-up of a campaign that answers what is asked, as a design to draw."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from analytics.estimation.estimate import FEWEST_ITEMS, Refusal
from analytics.estimation.reuse import reusability, top_up
from analytics.frames import Floats
from analytics.services.forecast import LARGEST_AT_ONCE, how_known, rank_rows, reason
from analytics.services.job_queue import newest_job, queue_work
from analytics.services.outlook import errors_for, measured_topics
from analytics.services.reuse import Answer, ReuseQuestion, ReuseRefused, check_question
from judging.models import Campaign
from sampling.batches import probabilities_by_fold
from sampling.frames import FrameRefused
from sampling.models import Draw
from sampling.prediction import folds
from sampling.questions import Design, QuestionRefused, nested_probabilities
from sampling.services.drawing import Earlier, earlier_columns
from sampling.services.outlook import design_outlook, planned_audit
from sampling.services.population import Population, population_of, prior_spread, sizes
from touchstone.models import Job, User

FEWEST_NEW = 5.0  # a draw of fewer expected items selects none too often
FEWEST_EXPECTED = (
    16.0  # so many expected are fewer than the 10 an interval needs less than once in twenty draws
)
ABOUT_AS_SURE = 1.1
LIKE_THE_FIRST = ("prior", "scores", "calibrated_on", "sensitivity", "specificity")


@dataclass(frozen=True)
class Lacking:
    """What it takes to bring the half-width down to `half_width` (0: to judge all that the answer depends on).

    Nothing lacks: `design` is None. Numbers of items are expectations; each takes the campaign's judgments an item.
    Half-widths are the drawing alone, which is what items buy; `corrected` is the outlook of the corrected number after
    the top-up, assessors' errors included.
    """

    half_width: float
    half_width_after: float
    n_new: float
    judgments: float
    design: Design | None
    note: str = ""
    corrected: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "design": self.design.parameters() if self.design else None}


@dataclass(frozen=True)
class TopUpAnswer:
    """What is lacking; or why that cannot be said; or the job that works it out for a large pool."""

    lacking: Lacking | None = None
    refusal: str = ""
    job: Job | None = None


def design_of(campaign: Campaign, asked: ReuseQuestion, budget: int) -> Design:
    """Return the top-up of that many items in all: every new judgment goes to what is asked."""
    draw, measure, _ = check_question(campaign, asked)
    if draw.selection_kind.has_exact_counts:
        raise ReuseRefused(
            "a draw of an exact count in every topic cannot be topped up: create a new campaign for this run"
        )
    if draw.selection_kind.with_replacement:
        raise ReuseRefused(
            "a campaign drawn with replacement is topped up in whole batches: see its design page"
        )
    kept = {name: draw.parameters[name] for name in LIKE_THE_FIRST if name in draw.parameters}
    if kept.get("prior") == "judgments":  # sizes are to rest on what was known before judging
        kept["prior"] = "scores" if kept.get("scores") else "runs"
    return Design(
        question="pair" if asked.against else "system",
        runs=asked.runs,
        measure=measure.name,
        depth=max(draw.parameters["depth"], measure.last_rank),
        budget=budget,
        other_runs_share=0.0,
        uniform_share=0.0,
        **kept,
    )


def lacking(*, campaign: Campaign, asked: ReuseQuestion, half_width: float) -> Lacking:
    """Return the smallest top-up after which the answer's forecast half-width is at most that, or `ReuseRefused`."""
    draw = check_question(campaign, asked)[0]
    design = design_of(campaign, asked, 1)
    try:
        population = population_of(campaign, design)
        before = earlier_columns(draw, population)
    except (FrameRefused, QuestionRefused) as refusal:
        raise ReuseRefused(reason(refusal)) from refusal
    target = np.sqrt(population.says.squared_contrast)
    spread = population.relevant_gain * prior_spread(population.design_prior)
    wanted = _expected_items(target, before, spread, half_width)
    if wanted is None:
        now = reusability(target[None], before.probability, spread)[0].half_width
        return Lacking(half_width, 0.0 if isinstance(now, Refusal) else now, 0.0, 0.0, None)
    already = float(before.probability.sum())
    budget = max(math.ceil(already + wanted - 1e-6), math.floor(already) + 1)
    pi = _probabilities(population, before, draw, budget)
    after = reusability(target[None], pi, spread)[0].half_width
    if isinstance(after, Refusal):
        raise ReuseRefused(f"the top-up would not reach all documents: {after.reason}")
    n_new = float((pi - before.probability).sum())
    return Lacking(
        half_width=half_width,
        half_width_after=after,
        n_new=n_new,
        judgments=n_new * campaign.judgments_per_item,
        design=replace(design, budget=budget),
        note=_note(draw, population, after, half_width),
        corrected=design_outlook(
            population, pi, errors_for(campaign, design), measured_topics(campaign, design)
        ),
    )


def _expected_items(target: Floats, before: Earlier, spread: Floats, half_width: float) -> float | None:
    """Return the expected number of new items; None if there is nothing to add.

    How many does not depend on what was drawn so far, only on its probabilities: these must not look at the draw.
    """
    weighed = target > 0
    room = float((1 - before.probability[weighed]).sum())
    if room < 1e-9:
        return None
    if half_width == 0:
        return room
    plan = top_up(target[None], before.probability, spread, half_width=half_width)
    if plan.expected_new_judgments == 0 and np.count_nonzero(before.drawn_in[weighed]) >= FEWEST_ITEMS:
        return None
    short = FEWEST_EXPECTED - float(before.probability[weighed].sum())
    return min(room, max(plan.expected_new_judgments, FEWEST_NEW, short))


def _probabilities(population: Population, before: Earlier, draw: Draw, budget: int) -> Floats:
    """Return the probabilities that a draw of the budget will have (sampling/services/drawing.py)."""
    learned = draw.campaign.draws.exclude(learned_from=None).order_by("batch").first()
    if learned is None or learned.learned_from is None:
        return nested_probabilities(
            sizes(population), before.probability, float(min(budget, population.n_items))
        )
    return probabilities_by_fold(
        sizes(population),
        folds(population.pairs["topic_id"], population.pairs["doc_id"], draw.seed),
        frame_sizes=sizes(population),
        unlearned=before.probability_of_first(learned.learned_from),
        earlier=before.probability,
        expected_count=min(budget, population.n_items),
    )


def _note(draw: Draw, population: Population, after: float, half_width: float) -> str:
    notes = []
    if more := len(set(population.topics) - set(draw.parameters["topics"])):
        notes.append(
            f"{more} topics were added after the draw: the top-up includes them, and all values change"
        )
    if after > half_width * 1.01:
        notes.append("earlier batches learned from judgments, so new items must be spread more widely")
    return "; ".join(notes)


# -- at once, or by a job -----------------------------------------------------------------------------------


def lacking_for(
    *, campaign: Campaign, asked: ReuseQuestion, said: Answer, half_width: float | None, user: User | None
) -> tuple[float | None, TopUpAnswer]:
    """Return the half-width to reach, that which is asked for or else what is usual here, and what lacks for it.

    None if neither is known. A run about as sure as others lacks nothing, unless somebody says how sure it is to be.
    """
    usual = said.usual_half_width
    reached = None if said.too_few else said.half_width
    if half_width is None and usual is not None and reached is not None and reached <= ABOUT_AS_SURE * usual:
        return usual, TopUpAnswer(Lacking(usual, reached, 0.0, 0.0, None))
    wanted = usual if half_width is None else half_width
    if wanted is None:
        return None, TopUpAnswer()
    return wanted, find_lacking(campaign=campaign, asked=asked, half_width=wanted, user=user)


def find_lacking(
    *, campaign: Campaign, asked: ReuseQuestion, half_width: float, user: User | None
) -> TopUpAnswer:
    """Return what is lacking: of a small pool at once, of a large one from its job, which is queued if need be."""
    try:
        design = design_of(campaign, asked, 1)
        if rank_rows(campaign, design.depth) <= LARGEST_AT_ONCE:
            return TopUpAnswer(lacking(campaign=campaign, asked=asked, half_width=half_width))
    except ReuseRefused as refusal:
        return TopUpAnswer(refusal=str(refusal))
    payload = _payload(campaign, asked, half_width, design)
    job = newest_job("reuse", payload=payload)
    if job is None or job.state == Job.State.CANCELLED:
        job = queue_work("reuse", payload, user)
    if job.state == Job.State.DONE:
        return TopUpAnswer(from_json(job.result))
    if job.state == Job.State.FAILED:
        return TopUpAnswer(refusal=job.error)
    return TopUpAnswer(job=job)


def from_json(made: dict[str, Any]) -> Lacking:
    return Lacking(**{**made, "design": Design(**made["design"]) if made["design"] else None})


def _payload(campaign: Campaign, asked: ReuseQuestion, half_width: float, design: Design) -> dict[str, Any]:
    """Return what the job is told, with all that its answer depends on."""
    plan = planned_audit(campaign)
    return {
        "campaign": str(campaign.pk),
        "asked": asdict(asked),
        "half_width": half_width,
        "batches": campaign.draws.count(),
        "runs": list(campaign.collection.runs.order_by("pk").values_list("pk", flat=True)),
        "topics": campaign.collection.topics.count(),
        "audit": asdict(plan) if plan else None,
        "errors": how_known(campaign, design),
    }
