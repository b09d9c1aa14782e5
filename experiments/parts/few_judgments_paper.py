"""What Carterette and Allan (2007) print of their six collections, and where their words and their tables disagree."""

import re

import numpy as np

from analytics.lowcost.run_folder import average_precision
from experiments.parts.rows import Row, row
from sampling.experts import topic_prior
from sampling.reweighting import round_count

COLLECTIONS = ("3", "4", "5", "6", "7", "8")  # of TREC
PAPER: dict[str, tuple[float | None, ...]] = {
    "topics": (50, 49, 50, 50, 50, 50),
    "runs": (40, 33, 61, 74, 103, 129),
    "manual runs": (11, 19, 31, 17, 17, 12),
    "documents a topic": (1009.4, 1436.2, 1620.5, 2200.5, 2029.1, 2335.5),
    "relevant documents a topic": (146.9, 109.7, 100.8, 88.0, 92.4, 94.2),
    "preferences": (0.528, 0.591, 0.355, 0.425, 0.416, 0.500),
    "uniform": (0.430, None, 0.487, 0.408, 0.369, 0.459),
    "popular": (0.482, None, 0.571, 0.491, 0.423, 0.534),
    "manual": (0.621, 0.633, 0.635, 0.635, 0.666, 0.691),
    "p from 0.2 to 0.3": (0.104, None, 0.016, 0.042, 0.019, 0.003),
    "p from 0.3 to 0.4": (0.059, 0.039, 0.026, 0.012, 0.013, 0.011),
    "p from 0.4 to 0.5": (0.134, 0.029, 0.061, 0.012, 0.035, 0.024),
    "p from 0.5 to 0.6": (0.109, 0.076, 0.052, 0.037, 0.028, 0.025),
    "p from 0.6 to 0.7": (0.189, 0.113, 0.067, 0.055, 0.060, 0.042),
    "p from 0.7 to 0.8": (0.233, 0.164, 0.107, 0.076, 0.074, 0.070),
    "p from 0.8 to 0.9": (0.322, 0.274, 0.141, 0.109, 0.101, 0.102),
    "p from 0.9 to 1.0": (0.545, 0.469, 0.293, 0.255, 0.243, 0.233),
    "R2": (0.123, 0.120, 0.066, 0.079, 0.085, 0.096),
    "deviance": (0.118, 0.143, 0.100, 0.148, 0.149, 0.172),
    "d": (0.216, 0.124, 0.160, 0.128, 0.185, 0.208),
    "rho(d)": (0.776, 0.838, 0.577, 0.646, 0.605, 0.748),
    "d automatic": (0.245, 0.144, 0.165, 0.136, 0.192, 0.214),
    "rho(d automatic)": (0.698, 0.967, 0.880, 0.857, 0.921, 0.917),
    "d manual": (0.189, 0.110, 0.156, 0.101, 0.149, 0.156),
    "rho(d manual)": (0.842, 0.867, 0.599, 0.746, 0.171, 0.543),
    "d rel": (0.324, 0.214, 0.261, 0.231, 0.325, 0.326),
    "rho(d rel)": (0.718, 0.820, 0.640, 0.743, 0.649, 0.757),
    "d non": (0.150, 0.092, 0.129, 0.103, 0.150, 0.171),
    "rho(d non)": (0.706, 0.766, 0.492, 0.552, 0.505, 0.690),
    "random d": (0.063, 0.046, 0.043, 0.048, 0.054, 0.056),
    "random rho": (0.967, 0.964, 0.934, 0.848, 0.932, 0.932),
    "deterministic d": (0.750, 0.672, 0.803, 0.772, 0.780, 0.792),
    "deterministic rho": (0.605, 0.327, 0.059, 0.219, -0.049, 0.159),
    "n and p": (0.999,) * 6,
    "d and EMAP": (0.988,) * 6,
    "random ratio": (3.0,) * 6,
    "reweighted": (0.692, 0.595, 0.645, 0.667, 0.730, 0.731),
    "weight automatic": (0.454,) * 6,
    "weight manual": (0.961,) * 6,
    "subsets, none": (0.527, 0.574, 0.339, 0.420, 0.400, 0.532),
    "subsets, reweighted": (0.513, 0.542, 0.489, 0.557, 0.480, 0.575),
    "subsets, p of reweighting": (0.205, 0.029, 0.000, 0.000, 0.000, 0.004),
    "subsets, judged alone": (0.564, 0.532, 0.456, 0.574, 0.355, 0.438),
    "subsets, p of EMAP": (0.001, 0.286, 0.056, 0.190, 0.000, 0.000),
}


def paper_value(collection: str, key: str) -> float | None:
    """Return what the paper says of a collection; None for one that it does not have.

    >>> paper_value("8", "preferences"), paper_value("", "preferences")
    (0.5, None)
    """
    return PAPER[key][COLLECTIONS.index(collection)] if collection in COLLECTIONS and key in PAPER else None


def collection_of(name: str) -> str:
    """Return the number of the track that the folder is named after, or an empty text.

    >>> collection_of("TREC-8"), collection_of("trec3"), collection_of("clef")
    ('8', '3', '')
    """
    match = re.fullmatch(r"trec[-_ ]?([3-8])", name.lower())
    return match[1] if match else ""


def mean_of_groups(collection: str) -> float:
    """Return the mean d of all runs that follows from Table 4's automatic and manual runs and Table 1's counts.

    >>> round(mean_of_groups("8"), 3)
    0.209
    """
    n_runs, n_manual, automatic, manual = (
        float(paper_value(collection, key) or 0) for key in ("runs", "manual runs", "d automatic", "d manual")
    )
    return ((n_runs - n_manual) * automatic + n_manual * manual) / n_runs


def contradictions() -> list[Row]:
    """Return what the paper's words say, and what its own tables or definitions give."""
    values = {key: tuple(float(value or 0) for value in line) for key, line in PAPER.items()}
    trec4 = COLLECTIONS.index("4")
    a, b = topic_prior(1, 2)
    return [
        row("4.1: AP of three documents, relevant at ranks 2 and 3", 5 / 12,
            float(average_precision(np.array([[2.0, 3.0]]))[0]), note="not among the values that are listed"),
        row("4.2.1: mean of the prior, one relevant and one other judged", 2 / 3, a / (a + b),
            note="printed with + 1 below"),
        row("5: mean of d over collections", 0.16, float(np.mean(values["d"])), note="Table 4"),
        row("Table 4: d of TREC-3, from its automatic and manual runs", values["d"][0], mean_of_groups("3"),
            note="the other five agree"),
        row("5.2: d of TREC-5, replaced deterministically", 0.67,
            values["deterministic d"][COLLECTIONS.index("5")], note="Table 5; .672 is TREC-4's"),
        row("6.1: tau of TREC-4 by reweighting, less that by weighing manual runs", None,
            values["reweighted"][trec4] - values["manual"][trec4], least=0.0,
            note="Figures 3 and 2; all are said to rise"),
        row("7.2: documents of a topic judged for subsets of ten runs", 3, round_count(10), note="floor(ln 10)"),
        row("Table 6: p of TREC-4 in the direction that is tested", values["subsets, p of reweighting"][trec4],
            1 - values["subsets, p of reweighting"][trec4],
            note="one-sided, that reweighting is better; called significantly worse"),
    ]  # fmt: skip
