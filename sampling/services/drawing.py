"""Draws: a batch of a campaign's items, with the record of every probability; later batches keep what was drawn."""

import hashlib
import math
import secrets
from dataclasses import dataclass

import numpy as np
import polars as pl
from django.core.files.base import ContentFile
from django.db import transaction

from judging.models import Campaign
from judging.services.sources import store
from sampling.designs import draws_for_distinct
from sampling.draws import permanent_random_numbers, poisson_draw
from sampling.frames import frame_file, load_frame, mean_gains, newest_draw
from sampling.measures import FloatArray
from sampling.models import Draw
from sampling.prediction import cross_fitted, folds, rank_features
from sampling.questions import Design, nested_probabilities
from sampling.services.layout import lay_out, missing_topics
from sampling.services.population import (
    DrawRefused,
    Population,
    population,
    single_draw_probability,
    sizes,
)
from sampling.strata import stratified_pareto_draw, stratified_probabilities
from touchstone.models import User, record

FEWEST_TO_LEARN_FROM = 10


def draw(*, campaign: Campaign, design: Design, seed: int | None = None, user: User | None = None) -> Draw:
    """Draw a batch and lay all of it out, in one transaction. The first seed is kept for all batches of a campaign."""
    with transaction.atomic():
        made = record_draw(campaign=campaign, design=design, seed=seed, user=user)
        lay_out(draw=made, topic_ids=missing_topics(made))
    return made


def record_draw(
    *, campaign: Campaign, design: Design, seed: int | None = None, user: User | None = None
) -> Draw:
    """Draw a batch and record it with its frame; `sampling.services.layout` makes its items."""
    with transaction.atomic():
        # No import and no second draw beside this one; judging goes on.
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        earlier = newest_draw(campaign)
        if earlier is None:
            _refuse_first(campaign, design)
            seed = secrets.randbits(62) if seed is None else seed
        else:
            _refuse_later(earlier, design, seed)
            seed = earlier.seed
        found = population(campaign, design)
        before = earlier_columns(earlier, found)
        batch = 1 if earlier is None else earlier.batch + 1
        learned_from = _learned_from(campaign, earlier, design)
        columns, n_new = _columns(found, before, batch, seed, learned_from)
        content = frame_file(found.pooled, columns)
        made = Draw.objects.create(
            campaign=campaign,
            batch=batch,
            question=design.question,
            method=design.method,
            selection=design.selection,
            parameters={
                **design.parameters(),
                "topics": found.topics,
                "pooled": [run.run_id for run in found.runs],
            },
            learned_from=learned_from if design.prior == "judgments" else None,
            seed=seed,
            frame=store("frames", ContentFile(content), ".parquet"),
            frame_sha256=hashlib.sha256(content).hexdigest(),
            n_frame=found.n_items,
            n_drawn=n_new,
            drawn_by=user,
        )
        record("drawn", campaign, actor=user, n_drawn=n_new, design=design.question, batch=batch)
    return made


# -- what is refused ----------------------------------------------------------------------------------------


def _refuse_first(campaign: Campaign, design: Design) -> None:
    if campaign.items.exists():
        raise DrawRefused("judgments were imported into this campaign; a draw must come first")
    if design.prior == "judgments":
        raise DrawRefused("nothing is judged yet: sizes can be learned from judgments in a later batch only")


def _refuse_later(earlier: Draw, design: Design, seed: int | None) -> None:
    if earlier.selection == Draw.Selection.PARETO:
        raise DrawRefused(
            "an exact count cannot grow: the probabilities of a Pareto draw hold for its own count only. "
            "Campaigns that may be topped up are drawn by Poisson"
        )
    if design.selection != earlier.selection:
        raise DrawRefused(
            f"the first batch was drawn {earlier.get_selection_display()!r}; later ones must be, too"
        )
    if seed is not None and seed != earlier.seed:
        raise DrawRefused("a later batch keeps the campaign's seed: else earlier items would be drawn anew")
    if design.depth < earlier.parameters["depth"]:
        raise DrawRefused(
            f"the pool depth may grow, not shrink: it was {earlier.parameters['depth']}, got {design.depth}"
        )
    waiting = missing_topics(earlier)
    if waiting:
        raise DrawRefused(f"batch {earlier.batch} is not laid out yet: {len(waiting)} topics are missing")


def _learned_from(campaign: Campaign, earlier: Draw | None, design: Design) -> int | None:
    """Return how many batches the predictions may learn from: those before the first batch that learned."""
    if earlier is None:
        return None
    learned = campaign.draws.exclude(learned_from=None).order_by("batch").first()
    if learned is not None:
        return int(learned.learned_from)
    return earlier.batch if design.prior == "judgments" else None


# -- the frame ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Earlier:
    """What earlier batches have left at every pair of the present frame."""

    columns: dict[str, np.ndarray]
    probability: FloatArray  # of any of them
    drawn_in: np.ndarray  # 0: not drawn


def earlier_columns(earlier: Draw | None, found: Population) -> Earlier:
    if earlier is None:
        return Earlier({}, np.zeros(found.n_items), np.zeros(found.n_items, dtype=np.uint16))
    frame = load_frame(earlier)
    names = [c for c in frame.columns if c.startswith(("batch_", "times_", "single_"))]
    pairs = pl.DataFrame(
        {"topic_id": found.topic_ids.astype(str), "doc_id": found.pooled.doc_ids.astype(str)}
    )
    kept = frame.select("topic_id", "doc_id", "inclusion_probability", "drawn_in", *names)
    joined = pairs.join(kept, on=["topic_id", "doc_id"], how="left", maintain_order="left")
    if joined["inclusion_probability"].count() != frame.height:
        raise DrawRefused("runs that the earlier batch was pooled from are gone: its pairs are not all there")
    joined = joined.fill_null(0)
    return Earlier(
        {name: joined[name].to_numpy() for name in names},
        joined["inclusion_probability"].to_numpy(),
        joined["drawn_in"].to_numpy(),
    )


def _columns(
    found: Population, before: Earlier, batch: int, seed: int, learned_from: int | None
) -> tuple[dict[str, np.ndarray], int]:
    """Return the columns of the frame file, and how many items this batch draws that no earlier one has."""
    topic_ids, doc_ids = list(found.topic_ids), list(found.pooled.doc_ids)
    numbers = permanent_random_numbers(topic_ids, doc_ids, seed)
    fold = folds(topic_ids, doc_ids, seed)
    columns = {"prior": found.guess, "fold": fold.astype(np.uint8), "random_number": numbers}
    if found.score is not None:
        columns["score"] = found.score
    columns |= before.columns
    if found.design.selection == "replacement":
        own, times, single = _with_replacement(found, before, batch, seed)
        columns[f"single_{batch}"] = single
        union = 1 - (1 - before.probability) * (1 - own)
    else:
        own, times = _without_replacement(found, before, numbers, fold, learned_from)
        union = np.maximum(before.probability, own)
    new = (times > 0) & (before.drawn_in == 0)
    n_new = int(np.count_nonzero(new))
    if n_new == 0:
        raise DrawRefused(
            "nothing new was drawn: the budget is too small for this pool"
            if batch == 1
            else f"nothing new was drawn: {before.probability.sum():.0f} items were expected already"
        )
    columns |= {
        f"batch_{batch}": own,
        f"times_{batch}": times.astype(np.uint32),
        "inclusion_probability": union,
        "drawn_in": np.where(new, batch, before.drawn_in).astype(np.uint16),
    }
    return columns, n_new


def _without_replacement(
    found: Population, before: Earlier, numbers: FloatArray, fold: np.ndarray, learned_from: int | None
) -> tuple[FloatArray, np.ndarray]:
    design = found.design
    if design.prior == "judgments":
        own = _learned_probabilities(found, before, fold, learned_from)
    elif design.selection == "pareto":
        return _pareto(found, numbers)
    else:
        own = nested_probabilities(
            _sizes(found), before.probability, float(min(design.budget, found.n_items))
        )
    times = np.zeros(own.size, dtype=np.uint32)
    times[poisson_draw(own, numbers)] = 1
    return own, times


def _sizes(found: Population) -> FloatArray:
    if found.design.method == "default":
        return sizes(found, found.guess)
    return single_draw_probability(found, found.design.method)


def _pareto(found: Population, numbers: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """Return probabilities with a whole number of items a topic, and the selection of exactly so many."""
    topic = found.pooled.topic_index
    try:
        own = stratified_probabilities(_sizes(found), topic, min(found.design.budget, found.n_items))
    except ValueError as error:
        raise DrawRefused(str(error)) from error
    times = np.zeros(own.size, dtype=np.uint32)
    times[stratified_pareto_draw(own, numbers, topic)] = 1
    return own, times


def _with_replacement(
    found: Population, before: Earlier, batch: int, seed: int
) -> tuple[FloatArray, np.ndarray, FloatArray]:
    """Return the chance of each item to be among the batch's draws, how often it was drawn, and Q of a single draw."""
    q = single_draw_probability(found, found.design.method)
    wanted = found.design.budget - before.probability.sum()
    if wanted <= 0:
        raise DrawRefused(f"{before.probability.sum():.0f} items were expected already")
    n_reachable = int(np.count_nonzero(q))
    if wanted >= n_reachable:
        raise DrawRefused(
            f"with replacement a draw reaches fewer than {n_reachable} different items here; the budget asks for "
            f"{wanted:.0f}"
        )
    n_draws = math.ceil(draws_for_distinct(q, wanted))
    times = np.random.default_rng([seed, batch]).multinomial(n_draws, q / q.sum())
    own = -np.expm1(n_draws * np.log1p(-np.minimum(q, np.nextafter(1.0, 0.0))))
    return own, times, q


def _learned_probabilities(
    found: Population, before: Earlier, fold: np.ndarray, learned_from: int | None
) -> FloatArray:
    """Return probabilities whose sizes use what earlier judgments predict, each fold from the labels of the others.

    Every fold gets a part of the budget that the frame alone determines: so an item's probability never depends on a
    label of its own fold, and estimates stay exactly unbiased (methods/sampling.md, section 1).
    """
    guess = learned_guess(found, before.drawn_in, fold, learned_from)
    own = before.probability.copy()
    share = np.bincount(fold, weights=sizes(found, found.guess))
    learned = sizes_by_fold(found, guess, fold)
    for number in np.unique(fold):
        members = fold == number
        floor = before.probability[members]
        budget = max(found.design.budget * share[number], float(floor.sum()))
        own[members] = nested_probabilities(learned[members], floor, min(budget, float(members.sum())))
    return own


def sizes_by_fold(found: Population, guess: FloatArray, fold: np.ndarray) -> FloatArray:
    """Return the default sizes with the question's part normalised within each fold, never across folds."""
    if found.design.question == "pool":
        return np.ones(found.n_items)
    question = np.sqrt(found.says.squared_contrast * guess * (1 - guess))
    total = np.bincount(fold, weights=question)
    other, floor = found.design.other_runs_share, found.design.uniform_share
    frame_only = sizes(found, found.guess)
    share = np.bincount(fold, weights=frame_only)
    question *= np.divide(share, total, out=np.zeros_like(total), where=total > 0)[fold]
    return np.asarray((1 - other - floor) * question + other * found.says.average_run + floor / found.n_items)


def learned_guess(
    found: Population, drawn_in: np.ndarray, fold: np.ndarray, learned_from: int | None
) -> FloatArray:
    """Return the cross-fitted prediction of every item's gain, as a share of the largest gain."""
    labels = mean_gains(found.campaign, found.gains)
    pairs = pl.DataFrame(
        {"topic_id": found.topic_ids.astype(str), "doc_id": found.pooled.doc_ids.astype(str)}
    )
    value = pairs.join(labels, on=["topic_id", "doc_id"], how="left", maintain_order="left")["value"]
    label = value.fill_null(float("nan")).to_numpy()
    usable = ~np.isnan(label) & (drawn_in > 0) & (drawn_in <= (learned_from or 0))
    labelled = np.flatnonzero(usable)
    if labelled.size < FEWEST_TO_LEARN_FROM:
        raise DrawRefused(
            f"{labelled.size} items are judged; sizes can be learned from {FEWEST_TO_LEARN_FROM} or more"
        )
    return cross_fitted(
        features=rank_features(found.pooled.returned, found.design.depth),
        topic_index=found.pooled.topic_index,
        fold=fold,
        prior=found.guess,
        labelled=labelled,
        label=label[labelled] / found.gains.max(),
    )
