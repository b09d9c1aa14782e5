"""Rebuild the paper's SYNTH and print its Tables 2 to 7 and Figures 1 to 3 beside what the product computes.

    python experiments/schnabel_synth.py                            # the tables as text
    python experiments/schnabel_synth.py --json                     # one object: table2 ... figure3
    python experiments/schnabel_synth.py --figures docs/images      # writes schnabel-figure1.svg to 3
    python experiments/schnabel_synth.py --quick                    # 20 trials instead of 1,000
    python experiments/schnabel_synth.py --trec8 FOLDER             # and the TREC rows of Tables 2 to 4

Weights, designs, variances, draws, estimates and intervals come from sampling/ and analytics/. What each number must
be is checked; the program ends with status 1, and says why, when one is not. Deterministic numbers have the
tolerances of experiments/parts/paper.py; simulated ones those, or four standard errors with few trials. With an
unlucky seed a coverage may leave .93 to .97 although nothing is wrong (about one seed in fifty).
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.parts.figures import TITLES, curves, picture
from experiments.parts.rows import Report, as_json, as_text, failures
from experiments.parts.synth import USERS, draw_grades, expected_synth
from experiments.parts.tables import data, table2, table3, table4, table5, table6, table7
from experiments.parts.trec8 import TrecSystem, read_systems, trec_rows

HEADINGS = {
    "table2": "Table 2: DCG by deterministic pools and by sampling, n = 5 |X|",
    "table3": "Table 3: standard deviation by design, n = 5 |X|",
    "table4": "Table 4: 95 % confidence intervals, Q* with 4 % uniform",
    "table5": "Table 5: variance n/|X| of a pair's difference, mean of four pairs",
    "table6": "Table 6: variance n/|X| against the baseline, mean of four",
    "table7": "Table 7: variance n/|X| of the ranking, mean of five",
    **{figure: f"Figure {figure[-1]}: {title}" for figure, title in TITLES.items()},
}


def report(
    trials: int, seed: int, *, pairs_themselves: bool, trec: Mapping[str, TrecSystem] | None = None
) -> Report:
    """Return all rows. The same seed gives the same numbers; `pairs_themselves` takes about 1.5 GB."""
    grades = draw_grades(USERS, np.random.default_rng([seed, 1]))
    on = data(expected_synth(), grades, trials, seed, trec_rows(trec, trials, seed) if trec else None)
    return {
        "table2": table2(on),
        "table3": table3(on),
        "table4": table4(on),
        "table5": table5(on, pairs_themselves=pairs_themselves),
        "table6": table6(on),
        "table7": table7(on),
        **curves(on),
    }


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when every number is what it must be, else 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, help="samples a simulated number rests on (1000)")
    parser.add_argument("--seed", type=int, default=2016)
    parser.add_argument(
        "--quick", action="store_true", help="20 trials, and not the 12 million pairs themselves"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--trec8",
        type=Path,
        metavar="FOLDER",
        help="runs input.<system> of TREC-8 and its qrels*, gzipped or not",
    )
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="write the figures as SVG files")
    given = parser.parse_args(arguments)
    trials = given.trials if given.trials is not None else 20 if given.quick else 1000
    if trials < 2 or given.seed < 0:
        parser.error(f"trials must be at least 2 and seed at least 0, got {trials} and {given.seed}")
    try:
        trec = None if given.trec8 is None else read_systems(given.trec8)
    except (ValueError, OSError) as error:
        parser.error(f"--trec8: {error}")

    made = report(trials, given.seed, pairs_themselves=not given.quick, trec=trec)
    if given.json:
        print(json.dumps(as_json(made), indent=1))
    else:
        print(as_text(HEADINGS, made))
    if given.figures is not None:
        given.figures.mkdir(parents=True, exist_ok=True)
        for figure in TITLES:
            (given.figures / f"schnabel-{figure}.svg").write_text(
                picture(figure, made[figure]), encoding="utf-8"
            )
    wrong = failures(made)
    for sentence in wrong:
        print(f"not reproduced: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
