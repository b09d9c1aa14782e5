"""What each audit strategy is good for: standard errors of 300 gold labels, by strategy and question.

    python experiments/which_audit.py            # the table, a few seconds
    python experiments/which_audit.py --json

Pools, runs and bronze labels are those of experiments/bailey_tables.py (synthetic), gold grades given the bronze label
those of the paper's Table 4. 3,000 documents are drawn for the ranking of the runs by DCG@20 and judged; 300 of them
are audited. What is printed is the exact standard deviation over audits of the difference estimator with known means
of the bronze grades: sqrt(sum (w/pi)^2 (1/alpha - 1) s^2), alpha the audit's probabilities, s^2 the variance of the
gain given the grade. The spread of the draw itself, the same for all strategies, is left out.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.bailey_tables import GOLD_GIVEN_BRONZE
from experiments.papers.sizes import ranking_contrast
from experiments.parts.bailey import GRADES, RUNS, TOPICS, draw_pools
from sampling.designs import inclusion_probabilities
from sampling.draws import poisson_draw
from sampling.judged import Judged, question_influence
from sampling.measures.families import FloatArray, run_weights
from sampling.measures.registry import parse_linear
from sampling.measures.sparse import from_dense
from sampling.strategies import strategies_for, strategy_probabilities

DRAWN, AUDITED, MEASURE = 3000, 300, "DCG@20"
QUESTIONS = {
    "pair": "difference of the pair audited for",
    "pairs": "differences of all pairs",
    "runs": "scores of the runs",
    "relevant": "share of relevant documents",
}


def standard_errors(seed: int) -> dict[str, dict[str, float]]:
    """Return by strategy the error of each of QUESTIONS; the root mean square where a question has many answers.

    "influence" and "risk" are drawn for all pairs, and once more for the pair of the middle run with the next.
    """
    rng = np.random.default_rng(seed)
    pools = draw_pools(rng)
    weights = run_weights(parse_linear(MEASURE), pools.ranks, TOPICS)
    # The ranking of all runs, and an even tenth, so that every document has a probability above 0.
    pi = inclusion_probabilities(0.9 * _share(ranking_contrast(weights)) + 0.1 / pools.grade.size, DRAWN)
    drawn = poisson_draw(pi, rng.random(pi.size))
    w, chance, grade = weights[:, drawn], pi[drawn], pools.grade[drawn]
    gain = np.arange(GRADES)
    variance = (GOLD_GIVEN_BRONZE @ gain**2 - (GOLD_GIVEN_BRONZE @ gain) ** 2)[grade]
    relevant = GOLD_GIVEN_BRONZE[:, 1:].sum(axis=1)[grade]
    pair = [RUNS // 2, RUNS // 2 + 1]
    audits = {one.key: (one.key, w) for one in strategies_for(has_whole_topics=False)}
    audits |= {f"{name}, for the pair": (name, w[pair]) for name in ("influence", "risk")}
    made = {}
    for name, (strategy, targets) in audits.items():
        judged = Judged(
            influence=question_influence(from_dense(targets), chance),
            inclusion_probability=chance,
            topic_index=pools.topic[drawn],
            bronze_grade=grade,
            error_variance=variance,
            n_grades=GRADES,
        )
        alpha = strategy_probabilities(strategy, judged, expected_count=AUDITED)
        each = (1 / alpha - 1) / chance**2
        made[name] = {
            "pair": float(np.sqrt((each * variance) @ (w[pair[0]] - w[pair[1]]) ** 2)),
            "pairs": float(np.sqrt((each * variance) @ w.var(axis=0) * 2 * RUNS / (RUNS - 1))),
            "runs": float(np.sqrt(((each * variance) @ (w**2).T).mean())),
            "relevant": float(np.sqrt((each * relevant * (1 - relevant)).sum()) / pools.grade.size),
        }
    return made


def _share(sizes: FloatArray) -> FloatArray:
    return np.asarray(sizes / sizes.sum(), dtype=np.float64)


def main(arguments: list[str] | None = None) -> int:
    """Return 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=2008)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if given.seed < 0:
        parser.error(f"seed must be at least 0, got {given.seed}")
    made = standard_errors(given.seed)
    if given.json:
        print(json.dumps(made, indent=1))
        return 0
    print(f"{AUDITED} of about {DRAWN:,} judged documents audited; {MEASURE}\n")
    for code, words in QUESTIONS.items():
        print(f"  {code:9} {words}")
    print(f"\n{'':22}" + "".join(f"{code:>10}" for code in QUESTIONS))
    for name, errors in made.items():
        print(f"{name:22}" + "".join(f"{errors[code]:10.4f}" for code in QUESTIONS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
