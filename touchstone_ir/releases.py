"""What a release's judgments tell of runs, and whether the release is what it says."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analytics.estimation.claims import CLAIMS, LIKE_THESE, Claim
from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.wording import ClaimTest, PairComparison
from analytics.releases.comparing import DifferenceOptions, compare_runs, rankings_of_release
from analytics.releases.evaluating import evaluate as evaluate_ranking
from analytics.releases.evaluation import Evaluation, ValueAlone
from analytics.releases.manifest import MANIFEST
from analytics.releases.reading import OpenRelease, ReleaseUnreadable
from analytics.releases.samples import open_named, sample_of
from judging.run_columns import hash_pairs
from sampling.measures.scoring import RankedRun, index_qrels
from touchstone_ir.columns import InputRefused
from touchstone_ir.measures import measures_of
from touchstone_ir.numbers import runs_of
from touchstone_ir.results import CLAIM_WORDS, Result, rows_frame


def evaluate(
    release: str | Path, runs: Any, measures: Any, *, against: str | Sequence[str] | None = None
) -> Result:
    """Return what the judgments of a release tell of runs: of the release by name, or of any others.

    Without `against` a row a run and measure, as `manage.py evaluate` has it: the number corrected by the release's
    audit, else estimated from its sample, and beside it the value by the published grades. With `against` a row a
    pair, p adjusted in the family that the release declares, else by Holm over all runs that are named.

    Parameters
    ----------
    release : path
        Its zip or its folder.
    runs : names, paths or tables
    measures : str, object or list
    against : str or list of str, optional
        Runs that are subtracted: of the release, or among `runs`.

    Raises
    ------
    InputRefused, ValueError
        No release, a run or measure that is not there.
    """
    names = [str(one) if isinstance(one, str) else one.name for one in measures_of(measures)]
    try:
        with open_named(str(release)) as opened:
            rankings = _rankings(opened, runs)
            if against is not None:
                return _pairs(
                    opened, rankings, names, [against] if isinstance(against, str) else list(against)
                )
            return _values(opened, rankings, names)
    except (ReleaseUnreadable, OSError) as error:
        raise InputRefused(str(error)) from error


def _rankings(release: OpenRelease, runs: Any) -> dict[str, dict[str, list[str]]]:
    """Return the documents of every run by topic, best first; a name is a run of the release, or a file."""
    many = runs if isinstance(runs, list | tuple) else [runs]
    known, found = release.runs(), dict[str, dict[str, list[str]]]()
    for one in many:
        if isinstance(one, str) and one in known:
            found[one] = rankings_of_release(release, one)
            continue
        if isinstance(one, str) and not Path(one).exists():
            raise InputRefused(
                f"{one} is no file, and the release has no such run: it has {', '.join(known)}"
            )
        for run, ranking in rankings_of(runs_of(one)).items():
            if run in found:
                raise InputRefused(f"the run {run} is named twice: a run against itself is no comparison")
            found[run] = ranking
    return found


def rankings_of(table: pl.DataFrame) -> dict[str, dict[str, list[str]]]:
    """Return the documents of every run of a table by topic, best first."""
    found = {}
    for (run,), rows in table.group_by(["run"], maintain_order=True):
        grouped = rows.sort("topic", "rank").group_by("topic", maintain_order=True).agg("doc")
        found[str(run)] = dict(zip(grouped["topic"].to_list(), grouped["doc"].to_list(), strict=True))
    return found


def _values(release: OpenRelease, rankings: dict[str, dict[str, list[str]]], names: list[str]) -> Result:
    sampled, about, measures = sample_of(release, names)
    judged = index_qrels(release.qrels())
    rows = []
    for run, ranking in rankings.items():
        found = evaluate_ranking(sampled, about["measures"], measures, ranking, scored_run(ranking), judged)
        rows += [_row(run, one.within_range()) for one in found]
    n_topics = len(sampled.facts.topics)
    caption = f"95 % confidence intervals {CLAIM_WORDS[CLAIMS[0].key]}, {n_topics} topics."
    return Result("evaluate", rows_frame(rows), CLAIMS[0].key, caption, n_topics)


def scored_run(ranking: dict[str, list[str]]) -> RankedRun:
    """Return a ranking by topic as measures by grades take it."""
    topics = tuple(sorted(ranking))
    sizes = np.array([len(ranking[topic]) for topic in topics], dtype=np.int64)
    hashes = hash_pairs(
        [topic for topic in topics for _ in ranking[topic]],
        [doc for topic in topics for doc in ranking[topic]],
    )
    order = np.argsort(hashes, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return RankedRun(topics, offsets, hashes[order], order.astype(np.uint32))


def _row(run: str, one: Evaluation) -> dict[str, Any]:
    """Return a run's row: corrected where the release has an audit, else estimated, else the grades alone."""
    is_corrected = isinstance(one.corrected, Estimate)
    these = one.corrected if is_corrected else one.estimate
    topics = one.corrected_over_topics if is_corrected else one.estimate_over_topics
    main, other = _numbers(topics), _numbers(these)
    value = getattr(these, "value", None)
    refusal = one.corrected.reason if isinstance(one.corrected, Refusal) else ""
    return {
        "measure": one.measure,
        "run": run,
        "against": None,
        "value": value,
        **main,
        "p": None,
        "low_other": other["low"],
        "high_other": other["high"],
        "p_other": None,
        "as_given": one.qrels,
        "n_judged": these.n if isinstance(these, Estimate) else 0,
        "n_gold": these.n if is_corrected and isinstance(these, Estimate) else 0,
        "warning": getattr(these, "warning", ""),
        "refusal": refusal if value is None else (topics.reason if isinstance(topics, Refusal) else ""),
        "refusal_other": refusal,
        "is_same": False,
    }


def _numbers(one: Estimate | Refusal | ValueAlone) -> dict[str, float | None]:
    names = ("low", "high", "standard_error", "degrees_of_freedom")
    return {name: getattr(one, name, None) for name in names}


def _pairs(
    release: OpenRelease, rankings: dict[str, dict[str, list[str]]], names: list[str], against: list[str]
) -> Result:
    known = release.runs()
    for name in against:
        if name not in rankings:
            if name not in known:
                raise InputRefused(f"the run {name} is neither in the release nor among those that are named")
            rankings[name] = rankings_of_release(release, name)
    sampled, about, measures = sample_of(release, names)
    claim: Claim = LIKE_THESE
    found = compare_runs(
        release, sampled, about["measures"], measures, rankings, against, DifferenceOptions(claim, "")
    )
    n_topics = len(sampled.facts.topics)
    family = found[0].family if found else ""
    words = f"95 % confidence intervals {CLAIM_WORDS[claim.key]}, {n_topics} topics."
    if family:
        words = f"{words} p adjusted by Holm over the family {family}."
    return Result("evaluate", rows_frame([_pair_row(one) for one in found]), claim.key, words, n_topics)


def _pair_row(one: PairComparison) -> dict[str, Any]:
    test, other = one.test, one.other
    error = _error(one.value, test)
    return {
        "measure": one.measure,
        "run": one.run,
        "against": one.run_b,
        "value": one.value,
        "low": test.low,
        "high": test.high,
        "standard_error": error,
        "degrees_of_freedom": test.degrees_of_freedom,
        "p": test.p,
        "p_adjusted": test.p_adjusted,
        "low_other": other.low,
        "high_other": other.high,
        "p_other": other.p,
        "as_given": None,
        "n_judged": one.n_items,
        "n_gold": one.n_items,
        "warning": "; ".join(one.notes) or one.same,
        "refusal": one.refusal if one.value is None else test.refusal,
        "refusal_other": other.refusal,
        "is_same": bool(one.same),
    }


def _error(value: float | None, test: ClaimTest) -> float | None:
    """Return the standard error that a t and its value have."""
    return None if value is None or not test.t else value / test.t


@dataclass(frozen=True)
class Verification:
    """What was compared in a release, by kind; what differs, in words; what was not computed again, by reason."""

    same: dict[str, int]
    different: list[str]
    not_recomputed: dict[str, int]

    @property
    def is_right(self) -> bool:
        """Return whether nothing differs."""
        return not self.different

    def __str__(self) -> str:
        lines = [f"same            {number:>9,}  {what}" for what, number in self.same.items()]
        lines += [f"not recomputed  {number:>9,}  {what}" for what, number in self.not_recomputed.items()]
        lines += [f"DIFFERENT  {words}" for words in self.different]
        said = "ok: everything that was compared is the same" if self.is_right else "NOT what it says"
        return "\n".join([*lines, said])


def verify(release: str | Path) -> Verification:
    """Return whether a release is what it says: every file, and every number computed again from its facts.

    Raises
    ------
    InputRefused
        What was named is no release, or cannot be read.
    """
    from analytics.releases.verify import verify as verify_folder

    path = Path(release)
    try:
        if path.is_dir():
            return _verification(verify_folder(path))
        with open_named(str(release)) as opened:
            if wrong := opened.differences():  # what is not as the manifest says is not unpacked
                return Verification({}, wrong, {})
            with opened.on_disk(opened.sizes.keys()) as folder:
                (folder / MANIFEST).write_bytes(b"".join(opened.blocks(MANIFEST)))
                return _verification(verify_folder(folder))
    except (ReleaseUnreadable, OSError, EOFError, LookupError, TypeError, zipfile.BadZipFile) as error:
        raise InputRefused(f"{release}: the release cannot be read: {error}") from error


def _verification(report: Any) -> Verification:
    return Verification(dict(report.same), list(report.different), dict(report.not_recomputed))
