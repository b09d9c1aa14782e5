"""The parts by topic of a corrected number: values of topics, whose mean is the number of the run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from analytics import methods
from analytics.estimation.estimate import Estimate
from analytics.releases.evaluating import evaluate as evaluate_ranking
from analytics.releases.reading import ReleaseUnreadable
from analytics.releases.sampled import SampledRelease
from analytics.releases.samples import open_named, sample_of
from sampling.measures.families import Measure
from sampling.measures.kinds import Kind
from sampling.measures.scoring import JudgedPairs, ScaledMeasure, index_qrels
from touchstone_ir.columns import InputRefused
from touchstone_ir.measures import measures_of, printed_name
from touchstone_ir.numbers import measured_runs
from touchstone_ir.releases import rankings_of, scored_run

LABELS_ALONE = (
    "labels alone correct nothing: give gold=, or take an ordinary measure with the labels as its qrels"
)


@dataclass(frozen=True)
class TopicParts:
    """Of a run, by topic; the number itself is their mean, cut off at `largest` and at 0."""

    by_topic: Mapping[str, float]
    largest: float


class PartsOfRuns(Protocol):
    """What knows the corrected number of any run in one measure."""

    @property
    def name(self) -> str:
        """Return the measure's name with all parameters."""

    def of_run(self, run: pl.DataFrame) -> TopicParts:
        """Return the parts of a run's number; InputRefused where it has none."""


def measure_with_parts(measure: Any) -> Measure[Kind]:
    """Return the measure that is named; InputRefused if there are several, or if no gold corrects it."""
    found = measures_of(measure)
    if len(found) > 1:
        raise InputRefused(f"an adapter is one measure, got {', '.join(one.name for one in found)}")
    refusal = methods.REPORTED.refusal(found[0])
    if refusal is not None:
        raise InputRefused(f"there are no corrected parts by topic: {refusal.reason}")
    return found[0]


@dataclass(frozen=True, eq=False)
class FileParts:
    """What somebody's labels and gold say of runs.

    `judgments`: labels, gold and draw as tables, and how gold was chosen, which fit together. `runs`: all runs of the
    comparison, whose ranks help to predict the gold; None where each is taken by itself.
    """

    measure: Measure[Kind]
    judgments: tuple[pl.DataFrame | None, pl.DataFrame, pl.DataFrame | None, str | None]
    gains: Mapping[int, float] | None
    relevant: int
    runs: pl.DataFrame | None

    @property
    def name(self) -> str:
        return printed_name(self.measure, self.relevant)

    def of_run(self, run: pl.DataFrame) -> TopicParts:
        """Return the parts of a run's number.

        Raises
        ------
        InputRefused
            There is no number, or none by topic; the run is none of those that were named.
        """
        table, place = run, 0
        if self.runs is not None:
            table, place = self.runs, self._place(self.runs, run)
        (found,) = measured_runs(table, self.measure.name, *self.judgments, self.gains, self.relevant)
        columns = found.reported
        values = columns.topic_values[place]
        if columns.refusal[place] or values is None:
            reason = columns.refusal[place] or "it has no values of topics"
            raise InputRefused(f"{self.name} has no corrected parts by topic: {reason}")
        parts = dict(zip(found.arrays.topics, values, strict=True))
        return TopicParts(parts, float(columns.numbers["range_high"][place]))

    def _place(self, runs: pl.DataFrame, run: pl.DataFrame) -> int:
        """Return which of the runs ranks the same documents alike, as far as the measure looks."""
        names = runs["run"].unique(maintain_order=True).to_list()
        wanted = self._near(run)
        for place, name in enumerate(names):
            if self._near(runs.filter(pl.col("run") == name)).equals(wanted):
                return place
        raise InputRefused(f"{self.name}: the run to be measured is none of runs= ({', '.join(names)})")

    def _near(self, run: pl.DataFrame) -> pl.DataFrame:
        labels, gold = self.judgments[:2]
        topics = (gold if labels is None else labels)["topic"].unique().to_list()
        near = run.filter(pl.col("topic").is_in(topics))
        if self.measure.cutoff is not None:
            near = near.filter(pl.col("rank") <= self.measure.last_rank)
        return near.select("topic", "rank", "doc").sort("topic", "rank")


@dataclass(frozen=True, eq=False)
class ReleaseParts:
    """What a release says of runs, as `touchstone_ir.evaluate` has it."""

    measure: ScaledMeasure
    sampled: SampledRelease
    about: Mapping[str, Any]
    judged: JudgedPairs

    @classmethod
    def open(cls, release: Any, measure: Measure[Kind]) -> "ReleaseParts":
        """Read the release. InputRefused if it is none, or knows nothing of the measure."""
        try:
            with open_named(str(release)) as opened:
                sampled, estimates, (scaled,) = sample_of(opened, [measure.name])
                return cls(scaled, sampled, estimates["measures"], index_qrels(opened.qrels()))
        except (ReleaseUnreadable, OSError) as error:
            raise InputRefused(str(error)) from error

    @property
    def name(self) -> str:
        return self.measure.name

    def of_run(self, run: pl.DataFrame) -> TopicParts:
        """Return the parts of a run's number.

        Raises
        ------
        InputRefused
            The release corrects no such number; the words are those of `touchstone_ir.evaluate`.
        """
        ((_, ranking),) = rankings_of(run).items()
        given = (ranking, scored_run(ranking), self.judged)
        (found,) = evaluate_ranking(self.sampled, self.about, [self.measure], *given)
        if not isinstance(found.corrected, Estimate):
            raise InputRefused(f"{self.name} has no corrected parts by topic: {found.corrected.reason}")
        parts = {
            topic: values["corrected"] for topic, values in found.by_topic.items() if "corrected" in values
        }
        if not parts or found.largest is None:
            raise InputRefused(f"{self.name} has no corrected parts by topic: it has no values of topics")
        return TopicParts(parts, found.largest)
