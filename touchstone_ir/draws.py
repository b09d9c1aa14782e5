"""Which pairs to judge, and which labels to check: designs, draws and audits, each pair with its probability."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analytics.estimation.targets import TargetWeights
from analytics.numbers.arrays import Floats
from sampling.contrasts import Importance, default_sizes, importance
from sampling.designs import inclusion_probabilities
from sampling.draws import permanent_random_numbers, poisson_draw
from sampling.forecasts import question_half_width
from sampling.judged import Judged, question_influence
from sampling.measures.design_weights import PriorGrades, design_weights
from sampling.measures.families import weights_of_runs
from sampling.measures.registry import nearest_sum
from sampling.pooling import Pool, pool
from sampling.questions import Design as Question
from sampling.questions import prior_of_runs, question_rows
from sampling.strategies import DEFAULT_STRATEGY, STRATEGIES, strategy_probabilities
from touchstone_ir.columns import InputRefused
from touchstone_ir.fault_places import pair_refused, told_with_places
from touchstone_ir.measures import measures_of
from touchstone_ir.numbers import judgments_of, runs_of
from touchstone_ir.readers import read_pairs
from touchstone_ir.samples import PAIR, arrays_of, knowledge_of

AUDIT = "audit"  # the purpose of an audit's random numbers: independent of those of a draw of the same seed
NEEDS_MORE = "a campaign knows what it needs, files do not"


@dataclass(frozen=True, eq=False)
class Design:
    """What to draw for, with the probability of every pooled pair; nothing in it is random.

    Attributes
    ----------
    question : sampling.questions.Design
    pairs : polars.DataFrame
        topic, doc, probability: of every pair in the pool.
    half_width : float or None
        Half of the 95 % confidence interval to expect of the answer, the drawing alone; None where there is none.
    """

    question: Question
    pairs: pl.DataFrame
    half_width: float | None
    n_topics: int

    def forecast(self) -> dict[str, Any]:
        """Return what to expect: pairs to judge, and half of the 95 % confidence interval of the answer.

        Judgments are taken as free of error, and relevance to be as likely as the ranks of the runs make it.
        """
        return {
            "question": self.question.question,
            "runs": list(self.question.runs),
            "measure": self.question.measure,
            "n_pool": self.pairs.height,
            "n_topics": self.n_topics,
            "expected_pairs": float(self.pairs["probability"].sum()),
            "half_width": self.half_width,
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the design as JSON, and write it where a path is given."""
        fields = {
            "kind": "design",
            "question": self.question.parameters(),
            "half_width": self.half_width,
            "n_topics": self.n_topics,
            "pairs": {name: self.pairs[name].to_list() for name in self.pairs.columns},
        }
        text = json.dumps(fields, ensure_ascii=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text


def design_from_json(text: str) -> Design:
    """Return the design that `Design.to_json` wrote.

    Raises
    ------
    InputRefused
        A text that is no design.
    """
    try:
        fields = json.loads(text)
        if fields["kind"] != "design":
            raise InputRefused(f"this is no design but {fields['kind']!r}")
        schema = {"topic": pl.String, "doc": pl.String, "probability": pl.Float64}
        pairs = pl.DataFrame(fields["pairs"], schema=schema)
        return Design(Question(**fields["question"]), pairs, fields["half_width"], fields["n_topics"])
    except (json.JSONDecodeError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise InputRefused(
            "this is no design of touchstone, as the command design or to_json write it"
        ) from error


def design(
    runs: Any,
    measure: Any,
    *,
    budget: int,
    question: str = "pair",
    of: Sequence[str] | str | None = None,
    depth: int | None = None,
    scores: Any = None,
    **rest: Any,
) -> Design:
    """Return how to draw the pairs whose judgments answer a question about runs best.

    Parameters
    ----------
    runs : table, path, or list of paths
        All runs that make the pool.
    measure : str or object
        A sum over documents or a ratio with a cutoff, as ir_measures spells it.
    budget : int
        Pairs to be judged, in expectation.
    question : "pair", "system", "baseline", "ranking" or "pool"
    of : list of str, optional
        The runs that the question is about, in its order; by default all.
    depth : int, optional
        Of the pool; by default the measure's cutoff.
    scores : table or dict of dicts, optional
        What a program says of pairs, within [0, 1]: the prior of relevance where there is one.
    rest
        As `sampling.questions.Design` has it: sensitivity, specificity, other_runs_share, uniform_share ...

    Raises
    ------
    InputRefused, ValueError
        A question that cannot be asked of these runs, or a measure for which no design is made.
    """
    table = runs_of(runs)
    names = table["run"].unique(maintain_order=True).to_list()
    (parsed,) = measures_of(measure)
    given: dict[str, Any] = {"prior": "scores", "scores": "given"} if scores is not None else {}
    named = [of] if isinstance(of, str) else list(names if of is None and question != "pool" else of or ())
    asked = Question(
        question=question,
        runs=tuple(named),
        measure=parsed.name,
        depth=parsed.last_rank if depth is None else depth,
        budget=budget,
        **given,
        **rest,
    )
    if asked.method != "default" or asked.has_whole_topics or asked.prior in ("judgments", "experts"):
        raise InputRefused(f"this design needs a campaign of the platform: {NEEDS_MORE}")
    found = asked.parse_measure()
    if found.last_rank > asked.depth:
        raise InputRefused(f"depth must be at least {found.last_rank}, the cutoff of {found.name}")
    pooled = _pool(table, names, asked.depth)
    prior = prior_of_runs(pooled.returned, asked.depth)
    if scores is not None:
        prior = _prior_with_scores(asked, pooled, prior, scores)
    n_topics = table["topic"].n_unique()
    weights = design_weights(
        found, pooled.returned, n_topics, PriorGrades(pooled.topic_index, prior, np.ones(1))
    )
    says: Importance = importance(asked.question, weights, question_rows(asked, names))
    sizes = default_sizes(asked, says, prior)
    probability = inclusion_probabilities(sizes, min(float(budget), float(prior.size)))
    pairs = _pairs(pooled).with_columns(probability=probability)
    return Design(asked, pairs, question_half_width(probability, says.variance(prior)), n_topics)


def _pool(table: pl.DataFrame, names: Sequence[str], depth: int) -> Pool:
    tops = [
        table.filter((pl.col("run") == name) & (pl.col("rank") <= depth)).select(
            pl.col("topic").alias("topic_id"), pl.col("doc").alias("doc_id"), "rank"
        )
        for name in names
    ]
    return pool(tops, depth)


def _pairs(pooled: Pool) -> pl.DataFrame:
    topics = pl.Series("topic", list(pooled.topic_ids), dtype=pl.String).gather(pooled.topic_index)
    return pl.DataFrame([topics, pl.Series("doc", list(pooled.doc_ids), dtype=pl.String)])


def _prior_with_scores(asked: Question, pooled: Pool, prior: Floats, scores: Any) -> Floats:
    from sampling.prediction import posterior_prior
    from touchstone_ir.columns import require, table_of

    table = require(table_of(scores, value="score"), ("topic", "doc", "score"), "scores")
    beyond = table.filter((pl.col("score") < 0) | (pl.col("score") > 1) | pl.col("score").is_null())
    if beyond.height:
        raise InputRefused(f"scores must be within [0, 1], got {beyond['score'][0]}")
    joined = _pairs(pooled).join(table.select(*PAIR, "score"), on=PAIR, how="left", maintain_order="left")
    score = joined["score"].fill_null(math.nan).to_numpy()
    known, found = ~np.isnan(score), prior.copy()
    if not known.any():
        raise InputRefused("scores: none is of a pooled pair")
    rates = {"sensitivity": asked.sensitivity, "specificity": asked.specificity}
    found[known] = posterior_prior(prior[known], score[known], **rates)
    return found


def draw(design: Design, *, seed: int, earlier: Any = None) -> pl.DataFrame:
    """Return the pairs that are drawn: topic, doc, probability, batch; grade where `earlier` has grades: they stay.

    A pair has one random number for ever, by its ids and the seed: a larger budget keeps what a smaller one drew.

    Parameters
    ----------
    design : Design
    seed : int
        Within [0, 2^64).
    earlier : table or path, optional
        What was drawn by the same design with a smaller budget, and this seed: the rest is a new batch.

    Raises
    ------
    InputRefused
        A pair of `earlier` that this draw does not hold: it is of another design or seed.
    """
    return _drawn_pairs(design.pairs, seed, "draw", earlier, "design")


def _drawn_pairs(pairs: pl.DataFrame, seed: int, purpose: str, earlier: Any, what: str) -> pl.DataFrame:
    numbers = permanent_random_numbers(pairs["topic"], pairs["doc"], seed, purpose)
    taken = pairs[poisson_draw(pairs["probability"].to_numpy(), numbers)]
    if earlier is None:
        return taken.with_columns(batch=pl.lit(1, dtype=pl.Int64))
    before = read_pairs(earlier)
    before = before if "batch" in before.columns else before.with_columns(batch=pl.lit(1, dtype=pl.Int64))
    with told_with_places(earlier=earlier):
        _require_drawn(before, taken, what)
    batch = int(before["batch"].max()) + 1  # type: ignore[arg-type]  # a column of whole numbers
    kept = [*PAIR, "batch", *({"grade"} & set(before.columns))]
    joined = taken.join(before.select(kept), on=PAIR, how="left", maintain_order="left")
    return joined.with_columns(pl.col("batch").fill_null(batch))


def _require_drawn(before: pl.DataFrame, taken: pl.DataFrame, what: str) -> None:
    """Raise InputRefused unless what was drawn earlier is drawn now, each pair once."""
    again = before.filter(~pl.struct(PAIR).is_first_distinct())
    for topic, doc in again.select(PAIR).head(1).iter_rows():
        raise pair_refused("earlier", (topic, doc), f"document {doc} of topic {topic} stands here twice")
    beyond = before.join(taken, on=PAIR, how="anti", maintain_order="left")
    for topic, doc in beyond.select(PAIR).head(1).iter_rows():
        words = (
            f"document {doc} of topic {topic} was drawn earlier and is not drawn now: earlier= is of another {what} or "
            "seed, or of a larger one"
        )
        raise pair_refused("earlier", (topic, doc), words)


def audit(
    runs: Any,
    measure: Any,
    *,
    labels: Any,
    n: int,
    seed: int,
    strategy: str = DEFAULT_STRATEGY,
    draw: Any = None,
    earlier: Any = None,
) -> pl.DataFrame:
    """Return the labelled pairs whose labels an expert should check: topic, doc, probability, batch.

    Parameters
    ----------
    runs : table, path, or list of paths
        The runs of the question: one, two, or all of a ranking.
    measure : str or object
        A sum over documents; of any other measure documents count as in DCG to its cutoff.
    labels : table or path
    n : int
        Pairs to be checked, in expectation.
    seed : int
    strategy : str
        Key of a strategy of the platform's audits that needs no earlier gold: "influence" weighs a pair by how much an
        error in its label moves the answer.
    draw : table or path, optional
        Where the labelled pairs are a draw: what `draw` returned.
    earlier : table or path, optional
        An earlier audit by the same arguments with a smaller `n`: the rest is a new batch.

    Raises
    ------
    InputRefused, ValueError
        As `touchstone_ir.estimate`; a strategy that files cannot serve; `n` below 1.
    """
    known_keys = [
        one.key
        for one in STRATEGIES
        if not (one.learns or one.takes_topics or one.takes_all or one.needs_checks)
    ]
    if strategy not in known_keys:
        raise InputRefused(f"strategy must be one of {', '.join(known_keys)}, got {strategy!r}")
    if n < 1:
        raise InputRefused(f"n must be at least 1, got {n}")
    table = runs_of(runs)
    (parsed,) = measures_of(measure)
    linear = nearest_sum(parsed.name)
    said, drawn = judgments_of(labels), judgments_of(draw, graded=False)
    with told_with_places(labels=labels, draw=draw):
        known = knowledge_of(said, None, drawn, None)
        arrays = arrays_of(table, known, parsed.last_rank, 1)
    if not arrays.judged.size:
        raise InputRefused("labels: none is of a pair that can be checked")
    weights = weights_of_runs(linear, arrays.returned, arrays.n_topics)
    pi = arrays.inclusion_probability
    own = TargetWeights(weights).over(arrays.judged).runs
    labelled = arrays.labels
    bronze = np.rint(labelled.means(labelled.grade)).astype(np.int64)
    judged = Judged(
        question_influence(own, pi),
        pi,
        arrays.topic_index[arrays.judged],
        bronze,
        np.zeros(arrays.judged.size),
        arrays.n_grades,
    )
    chance = strategy_probabilities(strategy, judged, expected_count=float(n))
    pairs = arrays.frame.select(PAIR)[arrays.judged].with_columns(probability=chance)
    return _drawn_pairs(pairs, seed, AUDIT, earlier, "audit")
