"""What a release's judgments tell of runs, and whether the release is what it says."""

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analytics.estimation.claims import CLAIMS, claim_of
from analytics.estimation.wording import ADJUSTMENTS
from analytics.releases.comparing import DifferenceOptions, compare_runs, rankings_of_release
from analytics.releases.evaluating import evaluate as evaluate_ranking
from analytics.releases.manifest import MANIFEST
from analytics.releases.reading import OpenRelease, ReleaseUnreadable
from analytics.releases.samples import open_named, sample_of
from judging.run_columns import hash_pairs
from sampling.measures.scoring import RankedRun, index_qrels, ranked_run
from touchstone_ir.columns import InputRefused
from touchstone_ir.numbers import runs_of
from touchstone_ir.release_rows import (
    pair_details,
    pair_row,
    run_details,
    run_notes,
    run_row,
    topic_rows,
)
from touchstone_ir.results import CLAIM_WORDS, Result, rows_frame

Rankings = dict[str, dict[str, list[str]]]  # by run and topic the documents, best first


def evaluate(
    release: str | Path,
    runs: Any,
    measures: Any,
    *,
    against: Any = None,
    claim: str | None = None,
    family: str = "",
    by_topic: bool = False,
) -> Result:
    """Return what the judgments of a release tell of runs: of the release by name, or of any others.

    Without `against` a row a run and measure: the number corrected by the release's audit, else estimated from its
    sample, and beside it the estimate and the value by the published grades. With `against` a row a pair, p adjusted
    in the family that the release declares, else by Holm over all runs that are named. `touchstone evaluate` and
    `manage.py evaluate` print what this returns.

    Parameters
    ----------
    release : path
        Its zip, its folder, or ``<campaign>/<version>``.
    runs : names, paths or tables
        Files of any format that `read_run` reads; what is no file is a run of the release.
    measures : str, object or list
    against : as `runs`, optional
        Runs that are subtracted: of the release, among `runs`, or others.
    claim : "topics-like-these" or "these-topics", optional
        What is claimed of a difference; by default the first.
    family : str
        ``all``, ``baseline:<run>`` or ``runs:<run>,<run>`` of the runs that are named; not the declared one.
    by_topic : bool
        The values of topics as well: `Result.topics`. Of runs, not of pairs.

    Raises
    ------
    InputRefused, ValueError
        No release, a run or measure that is not there, a run against itself.
    """
    is_many = isinstance(measures, Iterable) and not isinstance(measures, str)
    names = [str(one) for one in (measures if is_many else [measures])]
    if not names:
        raise InputRefused("name at least one measure")
    if against is None and (claim or family):
        raise InputRefused("claim= and family= are about differences: name a run with against=")
    try:
        with open_named(str(release)) as opened:
            rankings = _rankings(opened, runs)
            if against is not None:
                others = _rankings(opened, against, rankings)
                return _pairs(
                    opened,
                    rankings,
                    others,
                    names,
                    DifferenceOptions(claim_of(claim or CLAIMS[0].key), family),
                )
            return _values(opened, rankings, names, by_topic=by_topic)
    except (ReleaseUnreadable, OSError) as error:
        raise InputRefused(str(error)) from error


def run_names(release: str | Path) -> list[str]:
    """Return the runs that a release holds. InputRefused where it is none."""
    try:
        with open_named(str(release)) as opened:
            return [*opened.runs()]
    except (ReleaseUnreadable, OSError) as error:
        raise InputRefused(str(error)) from error


def _rankings(release: OpenRelease, runs: Any, earlier: Rankings | None = None) -> Rankings:
    """Return the rankings of files and tables, of runs that were read earlier, and of runs of the release."""
    known, found = release.runs(), Rankings()
    for one in runs if isinstance(runs, list | tuple) else [runs]:
        if isinstance(one, str) and not Path(one).is_file():
            if earlier and one in earlier:
                found[one] = earlier[one]
                continue
            if one not in known:
                raise InputRefused(
                    f"{one} is no file, and the release has no such run: it has {', '.join(known)}"
                )
            read = {one: rankings_of_release(release, one)}
        else:
            read = rankings_of(runs_of(one))
        for run, ranking in read.items():
            if run in found:
                raise InputRefused(f"the run {run} is named twice: a run against itself is no comparison")
            found[run] = ranking
    return found


def rankings_of(table: pl.DataFrame) -> Rankings:
    """Return the documents of every run of a table by topic, best first."""
    found = {}
    for (run,), rows in table.group_by(["run"], maintain_order=True):
        grouped = rows.sort("topic", "rank").group_by("topic", maintain_order=True).agg("doc")
        found[str(run)] = dict(zip(grouped["topic"].to_list(), grouped["doc"].to_list(), strict=True))
    return found


def _values(release: OpenRelease, rankings: Rankings, names: list[str], *, by_topic: bool) -> Result:
    sampled, about, measures = sample_of(release, names)
    try:
        judged = index_qrels(release.qrels())
    except ValueError as error:
        raise ReleaseUnreadable(f"{release.path}: the release is damaged ({error})") from error
    found = {
        run: evaluate_ranking(sampled, about["measures"], measures, ranking, scored_run(ranking), judged)
        for run, ranking in rankings.items()
    }
    n_topics, title = len(sampled.facts.topics), release.manifest.get("title", "")
    noun = "run" if len(found) == 1 else "runs"
    return Result(
        "evaluate",
        rows_frame([run_row(run, one.within_range()) for run, all_of in found.items() for one in all_of]),
        CLAIMS[0].key,
        f"95 % confidence intervals {CLAIM_WORDS[CLAIMS[0].key]}, {n_topics} topics.",
        n_topics,
        topics=topic_rows(found) if by_topic else None,
        head=f"{title} ({release.slug} {release.version}), {noun} {', '.join(found)}, {n_topics} topics",
        notes=run_notes(found),
        details={
            "release": {"slug": release.slug, "version": release.version, "title": title},
            **run_details(found, by_topic=by_topic),
        },
    )


def scored_run(ranking: dict[str, list[str]]) -> RankedRun:
    """Return a ranking by topic as measures by grades take it."""
    topics = tuple(sorted(ranking))
    sizes = np.array([len(ranking[topic]) for topic in topics], dtype=np.int64)
    hashes = hash_pairs(
        [topic for topic in topics for _ in ranking[topic]],
        [doc for topic in topics for doc in ranking[topic]],
    )
    return ranked_run(topics, np.concatenate([[0], np.cumsum(sizes)]), hashes)


def _pairs(
    release: OpenRelease,
    rankings: Rankings,
    others: Rankings,
    names: list[str],
    options: DifferenceOptions,
) -> Result:
    twice = [run for run in rankings.keys() & others.keys() if rankings[run] != others[run]]
    if twice or not rankings.keys() - others.keys():
        run = min(twice or others)
        raise InputRefused(f"the run {run} is named twice: a run against itself is no comparison")
    sampled, about, measures = sample_of(release, names)
    found = compare_runs(
        release, sampled, about["measures"], measures, rankings | others, list(others), options
    )
    n_topics = len(sampled.facts.topics)
    words = f"95 % confidence intervals {CLAIM_WORDS[options.claim.key]}, {n_topics} topics."
    if (adjusted := next((one for one in found if one.n_family), None)) is not None:
        words = f"{words} p {ADJUSTMENTS[adjusted.adjustment]} in the family {adjusted.family}."
    return Result(
        "evaluate",
        rows_frame([pair_row(one) for one in found]),
        options.claim.key,
        words,
        n_topics,
        pairs=tuple(found),
        details={
            "release": {"slug": release.slug, "version": release.version},
            "comparisons": pair_details(found),
        },
    )


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
