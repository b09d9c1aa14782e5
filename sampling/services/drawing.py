"""Draws: a batch of a campaign's items, with the record of every probability; later batches keep what was drawn."""

import hashlib
import math
import secrets
from dataclasses import asdict, dataclass

import numpy as np
from django.core.files.base import ContentFile
from django.db import transaction
from django.db.models import Exists, OuterRef

from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Judgment, Slot
from judging.services.sources import begin_import
from sampling.batches import draws_to_reach, learned_sizes, probabilities_by_fold
from sampling.components import cross_fitted_with_components, run_components
from sampling.draws import permanent_random_numbers, poisson_draw
from sampling.frames import frame_file, load_frame, mean_gains, newest_draw
from sampling.measures.families import FloatArray
from sampling.models import Draw
from sampling.prediction import folds, rank_features
from sampling.questions import Design, nested_probabilities
from sampling.services.check_allotment import allotted_grades
from sampling.services.informative import refuse_part, refuse_runs
from sampling.services.layout import lay_out, missing_topics
from sampling.services.population import (
    DrawRefused,
    PooledPairs,
    Population,
    population_of,
    single_draws,
    sizes,
)
from sampling.services.topic_population import TopicPopulation, topic_population_of
from sampling.strata import stratified_pareto_draw, stratified_probabilities
from sampling.whole_topics import topic_numbers
from touchstone.files import store
from touchstone.models import User, record

FEWEST_TO_LEARN_FROM = 10
LEAST_NEW = 1e-6  # expected items of a batch: less is rounding


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
        begin_import(campaign.collection)  # no import and no second draw beside this one; judging goes on
        earlier = newest_draw(campaign)
        if earlier is None:
            _refuse_first(campaign, design)
            seed = secrets.randbits(62) if seed is None else seed
        else:
            _refuse_later(earlier, design, seed)
            seed = earlier.seed
        campaign.refresh_from_db(fields=["judging_order"])
        population: Population | TopicPopulation = (
            topic_population_of(campaign, design)
            if design.has_whole_topics
            else population_of(campaign, design)
        )
        if not campaign.has_random_order:
            refuse_runs(population)
        before = earlier_columns(earlier, population)
        _refuse_budget(design, before)
        batch = 1 if earlier is None else earlier.batch + 1
        learned_from = _learned_from(campaign, earlier, design)
        columns, n_new = (
            _topic_columns(population, before, batch, seed)
            if isinstance(population, TopicPopulation)
            else _columns(population, before, batch, seed, learned_from)
        )
        if not campaign.has_random_order:
            refuse_part(population, columns["inclusion_probability"])
        content = frame_file(population.pooled, columns)
        check_grades = allotted_grades(population, columns["drawn_in"], batch, seed)
        made = Draw.objects.create(
            campaign=campaign,
            batch=batch,
            question=design.question,
            method=design.method,
            selection=design.selection,
            parameters={
                **design.parameters(),
                "topics": population.topics,
                "pooled": [run.run_id for run in population.runs],
                **({"calibration": asdict(population.calibration)} if population.calibration else {}),
                **({"check_grades": check_grades} if check_grades else {}),
            },
            learned_from=learned_from if design.prior == "judgments" else None,
            seed=seed,
            frame=store("frames", ContentFile(content), ".parquet"),
            frame_sha256=hashlib.sha256(content).hexdigest(),
            n_frame=population.n_items,
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
    if earlier.selection_kind.no_top_up:
        raise DrawRefused(earlier.selection_kind.no_top_up)
    if earlier.selection_kind.has_exact_counts:
        raise DrawRefused(
            "an exact count cannot grow: the probabilities of a Pareto draw hold for its own count only. "
            "Campaigns that may be topped up are drawn by Poisson"
        )
    if design.selection != earlier.selection:
        raise DrawRefused(
            f"the first batch was drawn {earlier.selection_kind.label!r}; later ones must be, too"
        )
    if design.prior == "judgments" and design.method != "default":
        raise DrawRefused(f"sizes are learned for the default design only, not for {design.method!r}")
    if design.has_whole_topics != earlier.has_whole_topics:
        what = "whole topics" if earlier.has_whole_topics else "documents of all topics"
        raise DrawRefused(f"the first batch drew {what}; later ones must, too")
    if seed is not None and seed != earlier.seed:
        raise DrawRefused("a later batch keeps the campaign's seed: else earlier items would be drawn anew")
    if design.depth < earlier.parameters["depth"]:
        raise DrawRefused(
            f"the pool depth may grow, not shrink: it was {earlier.parameters['depth']}, got {design.depth}"
        )
    waiting = missing_topics(earlier)
    if waiting:
        raise DrawRefused(f"batch {earlier.batch} is not laid out yet: {len(waiting)} topics are missing")


def _refuse_budget(design: Design, before: "Earlier") -> None:
    already = float(before.probability.sum())
    if design.budget <= already + LEAST_NEW:
        raise DrawRefused(
            f"the budget counts all batches: {already:.0f} items are expected already, got {design.budget}"
        )


def _learned_from(campaign: Campaign, earlier: Draw | None, design: Design) -> int | None:
    """Return how many batches the predictions may learn from: those before the first batch that learned."""
    if earlier is None:
        return None
    learned = campaign.draws.exclude(learned_from=None).order_by("batch").first()
    if learned is not None:
        return learned.learned_from
    return earlier.batch if design.prior == "judgments" else None


# -- the frame ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Earlier:
    """The probabilities of earlier batches at every pair of the present frame."""

    columns: dict[str, np.ndarray]
    probability: FloatArray  # of any of them
    drawn_in: np.ndarray  # 0: not drawn

    def probability_of_first(self, n_batches: int) -> FloatArray:
        """Return the probability of any of the first batches: of one seed the largest."""
        own = [self.columns[f"batch_{batch}"] for batch in range(1, n_batches + 1)]
        return np.asarray(np.max(own, axis=0), dtype=np.float64)


def earlier_columns(earlier: Draw | None, population: PooledPairs) -> Earlier:
    if earlier is None:
        return Earlier({}, np.zeros(population.n_items), np.zeros(population.n_items, dtype=np.uint16))
    frame = load_frame(earlier)
    names = [c for c in frame.columns if c.startswith(("batch_", "times_", "single_"))]
    kept = frame.select(*ITEM_COLUMNS, "inclusion_probability", "drawn_in", *names)
    joined = population.pairs.join(kept, on=ITEM_COLUMNS, how="left", maintain_order="left")
    if joined["inclusion_probability"].count() != frame.height:
        raise DrawRefused("runs that the earlier batch was pooled from are gone: its pairs are not all there")
    joined = joined.fill_null(0)
    return Earlier(
        {name: joined[name].to_numpy() for name in names},
        joined["inclusion_probability"].to_numpy(),
        joined["drawn_in"].to_numpy(),
    )


def _columns(
    population: Population, before: Earlier, batch: int, seed: int, learned_from: int | None
) -> tuple[dict[str, np.ndarray], int]:
    """Return the columns of the frame file, and how many items this batch draws that no earlier one has."""
    topic_ids, doc_ids = population.pairs["topic_id"], population.pairs["doc_id"]
    numbers = permanent_random_numbers(topic_ids, doc_ids, seed)
    fold = folds(topic_ids, doc_ids, seed)
    columns: dict[str, np.ndarray] = {
        "prior": population.prior,
        "fold": fold.astype(np.uint8),
        "random_number": numbers,
    }
    if population.score is not None:
        columns["score"] = population.score
    columns |= before.columns
    if population.design.selection_kind.with_replacement:
        own, times, single = _with_replacement(population, before, batch, seed)
        columns[f"single_{batch}"] = single
        union = 1 - (1 - before.probability) * (1 - own)
    else:
        own, times = _without_replacement(population, before, numbers, fold, learned_from)
        union = np.maximum(before.probability, own)
    drawn, n_new = _batch_columns(before, batch, own, times, union)
    columns |= drawn
    return columns, n_new


def _batch_columns(
    before: Earlier, batch: int, own: FloatArray, times: np.ndarray, union: FloatArray
) -> tuple[dict[str, np.ndarray], int]:
    new = (times > 0) & (before.drawn_in == 0)
    n_new = int(np.count_nonzero(new))
    if n_new == 0:
        raise DrawRefused("nothing new was drawn: the budget is too small for this pool")
    columns: dict[str, np.ndarray] = {
        f"batch_{batch}": own,
        f"times_{batch}": times.astype(np.uint32),
        "inclusion_probability": union,
        "drawn_in": np.where(new, batch, before.drawn_in).astype(np.uint16),
    }
    return columns, n_new


def _topic_columns(
    population: TopicPopulation, before: Earlier, batch: int, seed: int
) -> tuple[dict[str, np.ndarray], int]:
    """Return the columns of the frame file where whole topics are drawn: numbers and folds are those of the topics.

    A topic's documents have its number and its chance, so that they are drawn together. Its fold is common to them, so
    that no prediction in a topic comes from the topic's own judgments.
    """
    topic = population.pooled.topic_index
    names = list(population.pooled.topic_ids)
    numbers = topic_numbers(names, seed)[topic]
    rho, own = population.chances(
        before.probability, float(min(population.design.budget, population.n_items))
    )
    columns: dict[str, np.ndarray] = {
        "prior": population.design_prior,
        "fold": folds(names, [""] * len(names), seed)[topic].astype(np.uint8),
        "random_number": numbers,
        "topic_probability": rho[topic],
        "topic_share": population.share[topic],
    }
    if population.score is not None:
        columns["score"] = population.score
    times = np.zeros(population.n_items, dtype=np.uint32)
    times[poisson_draw(own, numbers)] = 1
    drawn, n_new = _batch_columns(before, batch, own, times, own)
    columns |= before.columns | drawn
    return columns, n_new


def _without_replacement(
    population: Population, before: Earlier, numbers: FloatArray, fold: np.ndarray, learned_from: int | None
) -> tuple[FloatArray, np.ndarray]:
    """Return the probabilities of the batch, and 1 where its draw selects the item."""
    budget = min(population.design.budget, population.n_items)
    frame_sizes = sizes(population)
    times = np.zeros(population.n_items, dtype=np.uint32)
    if population.design.selection_kind.has_exact_counts:
        topic = population.pooled.topic_index
        try:
            own = stratified_probabilities(frame_sizes, topic, budget)
        except ValueError as error:
            raise DrawRefused(str(error)) from error
        times[stratified_pareto_draw(own, numbers, topic)] = 1
        return own, times
    if learned_from is None:
        own = nested_probabilities(frame_sizes, before.probability, float(budget))
    else:
        # Also where this batch itself learns nothing: the earlier probabilities were learned, and a constant common to
        # all folds would carry what they say from fold to fold.
        own_sizes = frame_sizes
        if population.design.prior == "judgments":
            learned = learned_prior(population, before.drawn_in, fold, learned_from)
            own_sizes = learned_sizes(
                population.design, population.says, prior=population.design_prior, learned=learned, fold=fold
            )
        own = probabilities_by_fold(
            own_sizes,
            fold,
            frame_sizes=frame_sizes,
            unlearned=before.probability_of_first(learned_from),
            earlier=before.probability,
            expected_count=budget,
        )
    times[poisson_draw(own, numbers)] = 1
    return own, times


def _with_replacement(
    population: Population, before: Earlier, batch: int, seed: int
) -> tuple[FloatArray, np.ndarray, FloatArray]:
    """Return each item's probability to be in the batch, how often it was drawn, and Q of a single draw."""
    q = single_draws(population, population.design.method)
    reached = float(np.where(q > 0, 1.0, before.probability).sum())
    if population.design.budget >= reached:
        raise DrawRefused(
            f"with replacement fewer than {reached:.0f} different items can be expected here; the budget asks for "
            f"{population.design.budget}"
        )
    n_draws = math.ceil(draws_to_reach(q, before.probability, population.design.budget))
    times = np.random.default_rng([seed, batch]).multinomial(n_draws, q / q.sum())
    own = -np.expm1(n_draws * np.log1p(-np.minimum(q, np.nextafter(1.0, 0.0))))
    return own, times, q


# -- what is learned ----------------------------------------------------------------------------------------


def learned_prior(
    population: Population, drawn_in: np.ndarray, fold: np.ndarray, learned_from: int
) -> FloatArray:
    """Return the cross-fitted prediction of every item's gain, as a share of the largest gain."""
    labels = mean_gains(population.campaign, population.gains)
    joined = population.pairs.join(labels, on=ITEM_COLUMNS, how="left", maintain_order="left")
    label = joined["value"].fill_null(float("nan")).to_numpy()
    labelled = np.flatnonzero(~np.isnan(label) & (drawn_in > 0) & (drawn_in <= learned_from))
    if labelled.size < FEWEST_TO_LEARN_FROM:
        raise DrawRefused(
            f"{labelled.size} items are judged; sizes can be learned from {FEWEST_TO_LEARN_FROM} or more"
        )
    waiting = n_waiting(population.campaign, learned_from)
    if waiting:
        raise DrawRefused(
            f"{waiting} items of the batches to learn from wait for judgments: which of them come first must not "
            "decide what is drawn next"
        )
    found = cross_fitted_with_components(
        components=run_components(population.pooled.returned),
        features=rank_features(population.pooled.returned, population.design.depth),
        topic_index=population.pooled.topic_index,
        fold=fold,
        prior=population.design_prior,
        labelled=labelled,
        label=label[labelled] / population.gains.max(),
    )
    return found.share


def n_waiting(campaign: Campaign, learned_from: int) -> int:
    """Return how many items of the first batches lack a judgment that an assessor could give.

    Items that an assessor could not judge do not delay the batch: that depends on the item, not on the order.
    """
    slots = Slot.objects.filter(
        campaign=campaign,
        purpose=Slot.Purpose.JUDGE,
        item__draw_entries__draw__batch__lte=learned_from,
        item__draw_entries__times__gt=0,
    ).exclude(state=Slot.State.DONE)
    not_judgeable = Judgment.objects.filter(item=OuterRef("item"), grade__isnull=True)
    return slots.exclude(Exists(not_judgeable)).values("item").distinct().count()
