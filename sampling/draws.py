"""Draws: one execution of a design. All that is random in sampling is here, from a seed or a generator."""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from sampling.arrays import probabilities
from sampling.measures.families import FloatArray
from sampling.siphash import hash_texts

IndexArray = NDArray[np.int64]


def permanent_random_numbers(
    topic_ids: Iterable[str], doc_ids: Iterable[str], seed: int, purpose: str = "draw"
) -> FloatArray:
    """Return one uniform number in (0, 1) per (topic, document): a function of the ids, seed and purpose only.

    The same pair has the same number in every draw of the seed, on every machine, whatever else is in the
    frame. So a larger budget or a second design selects a superset where its probabilities are larger, and
    nothing is judged twice. Numbers of different seeds or purposes are independent.

    Every topic gets a key of 16 bytes: BLAKE2b of its id, keyed by the seed's eight bytes and personalised by the
    purpose. The number is (k + 1/2) 2^-52, k the first 52 bits of SipHash-2-4 of the document's id under that
    key. Both hashes take the length of what they are given in, so no two pairs of ids spell the same message.

    Source: Brewer, Early and Joyce (1972) for permanent random numbers; Aumasson and Bernstein (2012) for
    SipHash; RFC 7693 for BLAKE2b.

    Parameters
    ----------
    topic_ids, doc_ids : lists, object arrays or polars Series of str, length n_items
    seed : int
        Within [0, 2^64). Independent selections (an audit after a draw) need different seeds or purposes.
    purpose : str
        1 to 16 bytes, without NUL.

    Raises
    ------
    ValueError
        Different lengths, an id that is missing, a seed or purpose out of bounds.
    """
    topics, docs = _texts("topic_ids", topic_ids), _texts("doc_ids", doc_ids)
    if len(topics) != len(docs):
        raise ValueError(f"doc_ids must have one id per topic_id, {len(topics)}, got {len(docs)}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be within [0, 2^64), got {seed}")
    person = purpose.encode()
    if not 1 <= len(person) <= 16 or 0 in person:
        raise ValueError(f"purpose must be 1 to 16 bytes without NUL, got {purpose!r}")
    if not len(topics):
        return np.zeros(0)
    stretches = topics.rle().struct.unnest()  # a frame is sorted by topic: few stretches
    key = int(seed).to_bytes(8, "little")
    keys = {
        topic_id: blake2b(topic_id.encode(), key=key, digest_size=16, person=person).digest()
        for topic_id in stretches["value"].unique()
    }
    of_stretch = np.frombuffer(b"".join([keys[topic_id] for topic_id in stretches["value"]]), dtype="<u8")
    of_item = np.repeat(of_stretch.reshape(-1, 2).astype(np.uint64), stretches["len"].to_numpy(), axis=0)
    bits = hash_texts(docs, of_item[:, 0], of_item[:, 1]) >> np.uint64(12)
    return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-52, dtype=np.float64)


def _texts(name: str, ids: Iterable[str]) -> pl.Series:
    texts = ids if isinstance(ids, pl.Series) else pl.Series(name, list(ids), dtype=pl.String)
    if texts.dtype != pl.String:
        raise ValueError(f"{name} must be strings, got {texts.dtype}")
    if texts.null_count():
        raise ValueError(f"{name} must not be missing, got {texts.null_count()} missing")
    return texts


def _random_numbers(prn: ArrayLike, n_items: int) -> FloatArray:
    numbers = probabilities("prn", prn, n_items)
    refused = numbers[(numbers <= 0.0) | (numbers >= 1.0)]
    if refused.size:
        raise ValueError(f"prn must be within (0, 1), got {refused[0]}")
    return numbers


def poisson_draw(inclusion_probability: ArrayLike, prn: ArrayLike) -> IndexArray:
    """Return the items with prn < pi, in frame order: each is selected independently with its own
    probability.

    The number selected varies around sum pi. Several draws with one seed are together the draw with pi =
    the largest of their probabilities per item.

    Raises
    ------
    ValueError
        pi outside [0, 1], prn outside (0, 1), or different lengths.

    Examples
    --------
    >>> poisson_draw([0.5, 1.0, 0.0], [0.4, 0.9, 0.1]).tolist()
    [0, 1]
    """
    pi = probabilities("inclusion_probability", inclusion_probability)
    return np.flatnonzero(_random_numbers(prn, pi.size) < pi).astype(np.int64)


def pareto_draw(inclusion_probability: ArrayLike, prn: ArrayLike, count: int) -> IndexArray:
    """Return exactly `count` items, in frame order: those of least [prn/(1 - prn)]/[pi/(1 - pi)].

    Inclusion probabilities hold closely, not exactly; certain items are always in and items with pi = 0
    never. Equal ranking numbers go to the earlier item.

    Source: Rosen (1997), Pareto sampling with target probabilities pi.

    Raises
    ------
    ValueError
        As `poisson_draw`; pi that do not sum to count (to 1e-6), or fewer than count items that can be drawn.

    Examples
    --------
    >>> pareto_draw([0.5, 1.0, 0.5], [0.4, 0.9, 0.6], 2).tolist()
    [0, 1]
    """
    pi = probabilities("inclusion_probability", inclusion_probability)
    numbers = _random_numbers(prn, pi.size)
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    if count > np.count_nonzero(pi):
        raise ValueError(
            f"count must be at most {np.count_nonzero(pi)}, the items that can be drawn, got {count}"
        )
    if abs(pi.sum() - count) > 1e-6:
        raise ValueError(f"inclusion probabilities must sum to count = {count}, got {pi.sum()}")
    order = np.full(pi.size, np.inf)
    order[pi == 1.0] = -np.inf
    open_ = (pi > 0.0) & (pi < 1.0)
    # Logarithms, since the odds of a probability near 1e-300 are fine but their ratio may not be.
    order[open_] = (
        np.log(numbers[open_]) - np.log1p(-numbers[open_]) - np.log(pi[open_]) + np.log1p(-pi[open_])
    )
    last = np.partition(order, count - 1)[count - 1]
    selected = order < last
    selected[np.flatnonzero(order == last)[: count - int(np.count_nonzero(selected))]] = True
    return np.flatnonzero(selected).astype(np.int64)
