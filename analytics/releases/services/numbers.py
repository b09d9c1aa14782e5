"""What the estimates are made of and what they say: every pair of the frame, every estimate, every matrix."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from django.db.models import Value
from django.db.models.functions import Coalesce, Collate

from analytics.estimation.claims import CLAIMS
from analytics.estimation.gold_prediction import GoldPrediction
from analytics.estimation.graded_labels import stair_gains
from analytics.frames import CampaignArrays
from analytics.methods import TRUTH
from analytics.models import Computation, ConfusionEstimate, Estimate
from analytics.numbers.predictions import Predictions
from analytics.releases.folder import Folder, json_line
from analytics.releases.services.judgments import UsedJudgments
from analytics.releases.services.published_runs import PublishedRuns
from analytics.releases.tables import ITEMS
from analytics.services.basis import Basis
from analytics.services.comparisons import is_older
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.label_classes import bronze_classes
from judging.models import Campaign
from sampling.measures.families import Measure, grade_gains
from sampling.measures.kinds import Kind, Ratio
from sampling.measures.registry import parse_measure, parse_ratio
from sampling.measures.share import share_measure

NUMBERS = (
    "value", "standard_error", "low", "high", "p_value", "degrees_of_freedom", "topics_standard_error", "topics_low",
    "topics_high", "topics_p_value", "topics_degrees_of_freedom", "topics_refusal", "always_low", "always_high",
    "unbounded_value", "unbounded_low", "unbounded_high", "range_low", "range_high", "components", "n", "n_positive",
    "judged_share", "gold_share", "outside_low", "outside_high", "sources", "refusal", "warning",
)  # fmt: skip
SHARES = (
    "topic", "measure", "method", "n_items", "n", "value", "standard_error", "low", "high", "degrees_of_freedom",
    "refusal", "warning",
)  # fmt: skip
ROWS_AT_ONCE = 5000


@dataclass(frozen=True)
class Inputs:
    """What the methods were given, as the release shows it."""

    pairs: pl.DataFrame  # of the frame: the columns of items.jsonl that grades do not say
    used: UsedJudgments
    in_matrices: frozenset[int]  # keys of assessors
    heading: dict[str, Any]  # of estimates.json


NOTHING_USED = UsedJudgments(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def no_inputs(campaign: Campaign, published: PublishedRuns, reason: str) -> Inputs:
    """Return what there is to say where nothing was drawn."""
    told_by_grades = {"grade", "joint_grade", "adjudicated_grade"}
    known = {name: kind for name, kind in ITEMS.items() if name not in told_by_grades}
    pairs = pl.DataFrame(schema={**known, "gold_answer": pl.Int16})
    heading = _heading(campaign, None, None, {}, reason) | _unpublished_count(published)
    return Inputs(pairs, NOTHING_USED, frozenset(), heading)


def inputs(
    campaign: Campaign, arrays: CampaignArrays, computation: Computation, published: PublishedRuns
) -> Inputs:
    """Return the inputs of the computation's linear measures; the arrays are of the moment that it saw."""
    names = sorted(set(computation.estimates.order_by().values_list("measure", flat=True).distinct()))
    knows_truth = computation.estimates.filter(method=TRUTH.key).exists()
    if computation.shares.exists():
        names.append(share_measure(campaign.scale.relevant_grade).name)
    basis = Basis(campaign, arrays, Predictions(arrays), assessor_confusion_counts(arrays))
    measures, predicted, known = _predictions(basis, names)
    for plug_in in known.get("whole_topics", {}).get("plug_in", {}).values():
        for tag in published.hidden.keys() & plug_in.keys():
            del plug_in[tag]
    known["n_planned"] = basis.n_planned
    order = np.argsort(arrays.label_judgment, kind="stable")
    checks = np.argsort(arrays.check_judgment, kind="stable")
    used = UsedJudgments(
        arrays.label_judgment[order],
        arrays.check_judgment[checks],
        arrays.check_true[checks].astype(np.int64),
    )
    return Inputs(
        _pairs(campaign, arrays, predicted, knows_truth),
        used,
        frozenset(assessor.pk for assessor in arrays.assessors),
        _heading(campaign, arrays, computation, measures, "") | known | _unpublished_count(published),
    )


def _unpublished_count(published: PublishedRuns) -> dict[str, int]:
    """Return how many runs are not in the release; releases of format 1 do not say, as they name all."""
    return {} if published.names_all else {"unpublished_runs": published.n_unpublished}


def _predictions(
    basis: Basis, names: Iterable[str]
) -> tuple[dict[str, Any], dict[str, pl.Series], dict[str, Any]]:
    """Return what is told of each measure, the predictions that they name, and what these were fitted with.

    Some measures share one. Predictions of gold come with all that a verifier needs to fit them again, but the labels.
    Where gold judges judged the documents there are none: what is judged is known, and `prediction` says the rest.
    """
    arrays, predictions, scale = basis.arrays, basis.predictions, basis.campaign.scale
    known: dict[tuple[float, ...], int] = {}
    columns: dict[str, pl.Series] = {}
    measures: dict[str, Any] = {}
    for name in names:
        measure = _measure(name, scale.relevant_grade)
        relevant = measure.relevant_grade or scale.relevant_grade
        gains = grade_gains(measure, scale.gains(), relevant)
        fields = {"kind": measure.kind.key, "family": measure.family.key, "cutoff": measure.cutoff}
        fields["ir_measures"] = measure.family.ir_measures(measure, gains, relevant)
        measures[name] = fields
        if not measure.kind.is_sum:
            fields["gains"] = gains.tolist()
            continue
        key = tuple(gains.tolist())
        if key not in known:
            number = known[key] = len(known)
            columns[f"prediction_{number}"] = pl.Series(predictions.of_gains(gains, relevant))
            gold = None if arrays.is_by_gold_judges else basis.gold_prediction(gains, relevant)
            if gold is not None:
                columns |= _gold_columns(basis, gold, number)
        # of every sum, also where its weights have no such parameter: the file's form
        fields |= {
            "log_base": measure.parameters.get("dcg", 2.0),
            "persistence": measure.parameters.get("p", 0.8),
        }
        fields |= {"gains": gains.tolist(), "prediction": f"prediction_{known[key]}"}
    for name, fields in measures.items():
        gold_of_stairs = basis.stairs_of(parse_ratio(name)) if fields["kind"] == Ratio.key else ()
        if not gold_of_stairs:
            continue
        keys = [tuple(row) for row in stair_gains(fields["gains"]).tolist()]
        for stair, gold in zip(keys, gold_of_stairs, strict=True):
            if stair not in known:
                columns |= _gold_columns(basis, gold, known.setdefault(stair, len(known)))
        fields["stairs"] = [f"prediction_{known[stair]}" for stair in keys]
    whole_topics = _whole_topics(basis, measures)
    if not any(name.startswith("gold_") for name in columns):
        return measures, columns, whole_topics
    more, fitted_with = _foreknowledge(basis)
    return measures, columns | more, fitted_with | whole_topics


def measure_words(measures: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the measures for people, each with its name in ir_measures where that is another.

    >>> measure_words({"P@10": {"ir_measures": "P@10"}, "RBP(p=0.8)@20": {"ir_measures": "RBP(p=0.8,rel=1)@20"}})
    ('P@10', 'RBP(p=0.8)@20 (in ir_measures RBP(p=0.8,rel=1)@20)')
    """
    names = ((name, about["ir_measures"]) for name, about in measures.items())
    return tuple(name if other in ("", name) else f"{name} (in ir_measures {other})" for name, other in names)


def _measure(name: str, relevant_grade: int) -> Measure[Kind]:
    """Return the measure of a name; that of shares has no cutoff, and stands in no list of measures."""
    share = share_measure(relevant_grade)
    return share if name == share.name else parse_measure(name)


def _whole_topics(basis: Basis, measures: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a verifier needs to predict the values of topics again; nothing where documents were drawn."""
    sampled = basis.evidence.whole_topics
    if sampled is None:
        return {}
    names = [run.run_id for run in basis.arrays.runs]
    topics = basis.arrays.draw.parameters["topics"]
    plug_in = {}
    for name in measures:
        measure = parse_measure(name)
        if sampled.refusal(measure) is None:
            values = sampled.plug_in(measure, basis.gains(measure)[0])
            plug_in[name] = dict(zip(names, values.tolist(), strict=True))
    told = {
        "topics": [topics[place] for place in sampled.present.tolist()],
        "share": sampled.topics.share.tolist(),
        "fold": sampled.fold.tolist(),
        "agreement": sampled.runs.agreement().tolist(),
        "plug_in": plug_in,
    }
    return {"whole_topics": told}


def _gold_columns(basis: Basis, gold: GoldPrediction, number: int) -> dict[str, pl.Series]:
    """Return the predicted gold gains of every pair, and of the judged ones that were open to the audits."""
    arrays = basis.arrays
    opened = arrays.judged[arrays.audit_probability > 0]
    return {
        f"gold_before_{number}": pl.Series(gold.before),
        f"gold_after_{number}": _column(arrays.frame.height, opened, gold.after),
        f"gold_spread_{number}": _column(arrays.frame.height, opened, gold.spread),
    }


def _foreknowledge(basis: Basis) -> tuple[dict[str, pl.Series], dict[str, Any]]:
    """Return the columns that predictions of gold were fitted with, and how."""
    known, arrays = basis.predictions.foreknowledge, basis.arrays
    columns = {"fold": pl.Series(known.fold), "prior": pl.Series(known.prior)}
    columns |= {f"feature_{place}": pl.Series(column) for place, column in enumerate(known.features.T)}
    # What a later audit found may be predicted, and not learned from.
    if (arrays.fitted_gold != arrays.audited).any():
        fitted = np.zeros(arrays.frame.height, dtype=bool)
        fitted[arrays.judged[arrays.fitted_gold]] = True
        columns["fitted_gold"] = pl.Series(fitted)
    return columns, {"fitted_with": {"ridge": known.ridge.tolist(), "n_learned": arrays.n_learned}}


def _column(n: int, places: np.ndarray, values: np.ndarray) -> pl.Series:
    column = np.full(n, np.nan)
    column[places] = values
    return pl.Series(column).fill_nan(None)


def _pairs(
    campaign: Campaign, arrays: CampaignArrays, predicted: dict[str, pl.Series], knows_truth: bool
) -> pl.DataFrame:
    frame, n, judged = arrays.frame, arrays.frame.height, arrays.judged
    everything = np.ones(judged.size, dtype=bool)
    is_open = arrays.audit_probability > 0
    is_judged = np.zeros(n, dtype=bool)
    is_judged[judged] = True
    audited = np.zeros(n, dtype=bool)
    audited[judged[arrays.audited]] = True
    batches = range(1, arrays.draw.batch + 1)
    by_batch = ["batch"]
    if arrays.draw.selection_kind.with_replacement:
        by_batch += ["single", "times"]

    def numbers(places: np.ndarray, values: np.ndarray) -> pl.Series:
        return _column(n, places, values)

    def integers(places: np.ndarray, values: np.ndarray) -> pl.Series:
        return numbers(places, values).cast(pl.Int64)

    known = np.flatnonzero(arrays.gold_grade >= 0) if knows_truth else np.zeros(0, dtype=np.int64)
    return frame.select(
        "topic_id",
        "doc_id",
        pl.lit(True).alias("in_frame"),
        pl.col("drawn_in").cast(pl.Int16),
        "inclusion_probability",
        judged=pl.Series(is_judged),
        chance_judged=numbers(judged, arrays.draw_probability(everything)),
        bronze_class=integers(judged, bronze_classes(arrays, campaign)),
        audit_probability=numbers(judged, arrays.audit_probability),
        chance_open=numbers(judged[is_open], arrays.draw_probability(is_open)[is_open]),
        audited=pl.Series(audited),
        audit_grade=integers(judged[arrays.audited], arrays.audit_grade[arrays.audited]).cast(pl.Int16),
        **predicted,
        gold_answer=integers(known, arrays.gold_grade[known]).cast(pl.Int16),
        **{f"{kind}_{batch}": pl.col(f"{kind}_{batch}") for kind in by_batch for batch in batches},
    )


def _heading(
    campaign: Campaign,
    arrays: CampaignArrays | None,
    computation: Computation | None,
    measures: Mapping[str, Any],
    refusal: str,
) -> dict[str, Any]:
    """Return what estimates.json says before the estimates."""
    scale = campaign.scale
    grades = [{"value": g.value, "label": g.label, "gain": g.gain} for g in scale.grades.all()]
    heading: dict[str, Any] = {
        "refusal": refusal,
        "scale": {"grades": grades, "relevant_grade": scale.relevant_grade},
        "gains_of_scale": scale.gains(),
        "measures": dict(measures),
        "computation": None,
        "draw": None,
        "n_planned": None,
        "looks": [],
        "is_by_gold_judges": False,
        "shares": [],
        "seed": None,
        "assumption": {},
        "fitted_with": None,
    }
    if computation is not None:
        seen = (
            "n_judgments",
            "n_items",
            "n_audited",
            "n_gold_checks",
            "n_batches",
            "n_audits",
            "bronze_score",
            "look",
            "n_looks",
        )
        heading["computation"] = {name: getattr(computation, name) for name in seen}
        heading["assumption"] = computation.assumption
        heading |= _claims(computation)
        heading["shares"] = list(computation.shares.order_by("topic", "method").values(*SHARES))
    if arrays is not None:
        heading["is_by_gold_judges"] = arrays.is_by_gold_judges
        heading["looks"] = [asdict(look) for look in arrays.looks]
        heading["seed"] = arrays.last_judgment_id  # of the bootstrap of ratios
        heading["draw"] = {
            "selection": str(arrays.draw.selection),
            "n_batches": arrays.draw.batch,
            "depth": arrays.draw.parameters["depth"],
            "topics": arrays.draw.parameters["topics"],
            "order_is_random": arrays.order_is_random,
            "complete": arrays.judged.size == int(arrays.n_drawn.sum()),
        }
    return heading


def _claims(computation: Computation) -> dict[str, Any]:
    """Return the claims that the estimates serve; nothing where topics like these were not tested yet."""
    return {} if is_older(computation) else {"claims": [claim.key for claim in CLAIMS]}


# -- writing ------------------------------------------------------------------------------------------------


def write_estimates(
    folder: Folder, heading: Mapping[str, Any], computation: Computation | None, published: PublishedRuns
) -> int:
    """Write estimates.json, an estimate a line, of published runs alone; return how many."""
    n = 0
    with folder.open("estimates.json") as stream:
        for name in sorted(heading):
            stream.write(b"{" if name == min(heading) else b"")
            stream.write(
                json_line(name).rstrip(b"\n") + b":" + json_line(heading[name]).rstrip(b"\n") + b",\n"
            )
        stream.write(b'"estimates":[')
        for row in _estimates(computation, published) if computation is not None else ():
            stream.write((b",\n" if n else b"\n") + json_line(row).rstrip(b"\n"))
            n += 1
        stream.write(b"\n]}\n")
    return n


def _estimates(computation: Computation, published: PublishedRuns) -> Iterator[dict[str, Any]]:
    order = [
        Collate("measure", "C"),
        Collate("method", "C"),
        Collate("run__run_id", "C"),
        Collate(Coalesce("run_b__run_id", Value("")), "C"),
    ]
    names = ("measure", "method", "run__run_id", "run_b__run_id", *NUMBERS)
    told = published.estimates(Estimate.objects.filter(computation=computation))
    rows = told.order_by(*order).values_list(*names)
    shown = ("measure", "method", "run", "run_b", *NUMBERS)
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        fields = dict(zip(shown, row, strict=True))
        fields["components"] = dict(sorted(fields["components"].items()))
        yield fields


def write_confusions(folder: Folder, computation: Computation | None, pseudonyms: Mapping[int, str]) -> int:
    """Write confusion.json, a matrix a line; assessors bear the release's pseudonyms."""
    rows = []
    for row in ConfusionEstimate.objects.filter(computation=computation) if computation is not None else ():
        name = pseudonyms[row.assessor_id] if row.assessor_id is not None else None
        rows.append(
            {
                "scope": row.scope,
                "key": name or row.key,
                "label": name or row.label,
                **{part: getattr(row, part) for part in ("counts", "matrix", "low", "high")},
                **{part: getattr(row, part) for part in ("n_gold_checks", "n_audited", "accuracy")},
                **{part: getattr(row, part) for part in ("accuracy_low", "accuracy_high", "drift_p_value")},
            }
        )
    rows.sort(key=lambda row: (row["scope"].encode(), row["key"].encode()))
    with folder.open("confusion.json") as stream:
        stream.write(b"[" + b",".join(b"\n" + json_line(row).rstrip(b"\n") for row in rows) + b"\n]\n")
    return len(rows)
