"""How often a minimal test collection stops at the wrong sign, for every pair of runs of a folder.

    python experiments/minimal_collections.py FOLDER --qrels NAME            # five minutes for 45 pairs in 30 topics
    python experiments/minimal_collections.py FOLDER --qrels NAME --without cost --pair runA runB --output json

FOLDER has `runs/` and the qrels file NAME, in which everything that the runs return should be judged: what is not in it
counts as not relevant. Every pair of runs is judged by itself, with its own pool and with true labels, until the rule
stops. P is the model's probability that the first run is worse. Of `--pair` and `--without`, parts of the names are
enough. Runs without pairs still take part in the consensus of the runs.

Paper: B. Carterette, J. Allan, R. Sitaraman: Minimal Test Collections for Retrieval Evaluation, SIGIR 2006.
`--clef` checks the figures of docs/methods/minimal-test-collections.md, which are of CLEF TAR 2017 (30 topics, the
abstract qrels, ten runs without the two called "cost" of Waterloo and without the second of UOS), and ends with
status 1 where one does not come out.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.parts.minimal_model import PREVALENCES, wrong_share
from experiments.parts.minimal_pairs import (
    PRODUCT,
    SETTINGS,
    Outcome,
    Setting,
    outcomes,
    pairs_of,
    read_folder,
)
from experiments.parts.minimal_ranking import ranking_topics, tau_table
from sampling.minimal import StoppingRule

SMALL = 0.02  # a difference of MAP
MODEL_RULES = (StoppingRule(n_first=0), StoppingRule())
DEPTHS = (0, 10, 50, 100, 200)  # judgments of each topic, for the ranking of all runs
COLUMNS = ("wrong", "wrong, above .02", "stopped at 0", "of these wrong", "no sign", "median", "most")
CLEF_WITHOUT = ("-cost.", "TMAL30Q")
CLEF_PAIRS = (("AMC", "bool"), ("A-rank-normal", "B-rank-normal"))
FIGURES = ("wrong", "wrong, above .02", "stopped at 0", "of these wrong", "median", "most")
CLEF = {  # docs/methods/minimal-test-collections.md
    name: dict(zip(FIGURES, values, strict=True))
    for name, values in {
        "p = .5, no first look": (13, 7, 27, 11, 0, 1610),
        "p = .2, no first look": (7, 2, 7, 3, 40, 2134),
        "p = .05, no first look": (4, 0, 0, 0, 20, 453),
        "p = .05, no first look, random order": (1, 0, 0, 0, 628, 2948),
        "p = share of the judged": (7, 2, 0, 0, 72, 1069),
        "consensus, mean .1": (4, 1, 0, 0, 30, 589),
        "consensus of the runs in pairs, mean .05": (4, 2, 0, 0, 30, 428),
        "consensus, mean .05": (2, 0, 0, 0, 30, 430),
        "consensus, mean .05, random order": (0, 0, 0, 0, 30, 4361),
        "DCG, until the sign is certain": (0, 0, 0, 0, 3695, 4777),
    }.items()
}


def summary(found: Sequence[Outcome]) -> dict[str, float]:
    """Return a line of the table: how many signs are wrong, and what they cost."""
    judged = np.array([one.n_judged for one in found])
    at_once = [one for one in found if one.n_judged == 0]
    values = (
        sum(one.is_wrong for one in found),
        sum(one.is_wrong and abs(one.truth) > SMALL for one in found),
        len(at_once),
        sum(one.is_wrong for one in at_once),
        sum(not one.has_sign for one in found),
        float(np.median(judged)),
        int(judged.max()),
    )
    return dict(zip(COLUMNS, values, strict=True))


def chosen(found: Sequence[Outcome], words: tuple[str, str]) -> Outcome:
    """Return the only pair whose names have the words, in this order; ValueError otherwise."""
    fits = [one for one in found if words[0] in one.pair.first and words[1] in one.pair.second]
    if len(fits) != 1:
        raise ValueError(
            f"{words[0]!r} and {words[1]!r} must name 1 pair, runs in the order of names: {len(fits)} fit"
        )
    return fits[0]


def differences(summaries: dict[str, dict[str, float]]) -> list[str]:
    """Return a sentence for every figure of the documentation that does not come out."""
    return [
        f"{name}, {column}: {summaries[name][column]:g}, must be {value:g}"
        for name, line in CLEF.items()
        for column, value in line.items()
        if summaries[name][column] != value
    ]


# ---- output -----------------------------------------------------------------------------------------------------


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return aligned columns: names to the left, figures to the right."""
    rows = [heads, *lines]
    widths = [max(len(cells[k]) for cells in rows) for k in range(len(heads))]
    return "\n".join(
        "  ".join(f"{cell:{'<' if k == 0 else '>'}{widths[k]}}" for k, cell in enumerate(cells))
        for cells in rows
    )


def pair_line(one: Outcome, name: str) -> tuple[str, ...]:
    verdict = "no sign" if not one.has_sign else "wrong" if one.is_wrong else "right"
    return (name, str(one.n_judged), f"{one.worse_probability:.6f}", verdict)


def as_text(found: dict[str, list[Outcome]], pairs: Sequence[tuple[str, str]]) -> str:
    """Return the table of rules, and one for each pair that is asked for."""
    n_pairs = len(next(iter(found.values())))
    lines = [
        (name, *(f"{value:g}" for value in summary(all_pairs).values())) for name, all_pairs in found.items()
    ]
    blocks = [table((f"{n_pairs} pairs", *COLUMNS), lines)]
    for words in pairs:
        own = {name: chosen(all_pairs, words) for name, all_pairs in found.items()}
        one = next(iter(own.values()))
        title = f"{one.pair.first} less {one.pair.second}: {one.truth:.6f}"
        body = [pair_line(each, name) for name, each in own.items()]
        blocks.append(title + "\n" + table(("", "judgments", "P", ""), body))
    return "\n\n".join(blocks)


def ranking_text(taus: dict[str, list[float]]) -> str:
    lines = [(order, *(f"{tau:.3f}" for tau in values)) for order, values in taus.items()]
    head = "All runs together: tau with the true ranking, after so many judgments of each topic"
    return head + "\n" + table(("", *map(str, DEPTHS)), lines)


def model_text(n_collections: int) -> str:
    shares = [
        (f"{p:g}", *(f"{wrong_share(n_collections, p, rule):.3f}" for rule in MODEL_RULES))
        for p in PREVALENCES
    ]
    head = f"{n_collections} simulated pairs for which the model is true: share of wrong signs"
    return head + "\n" + table(("mean p", "from 0 on", "from 30 on"), shares)


def as_data(found: dict[str, list[Outcome]]) -> dict[str, object]:
    """Return the summaries, and every pair under every rule."""
    return {
        name: {
            **summary(all_pairs),
            "pairs": [
                {
                    "first": one.pair.first,
                    "second": one.pair.second,
                    "difference": one.truth,
                    "judgments": one.n_judged,
                    "worse_probability": one.worse_probability,
                    "has_sign": one.has_sign,
                    "is_wrong": one.is_wrong,
                }
                for one in all_pairs
            ],
        }
        for name, all_pairs in found.items()
    }


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--qrels", required=True, help="a file of the folder")
    parser.add_argument("--depth", type=int, default=100, help="of the runs (default 100)")
    parser.add_argument(
        "--without", nargs="+", default=(), metavar="WORD", help="no pairs with runs that have it in the name"
    )
    parser.add_argument(
        "--pair", nargs=2, action="append", default=[], metavar=("FIRST", "SECOND"), help="shown alone"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random order")
    parser.add_argument(
        "--model", type=int, metavar="N", help="also N simulated collections in which the model is true"
    )
    parser.add_argument("--clef", action="store_true", help="check the figures of the documentation")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None, settings: Sequence[Setting] = SETTINGS) -> int:
    given = arguments(words)
    without, shown = tuple(given.without), [tuple(pair) for pair in given.pair]
    if given.clef:
        without, shown = CLEF_WITHOUT, list(CLEF_PAIRS)
    folder = read_folder(given.folder, given.qrels, given.depth, without)
    pairs = pairs_of(folder)
    found = {setting.name: outcomes(pairs, setting, given.seed) for setting in settings}
    taus = tau_table(ranking_topics(folder, PRODUCT.rule.prevalence), DEPTHS, given.seed)
    if given.output == "json":
        print(json.dumps({"rules": as_data(found), "ranking": {"judgments": DEPTHS, "tau": taus}}, indent=1))
    else:
        blocks = [
            as_text(found, shown),
            ranking_text(taus),
            *([model_text(given.model)] if given.model else []),
        ]
        print("\n\n".join(blocks))
    errors = (
        differences({name: summary(all_pairs) for name, all_pairs in found.items()}) if given.clef else []
    )
    for error in errors:
        print(f"not as documented: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    raise SystemExit(main())
