"""A result: rows of numbers with the words about them, to be printed, stored, plotted and put into a paper."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analytics.estimation.claims import LIKE_THESE, Claim, claim_of, other_claim
from analytics.estimation.comparison import holm
from analytics.estimation.wording import LEVEL, ClaimTest, PairComparison
from touchstone_ir.columns import InputRefused
from touchstone_ir.rows import ResultRows
from touchstone_ir.samples import FileArrays

MOST_NAMED = 3  # runs in a caption
CLAIM_WORDS = {LIKE_THESE.key: "for topics like these", other_claim(LIKE_THESE).key: "for these topics"}


@dataclass(frozen=True, eq=False)
class Result:
    """A row a run and measure, or a pair and measure.

    Attributes
    ----------
    kind : str
        "estimate", "compare", "rank", "evaluate" or "agreement".
    frame : polars.DataFrame
        The rows. Of numbers of runs: measure, run, against, value, low, high, standard_error, degrees_of_freedom, p,
        p_adjusted, verdict; low_other, high_other and p_other by the other claim; as_given, the value with the grades
        as given; n_judged, n_gold and n_pairs, of all that could be judged; drawing_variance and gold_variance, whose
        sum is the variance for these topics; warning, and refusal where there is no number or no interval.
    claim : str
        What intervals and p-values are about.
    caption : str
        What every row has in common, with the comparisons among which p was adjusted.
    topics : polars.DataFrame or None
        The values of topics, where they were asked for.
    head : str
        What the numbers are of, above the printed table.
    notes : tuple of str
        What is to be known of some numbers, below it.
    pairs : tuple of PairComparison
        The comparisons that the rows were made from, where they were made elsewhere.
    details : dict
        What the JSON has besides.
    """

    kind: str
    frame: pl.DataFrame
    claim: str = ""
    caption: str = ""
    n_topics: int = 0
    topics: pl.DataFrame | None = None
    head: str = ""
    notes: tuple[str, ...] = ()
    pairs: tuple[PairComparison, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_refused(self) -> bool:
        """Return whether no row has a number."""
        return "value" in self.frame.columns and self.frame["value"].null_count() == self.frame.height

    def __len__(self) -> int:
        return self.frame.height

    def __str__(self) -> str:
        from touchstone_ir.printing import result_text

        return result_text(self)

    __repr__ = __str__

    def sentence(self) -> str:
        """Return what is said of every row, a sentence or two a line."""
        from touchstone_ir.printing import sentences

        return "\n".join(sentences(self))

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise InputRefused("pandas is not installed: pip install pandas") from error
        return pandas.DataFrame({name: self.frame[name].to_list() for name in self.frame.columns})

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the rows as CSV, in which no text is a formula, and write them where a path is given."""
        from touchstone_ir.printing import csv_text

        return _written_text(csv_text(self.frame), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON, whole, and write it where a path is given."""
        fields: dict[str, Any] = {
            "kind": self.kind,
            "claim": self.claim,
            "caption": self.caption,
            "n_topics": self.n_topics,
            "rows": [_plain(row) for row in self.frame.to_dicts()],
        }
        if self.topics is not None:
            fields["topics"] = [_plain(row) for row in self.topics.to_dicts()]
        fields |= _plain(self.details)
        return _written_text(json.dumps(fields, ensure_ascii=False, indent=1, allow_nan=False), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """Return a table for a paper (booktabs), and write it where a path is given."""
        return self._table("latex", path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return a Markdown table, and write it where a path is given."""
        return self._table("markdown", path)

    def _table(self, key: str, path: str | Path | None) -> str:
        from touchstone_ir.printing import paper_tables

        return _written_text(paper_tables(self, key), path)

    def plot(self, path: str | Path) -> Path:
        """Draw the rows as a forest plot, and return the path; what is written follows from its ending.

        Raises
        ------
        InputRefused
            An ending other than .svg, .pdf, .png, or without the extra: ``pip install touchstone-ir[plots]``.
        """
        from touchstone_ir.plots import write_plot

        return write_plot(self, Path(path))


def result_from_json(text: str) -> Result:
    """Return the result that `Result.to_json` wrote.

    Raises
    ------
    InputRefused
        A text that is no result.
    """
    try:
        fields = json.loads(text)
        rows = fields["rows"]
        frame = pl.DataFrame(rows, infer_schema_length=None)
        return Result(fields["kind"], frame, fields["claim"], fields["caption"], fields["n_topics"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise InputRefused("this is no result of touchstone, as --output json or to_json write it") from error


def _written_text(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _plain(value: Any) -> Any:
    """Return what JSON can hold: a number that is none, or infinite, is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _plain(cell) for name, cell in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


# -- from numbers to rows -----------------------------------------------------------------------------------------


def result_of(
    kind: str,
    parts: Sequence[ResultRows],
    claim: Claim,
    *,
    topics: pl.DataFrame | None = None,
    note: str = "",
) -> Result:
    """Return the rows of some measures under a claim; p-values are adjusted by Holm over all of them."""
    frames = [_frame(part, claim) for part in parts]
    frame = pl.concat(frames)
    known = frame["p"].is_not_null()
    adjusted = np.full(frame.height, np.nan)
    if known.any():
        adjusted[known.to_numpy()] = holm(frame["p"].drop_nulls().to_numpy())
    frame = frame.with_columns(p_adjusted=_column(adjusted))
    frame = frame.with_columns(verdict=pl.Series([_verdict(row) for row in frame.iter_rows(named=True)]))
    n_tested = int(known.sum())
    arrays = parts[0].numbers.arrays
    n_topics = arrays.n_topics
    words = [f"95 % confidence intervals {CLAIM_WORDS[claim.key]}, {n_topics} topics"]
    if n_tested > 1:
        words.append(f"p adjusted by Holm over the {n_tested} comparisons of this result")
    words += _short_runs(arrays)
    caption = " ".join(f"{one}." for one in (*words, note) if one)
    return Result(kind, frame.select(_order(frame)), claim.key, caption, n_topics, topics)


def _short_runs(arrays: FileArrays) -> list[str]:
    """Return which runs return nothing in some topics, in words: their value there is 0."""
    missing = {
        name: arrays.n_topics - n
        for name, n in zip(arrays.run_names, arrays.n_topics_returned, strict=True)
        if n < arrays.n_topics
    }
    if len(missing) > MOST_NAMED:
        return [f"{len(missing)} runs return nothing in some of the topics, which count as 0"]
    return [f"{name} returns nothing in {n} of the topics, which count as 0" for name, n in missing.items()]


def rows_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return rows that were made one by one as the table of a result, with their verdicts."""
    frame = pl.DataFrame(
        [{"p_adjusted": None, **row} for row in rows], infer_schema_length=None, schema_overrides=SCHEMA
    )
    verdict = pl.Series([_verdict(row) for row in frame.iter_rows(named=True)], dtype=pl.String)
    return frame.with_columns(verdict=verdict).select(_order(frame.with_columns(verdict=verdict)))


def _frame(part: ResultRows, claim: Claim) -> pl.DataFrame:
    main, other = part.claim(claim), part.claim(other_claim(claim))
    return pl.DataFrame(
        {
            "measure": [part.numbers.name] * part.places.size,
            "run": list(part.runs),
            "against": pl.Series(_against(part), dtype=pl.String),
            "value": _column(part.value),
            **{name: _column(getattr(main, name)) for name in NUMBERS},
            **{f"{name}_other": _column(getattr(other, name)) for name in ("low", "high", "p")},
            "as_given": _column(part.as_given),
            "n_judged": part.numbers.n_judged[part.places],
            "n_gold": part.n_gold,
            "n_pairs": np.full(part.places.size, part.numbers.arrays.frame.height),
            "drawing_variance": _column(part.component("drawing")),
            "gold_variance": _column(part.component("gold")),
            "warning": part.warnings,
            "refusal": main.refusal,
            "refusal_other": other.refusal,
            "is_same": part.is_same,
        }
    )


def _against(part: ResultRows) -> list[str | None]:
    return [None] * part.places.size if part.against is None else [*part.against]


NUMBERS = ("low", "high", "standard_error", "degrees_of_freedom", "p")
COLUMNS = (
    *(
        "measure",
        "run",
        "against",
        "value",
        "low",
        "high",
        "standard_error",
        "degrees_of_freedom",
        "p",
        "p_adjusted",
    ),
    *("verdict", "low_other", "high_other", "p_other", "as_given", "n_judged", "n_gold", "n_pairs"),
    *("drawing_variance", "gold_variance", "warning", "refusal", "refusal_other", "is_same"),
    # of runs on a release: from its sample alone, and how much of the run's first documents was looked at
    *("estimate", "estimate_low", "estimate_high", "judged_share", "gold_share"),
)


TEXTS = {"measure", "run", "against", "verdict", "warning", "refusal", "refusal_other"}
SCHEMA: dict[str, Any] = {
    **{name: pl.Float64 for name in COLUMNS if name not in TEXTS},
    **{name: pl.String for name in COLUMNS if name in TEXTS},
    "n_judged": pl.Int64,
    "n_gold": pl.Int64,
    "n_pairs": pl.Int64,
    "is_same": pl.Boolean,
}


def _order(frame: pl.DataFrame) -> list[str]:
    return [name for name in COLUMNS if name in frame.columns]


def _column(numbers: Any) -> pl.Series:
    return pl.Series(np.asarray(numbers, dtype=np.float64)).fill_nan(None)


def _verdict(row: Mapping[str, Any]) -> str:
    """Return what is concluded of a row, in a word or two."""
    if row["value"] is None:
        return "refused"
    if row["against"] is None:
        return ""
    if row["is_same"]:
        return "the same"
    if row["p_adjusted"] is None:
        return "not tested"
    if row["p_adjusted"] >= LEVEL or not row["value"]:
        return "not significant"
    return f"{row['run'] if row['value'] > 0 else row['against']} is higher"


def pair_comparison(result: Result, row: Mapping[str, Any]) -> PairComparison:
    """Return a pair's row as what the sentence about it is made from."""
    claim = claim_of(result.claim)
    error, df = row["standard_error"], row["degrees_of_freedom"]
    t = row["value"] / error if claim is LIKE_THESE and error and row["value"] is not None else None
    test = ClaimTest(
        claim,
        row["low"],
        row["high"],
        row["p"],
        row["p_adjusted"],
        t=t,
        degrees_of_freedom=df,
        refusal=row["refusal"],
    )
    other = ClaimTest(
        other_claim(claim), row["low_other"], row["high_other"], row["p_other"], refusal=row["refusal_other"]
    )
    has_number = row["value"] is not None
    return PairComparison(
        run=row["run"],
        run_b=row["against"],
        measure=row["measure"],
        value=row["value"],
        test=test,
        other=other,
        n_family=int(result.frame["p"].is_not_null().sum()),
        is_in_family=True,
        n_topics=result.n_topics,
        n_items=row["n_gold"] or row["n_judged"],
        noun="audited items" if row["n_gold"] else "judged items",
        refusal=row["refusal"],
        same=row["warning"] if has_number and row["is_same"] else "",
        notes=(row["warning"],) if has_number and row["warning"] and not row["is_same"] else (),
    )
