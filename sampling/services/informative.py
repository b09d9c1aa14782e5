"""What a campaign that judges by what it tells cannot draw, refused by name."""

import numpy as np

from sampling.arrays import FloatArray
from sampling.expert_pools import LARGEST_POOL
from sampling.services.population import DrawRefused, PooledPairs

MOST_RANKS = 20_000_000  # runs times pooled documents: the model holds a table of them


def refuse_runs(population: PooledPairs) -> None:
    """Refuse runs that no judgment could tell apart, and pools that are too large for the model."""
    runs, returned = population.runs, population.pooled.returned
    if len(runs) < 2:
        raise DrawRefused(
            "judging by what it tells takes two runs or more: with one there is nothing to tell apart"
        )
    known: dict[bytes, str] = {}
    for row, run in enumerate(runs):
        entries = np.flatnonzero(returned.run == row)
        entries = entries[np.argsort(returned.item[entries], kind="stable")]
        ranking = returned.item[entries].tobytes() + returned.value[entries].tobytes()
        if ranking in known:
            raise DrawRefused(
                f"runs {known[ranking]} and {run.run_id} return the same documents at the same ranks: no judgment "
                "tells them apart"
            )
        known[ranking] = run.run_id
    largest = int(np.bincount(population.pooled.topic_index).max())
    if largest > LARGEST_POOL:
        raise DrawRefused(
            f"judging by what it tells takes at most {LARGEST_POOL:,} pooled documents a topic, got {largest:,}: "
            "choose a smaller depth"
        )
    if len(runs) * population.n_items > MOST_RANKS:
        raise DrawRefused(
            f"judging by what it tells takes at most {MOST_RANKS:,} runs times pooled documents, "
            f"got {len(runs)} times {population.n_items:,}: choose a smaller depth"
        )


def refuse_part(population: PooledPairs, probability: FloatArray) -> None:
    """Refuse a draw that leaves out anything of the pool: what is chosen by the model needs all of it."""
    if np.all(probability == 1.0):
        return
    raise DrawRefused(
        "the campaign judges by what it tells, so the whole pool is drawn: choose a design without replacement and a "
        f"budget of {population.n_items:,}; in this one {int(np.count_nonzero(probability < 1)):,} documents could be "
        "left out"
    )
