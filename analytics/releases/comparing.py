"""The differences of runs by a release's files, with a claim and in a family."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analytics.estimation.claims import Claim, Family, family_of
from analytics.estimation.wording import ClaimTest, PairComparison
from analytics.releases.differences import NamedRun, difference_tests, pairs_of
from analytics.releases.reading import OpenRelease
from analytics.releases.sampled import PlacedRun, SampledRelease
from sampling.measures.scoring import ScaledMeasure


@dataclass(frozen=True)
class DifferenceOptions:
    """What is claimed, and in which family; an empty one is the family that the release declares."""

    claim: Claim
    family: str


def rankings_of_release(release: OpenRelease, run_id: str) -> dict[str, list[str]]:
    """Return the documents of a published run by topic, best first."""
    found: dict[str, list[str]] = {}
    for line in release.run(run_id):
        found.setdefault(line.topic_id, []).append(line.doc_id)
    return found


def compare_runs(
    release: OpenRelease,
    sampled: SampledRelease,
    about: Mapping[str, Any],
    measures: Sequence[ScaledMeasure],
    runs: Mapping[str, Mapping[str, Sequence[str]]],
    against: Sequence[str],
    options: DifferenceOptions,
) -> list[PairComparison]:
    """Return every run against every other one that is named, in every measure; `runs` has the rankings of all.

    Raises
    ------
    ValueError
        A family of another form, or of runs that are not there.
    """
    placed = {name: NamedRun(name, PlacedRun.of(sampled.facts, ranking)) for name, ranking in runs.items()}
    asked = [(placed[a], placed[b]) for a in runs if a not in against for b in against]
    told = _declaration(release) if not options.family else None
    if told is not None:
        declared = Family(told["family"]["name"], tuple(told["family"]["runs"]), told["family"]["baseline"])
        found = []
        for measure in measures:
            made = difference_tests(sampled, about, measure, asked, declared, options.claim)
            found += [_with_recorded(one, told["comparisons"]) for one in made]
        return found
    family = family_of(options.family or "all", list(runs))
    others = [pair for pair in pairs_of(list(placed.values()), family) if not _has(asked, pair)]
    return [
        one
        for measure in measures
        for one in difference_tests(sampled, about, measure, [*asked, *others], family, options.claim)[
            : len(asked)
        ]
    ]


def _has(pairs: Iterable[tuple[NamedRun, NamedRun]], pair: tuple[NamedRun, NamedRun]) -> bool:
    return any({one.name for one in pair} == {one.name for one in other} for other in pairs)


def _declaration(release: OpenRelease) -> dict[str, Any] | None:
    """Return what comparisons.json says; None in a release without a declared family."""
    if "comparisons.json" not in {entry["path"] for entry in release.manifest["files"]}:
        return None
    told: dict[str, Any] = release.value("comparisons.json")
    return told if told["family"] else None


def _with_recorded(one: PairComparison, recorded: Sequence[Mapping[str, Any]]) -> PairComparison:
    """Return the pair with its adjusted p in the declared family, as the release has it.

    A file may have the name of a run of the release and return something else: then its p is another one, and none of
    the family.
    """
    own = [row for row in recorded if row["measure"] == one.measure]
    row = next((row for row in own if {row["run"], row["run_b"]} == {one.run, one.run_b}), None)

    def adjusted_in(test: ClaimTest) -> ClaimTest:
        told = None if row is None else row[test.claim.key]
        is_same = told and told["p"] is not None and test.p is not None and _is_same_p(told["p"], test.p)
        return replace(test, p_adjusted=told["p_adjusted"] if told and is_same else None)

    n = sum(row[one.test.claim.key]["p"] is not None for row in own)
    return replace(one, test=adjusted_in(one.test), other=adjusted_in(one.other), n_family=n)


def _is_same_p(p: float, again: float) -> bool:
    """Return whether two p are of one comparison, computed twice."""
    return math.isclose(p, again, rel_tol=1e-6, abs_tol=1e-12)
