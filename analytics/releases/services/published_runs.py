"""Which runs a release names: those that may be published. Of the others it holds a count, and no name."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

from django.db.models import Q, QuerySet

from analytics.models import Estimate
from judging.models import Campaign, Run

STAND_IN = "unpublished-"
NAMING = ("runs", "pooled")  # parameters of a draw that name runs
WORDS = ("source", "scores")  # parameters that hold names of files, which may be named after runs
HIDES_RUNS = 2  # the first format of releases that does not name them


@dataclass(frozen=True)
class PublishedRuns:
    """The runs of a release, by tag in order, and what stands in for the tag of each other one.

    Runs that were set aside, or taken back with their import, may still stand in a draw or an audit.
    """

    runs: tuple[Run, ...]
    n_unpublished: int
    hidden: Mapping[str, str]
    names_all: bool = False  # as releases of format 1 do

    @classmethod
    def of(cls, campaign: Campaign, form: int) -> "PublishedRuns":
        """Return the runs of a campaign's release of that format."""
        runs = sorted(campaign.collection.runs.all(), key=lambda run: run.run_id.encode())
        if form < HIDES_RUNS:
            return cls(tuple(runs), 0, {}, names_all=True)
        shown = tuple(run for run in runs if run.may_publish)
        open_tags = {run.run_id for run in shown}
        tags = sorted({*_tags(campaign)} - open_tags - {""}, key=str.encode)
        free = (name for number in count(1) if (name := f"{STAND_IN}{number}") not in open_tags)
        return cls(shown, len(runs) - len(shown), dict(zip(tags, free, strict=False)))

    def name(self, tag: str) -> str:
        """Return the tag of a run, or what stands in for it."""
        return self.hidden.get(tag, tag)

    def names(self, tags: Iterable[str]) -> list[str]:
        return [self.name(tag) for tag in tags]

    def only(self, tags: Iterable[str]) -> list[str]:
        """Return the tags that may be named."""
        return [tag for tag in tags if tag not in self.hidden]

    def words(self, text: str) -> str:
        """Return what the product wrote down, as the name of a file, without the tags in it.

        In small letters and in capitals alike: names of files seldom keep those of a tag.

        >>> PublishedRuns((), 1, {"BM25": "unpublished-1"}).words("bm25.prels, bm25f.prels")
        'unpublished-1.prels, bm25f.prels'
        """
        if not self.hidden:
            return text
        tag, names = self._tag
        return tag.sub(lambda found: names[(found.lastindex or 1) - 1], text)

    @cached_property
    def _tag(self) -> tuple[re.Pattern[str], list[str]]:
        """A hidden tag between anything but letters and digits, the longest first; by group what stands in for it."""
        tags = sorted(self.hidden, key=len, reverse=True)
        either = "|".join(f"({re.escape(tag)})" for tag in tags)
        pattern = re.compile(rf"(?<![^\W_])(?:{either})(?![^\W_])", re.IGNORECASE)
        return pattern, [self.hidden[tag] for tag in tags]

    def in_design(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a draw."""
        told: dict[str, Any] = {key: self.names(parameters[key]) for key in NAMING if key in parameters}
        told |= {key: self.words(parameters[key]) for key in WORDS if key in parameters}
        return {**parameters, **told}

    def estimates(self, rows: QuerySet[Estimate]) -> QuerySet[Estimate]:
        """Return the estimates whose runs are all in the release."""
        if self.names_all:
            return rows
        pks = [run.pk for run in self.runs]
        return rows.filter(Q(run_b=None) | Q(run_b__in=pks), run__in=pks)


def _tags(campaign: Campaign) -> Iterable[str]:
    """Yield every tag that the campaign's rows name."""
    yield from Run.everything.filter(collection=campaign.collection_id).values_list("run_id", flat=True)
    for parameters in campaign.draws.values_list("parameters", flat=True):
        for key in NAMING:
            yield from parameters.get(key) or ()
    for pair in campaign.audits.values_list("run", "against"):
        yield from pair
    for runs, baseline in campaign.comparison_families.values_list("runs", "baseline"):
        yield from (*runs, baseline)
